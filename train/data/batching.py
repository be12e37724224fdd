"""The batches of a stage: pairs drawn by the sampler, ordered, read from the store, words swapped, pieces hidden."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from lightning_fabric.utilities import move_data_to_device
from numpy.typing import NDArray
from torch import Tensor

from xsent.train.config import StageConfig
from xsent.train.data.hiding import Hiding, hide
from xsent.train.data.sampling import Sampler
from xsent.train.data.store import Store
from xsent.train.data.swaps import Swaps
from xsent.train.data.teacher_vectors import TeacherVectors

Rows = NDArray[np.int64]
T = TypeVar("T")


class Batch(NamedTuple):
    """One step's pairs."""

    hiding: Hiding  # English and translation, whole and with pieces hidden
    group: Tensor  # identity of each English sentence, over the devices of all ranks [B]
    teacher: Tensor | None = None  # the teacher's vectors of this rank's pairs, but for the copies [b - s, Dt]
    queue: Tensor | None = None  # the teacher's vectors of earlier batches [Q, Dt], the latest last
    copied: Tensor | None = None  # the last s pairs are copies of these, with words swapped [s]

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        return Batch(*move_data_to_device(tuple(self), device))


class Batches:
    """All batches of a stage; batch number i is a pure function of recipe, store and i."""

    def __init__(
        self,
        store: Store,
        shares: NDArray[np.float64],
        stage: StageConfig,
        *,
        seed: int,
        maskable: Tensor,
        max_length: int,
        clusters: NDArray[np.uint16] | None = None,
        teacher: TeacherVectors | None = None,
        swaps: Swaps | None = None,
        rank: tuple[int, int] = (0, 1),
    ) -> None:
        """Set up the batches of pairs of a store, whose cells have these shares; `maskable` pieces [V] may be hidden.

        A joined pair has at most `max_length` tokens. `clusters` has a number for each pair, for `order = "cluster"`;
        `rank`, a process and the number of all, reads its part of every batch.
        """
        self._store, self._stage, self._seed, self._maskable = store, stage, seed, maskable
        self._longest_pair = min(2 * stage.max_tokens, max_length)
        self._clusters, self._teacher, self._swaps = clusters, teacher, swaps
        self._rank, self._world = rank
        self._sampler = Sampler(store.cell_starts, shares, batch_size=stage.batch_size, window=stage.window, seed=seed)
        self._cuts: dict[int, NDArray[np.int64]] = {}  # the batches of the latest windows

    def since(self, step: int) -> Iterator[Batch]:
        """The batches of the steps from `step` to the last of the stage."""
        return ahead(self._read(now) for now in range(step, self._stage.steps))

    def drawn(self) -> Rows:
        """All pairs that the stage will draw, each once, in order."""
        seen = np.zeros(len(self._store), np.bool_)
        for window in range((self._stage.steps - 1) // self._stage.window + 1):
            seen[self._store.pairs(self._sampler.rows(window))] = True
        return seen.nonzero()[0]

    def _pairs(self, step: int) -> Rows:
        """The pairs of a step, over all ranks."""
        window = step // self._stage.window
        if window not in self._cuts:
            self._cuts[window] = self._order(window)
        pairs: Rows = self._cuts[window][step % self._stage.window]
        return pairs

    def _order(self, window: int) -> NDArray[np.int64]:
        pairs = self._store.pairs(self._sampler.rows(window))
        if self._clusters is not None:
            pairs = pairs[np.argsort(self._clusters[pairs], kind="stable")]
        elif self._stage.order == "length":
            lengths = self._store.lengths(pairs, 0) + self._store.lengths(pairs, 1)
            pairs = pairs[np.argsort(lengths, kind="stable")]
        cut = pairs.reshape(self._stage.window, self._stage.batch_size)
        return self._sampler.shuffle(window, cut) if self._stage.shuffle else cut

    def _read(self, step: int) -> Batch:
        stage = self._stage
        pairs = self._pairs(step)
        here = np.split(pairs, self._world)[self._rank]
        sides = self._store.tokens(here, 0, stage.max_tokens), self._store.tokens(here, 1, stage.max_tokens)
        group = torch.from_numpy(self._store.group[pairs].astype(np.int64))
        self._store.forget()
        copied = None
        if self._swaps is not None:
            languages = self._store.languages(here)
            sides, copied = self._swaps.replace_last(sides, languages, round(stage.swapped * len(pairs)))
            here = here[: len(here) - len(copied)]
            group[len(here) :] = ~group[copied]
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + step * self._world + self._rank)
        hiding = hide(sides, stage.objectives, self._maskable, self._longest_pair, generator)
        for old in [window for window in self._cuts if (window + 1) * stage.window <= earliest_step(stage, step)]:
            del self._cuts[old]
        if self._teacher is None:
            return Batch(hiding, group, copied=copied)
        vectors = torch.from_numpy(self._teacher.rows(here))
        return Batch(hiding, group, vectors, self._queue(step, self._teacher), copied)

    def _queue(self, step: int, teacher: TeacherVectors) -> Tensor | None:
        """What a first-in-first-out queue holds before a step: a function of the step, so that it needs no saving."""
        if self._stage.objectives.co is None:
            return None
        earlier = map(self._pairs, range(earliest_step(self._stage, step), step))
        pairs = np.concatenate([np.zeros(0, np.int64), *earlier])
        return torch.from_numpy(teacher.rows(pairs[-self._stage.objectives.co.queue :]))


def earliest_step(stage: StageConfig, step: int) -> int:
    """The first step whose pairs are needed at a step: its own, or where its queue begins."""
    co = stage.objectives.co
    return max(0, step - -(-co.queue // stage.batch_size)) if co else step


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each prepared in a thread while the one before is used."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, iterator, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, iterator, None)
            yield item
