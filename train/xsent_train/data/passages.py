"""The queries of each step, with the passages that answer them.

A step has blocks of queries from one source, in one or two languages. Among the answers, both languages are equally
frequent, whichever one a query is in. So the language does not give the answer away, and what the answer has to be
distinguished from are the other passages of the block, including some neighbours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.errors import DataError
from xsent_train.data.corpus import Pair, Passage
from xsent_train.data.sampling import reweigh
from xsent_train.data.store import Store
from xsent_train.data.versions import Rows, Versions
from xsent_train.objectives import Retrieve
from xsent_train.recipe import PassagesConfig
from xsent_train.teacher.cache import TeacherVectors
from xsent_train.tokens import Tokens

SEARCHED = 1000  # passages of a pool to search for neighbours
EQUAL = 0.95  # two passages may have the same content if the cosine of their mean rows is above this
DIM = 128  # the first numbers of these means
CHUNK = 16_384  # passages whose rows are averaged at a time


def queries(passages: Iterator[Passage]) -> Iterator[Pair]:
    """Each query as a sentence without translation."""
    return (Pair(passage.source, passage.language, passage.query, "") for passage in passages)


class Asked(NamedTuple):
    """The queries of one step, and their answers."""

    sides: tuple[Tokens, Tokens]  # queries and passages
    block: Tensor  # the number of each query's block, over the blocks of all ranks [n]
    query: Tensor  # equal for equal queries [n]
    passage: Tensor  # equal for equal passages [n]
    teacher: Tensor | None  # the teacher's vectors of this rank's queries [b, Dt]


class Pool(NamedTuple):
    """Contents from which a block may be drawn."""

    contents: Rows
    languages: tuple[int, int]  # that they are all in; the same one twice for a single language
    odds: NDArray[np.float64]  # of each content, by its kind


@dataclass
class PassageBatches:
    """The queries of every step; those of step i are a pure function of settings, store and i."""

    store: Store
    versions: Versions
    settings: PassagesConfig
    wanted: Retrieve
    seed: int
    max_tokens: int
    table: Tensor | None  # token table at the start of the stage, to find neighbours by mean rows [V, D]
    rank: tuple[int, int] = (0, 1)
    teacher: TeacherVectors | None = None  # of queries
    _pools: Sequence[Pool] = field(init=False)
    _shares: NDArray[np.float64] = field(init=False)
    _near: NDArray[np.float32] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Find the pools to draw from. Raises DataError if none has enough for a block."""
        self._pools, self._shares = pools(self.store, self.versions, self.settings, self.wanted.block)
        if not self._pools:
            raise DataError(
                f"no source has {self.wanted.block} passages in a language; set a smaller block of retrieve"
            )
        if self.wanted.hard:
            assert self.table is not None
            self._near = mean_rows(self.store, self.versions.first, self.table[:, :DIM], self.wanted.tokens)

    def rows(self, step: int) -> tuple[Rows, Rows]:
        """The rows of a step's queries, and the rows of their answers, block after block."""
        blocks = self.wanted.queries // self.wanted.block
        parts = [self._block(number) for number in range(step * blocks, (step + 1) * blocks)]
        asked, answers = zip(*parts, strict=True)
        return np.concatenate(asked), np.concatenate(answers)

    def _block(self, number: int) -> tuple[Rows, Rows]:
        rng = np.random.default_rng((self.seed, 5, number))
        pool = self._pools[rng.choice(len(self._pools), p=self._shares)]
        contents, count = self._contents(rng, pool), self.wanted.block
        first, second = pool.languages
        asked = np.where(rng.random(count) < 0.5, first, second)
        other = (rng.random(count) < self.wanted.across) & (first != second)
        questions = self.versions.row(rng, contents, asked)
        elsewhere = self.versions.row(rng, contents, np.where(asked == first, second, first))
        return questions, np.where(other, elsewhere, questions)

    def _contents(self, rng: np.random.Generator, pool: Pool) -> Rows:
        """The contents of a block: random ones, by the odds of their kinds, and neighbours of the first of them."""
        lots = rng.exponential(size=len(pool.contents)) / pool.odds
        order = np.argsort(lots, kind="stable")  # a draw without replacement (Efraimidis & Spirakis 2006)
        hard = int(self.wanted.hard * self.wanted.block)
        chosen, left = order[: self.wanted.block - hard], order[self.wanted.block - hard :][:SEARCHED]
        if self._near is not None and hard:
            here, there = (self._near[pool.contents[places]] for places in (chosen[:hard], left))
            cosines = here @ there.T
            cosines[cosines > EQUAL] = -1
            taken = np.zeros(len(left), np.bool_)
            for row in cosines:
                taken[np.where(taken, -np.inf, row).argmax()] = True
            chosen = np.concatenate([chosen, left[taken]])
        contents: Rows = pool.contents[chosen]
        return contents

    def __getitem__(self, step: int) -> Asked:
        """This rank's part of the queries of a step."""
        rank, ranks = self.rank
        asked, answers = self.rows(step)
        everything = [self.store.tokens(rows, side, self.wanted.tokens) for side, rows in ((0, asked), (1, answers))]
        query, passage = map(equal, everything)
        block = torch.arange(len(asked)) // self.wanted.block
        here, there = (np.split(rows, ranks)[rank] for rows in (asked, answers))
        sides = self.store.tokens(here, 0, self.max_tokens), self.store.tokens(there, 1, self.wanted.tokens)
        self.store.release_pages()
        teacher = torch.from_numpy(self.teacher.rows(here)) if self.teacher is not None else None
        return Asked(sides, block, query, passage, teacher)


def equal(tokens: Tokens) -> Tensor:
    """A number for each sentence [B], the same for equal sentences."""
    numbers: dict[bytes, int] = {}
    parts = torch.split(tokens.ids, tokens.lengths.tolist())
    return torch.tensor([numbers.setdefault(part.numpy().tobytes(), len(numbers)) for part in parts])


def pools(
    store: Store, versions: Versions, settings: PassagesConfig, block: int
) -> tuple[Sequence[Pool], NDArray[np.float64]]:
    """The pools that can fill a block of `block` queries, and the share of each pool.

    A source has a pool for each combination of two languages that share enough of its contents, and one for every
    language with enough contents of its own. The shares of sources are proportional to weight x rows^temperature, those
    of a source's pools to their numbers of contents.
    """
    names = [source for source, _ in store.cells]
    sources = list(dict.fromkeys(names))
    of_cell = np.array([sources.index(name) for name in names])  # the source of each cell
    cell = store.cell[versions.first]
    source = of_cell[cell]
    odds = odds_of_kinds(store, settings.kinds)[cell]
    sizes = np.bincount(of_cell[store.cell], minlength=len(sources))
    masses = reweigh(
        sizes.astype(np.float64) ** settings.temperature, [(name, "") for name in sources], settings.weights
    )
    found: list[Pool] = []
    shares: list[float] = []
    for number, mass in enumerate(masses):
        own = np.flatnonzero((source == number) & (odds > 0))
        parts = [part for part in parts_of(own, versions) if len(part[0]) >= block] if mass else []
        total = sum(len(contents) for contents, _ in parts)
        for contents, languages in parts:
            found.append(Pool(contents, languages, odds[contents]))
            shares.append(mass * len(contents) / total)
    return found, np.array(shares) / (sum(shares) or 1)


def parts_of(contents: Rows, versions: Versions) -> Iterator[tuple[Rows, tuple[int, int]]]:
    """Yields the contents that are only in one language, for each, and those that are in two, for each two."""
    there = versions.there[contents]
    single = there.sum(axis=1) == 1
    for language in range(there.shape[1]):
        yield contents[single & there[:, language]], (language, language)
    for first, second in combinations(range(there.shape[1]), 2):
        yield contents[there[:, first] & there[:, second]], (first, second)


def odds_of_kinds(store: Store, kinds: Mapping[str, float]) -> NDArray[np.float64]:
    """The odds of the queries in each cell, by kind [cells]. Raises DataError for an unknown kind."""
    known = [language.partition(" ")[2] for _, language in store.cells]
    if unknown := sorted(set(kinds) - set(known)):
        there = ", ".join(sorted(set(known)))
        raise DataError(f"passages.kinds names kinds that no query has: {', '.join(unknown)}; there are {there}")
    return np.array([kinds.get(kind, 1.0) for kind in known])


def mean_rows(store: Store, rows: Rows, table: Tensor, max_tokens: int) -> NDArray[np.float32]:
    """The mean rows of passages in a token table, minus the mean over all passages, normalised [n, D]."""
    parts = []
    for start in range(0, len(rows), CHUNK):
        tokens = store.tokens(rows[start : start + CHUNK], 1, max_tokens)
        parts.append(F.embedding_bag(tokens.ids, table, tokens.offsets, mode="mean"))
    means = torch.cat(parts)
    return np.asarray(F.normalize(means - means.mean(dim=0), dim=1).numpy(), np.float32)
