"""The scored pairs of each step, which may be in two languages: a sentence in one, the other in another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from xsent_train.data.corpus import ENGLISH, Pair, ScoredPair
from xsent_train.data.sampling import draw
from xsent_train.data.store import Store
from xsent_train.data.versions import Rows, Versions
from xsent_train.objectives import Similarity
from xsent_train.teacher.cache import TeacherVectors
from xsent_train.tokens import Tokens


def sentences(pairs: Sequence[ScoredPair]) -> Iterator[Pair]:
    """Each sentence, pair after pair, as a translation of its English form, or without translation if there is none."""
    english = {(pair.source, pair.number): pair.texts for pair in pairs if pair.language == ENGLISH}
    for pair in pairs:
        forms = english.get((pair.source, pair.number))
        for side, text in enumerate(pair.texts):
            if pair.language == ENGLISH or forms is None:
                yield Pair(pair.source, pair.language, text, "")
            else:
                yield Pair(pair.source, pair.language, forms[side], text)


class ScoredBatch(NamedTuple):
    """The scored pairs of one step."""

    sides: tuple[Tokens, Tokens]
    score: Tensor  # [b]
    teacher: Tensor | None  # the teacher's vectors of the first sides, then of the second ones [2b, Dt]


@dataclass(frozen=True)
class ScoredBatches:
    """The scored pairs of every step; those of step i are a pure function of settings, store and i."""

    store: Store
    versions: Versions
    wanted: Similarity
    seed: int
    max_tokens: int
    rank: tuple[int, int] = (0, 1)
    teacher: TeacherVectors | None = None  # of sentences, two per pair, see `sentences`

    def rows(self, step: int) -> tuple[Rows, Rows]:
        """The rows of the first and of the second sentences of a step; a pair may be in two languages."""
        pairs, count = self.wanted.pairs, len(self.versions.first)
        contents = draw(self.seed, 0, count, step * pairs, (step + 1) * pairs)
        rng = np.random.default_rng((self.seed, 4, step))
        first = self.versions.any_language(rng, contents)
        other = self.versions.any_language(rng, contents)
        second = np.where(rng.random(pairs) < self.wanted.across, other, first)
        return self.versions.row(rng, contents, first), self.versions.row(rng, contents, second)

    def __getitem__(self, step: int) -> ScoredBatch:
        """This rank's part of the pairs of a step."""
        rank, ranks = self.rank
        first, second = (np.split(rows, ranks)[rank] for rows in self.rows(step))
        sides = self.store.tokens(first, 0, self.max_tokens), self.store.tokens(second, 1, self.max_tokens)
        assert self.store.score is not None
        score = torch.from_numpy(self.store.score[first].astype(np.float32))
        teacher = None
        if self.teacher is not None:
            teacher = torch.from_numpy(self.teacher.rows(np.concatenate([2 * first, 2 * second + 1])))
        return ScoredBatch(sides, score, teacher)
