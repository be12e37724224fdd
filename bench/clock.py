"""How long the steps of a training take, measured where it asks for its batches."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from xsent.train.data.batching import Batch, Batches
from xsent.train.feed import Feed
from xsent.train.trainer import Trainer


@dataclass
class Clock:
    """What the steps of a training cost; a step begins when it asks for its batch.

    The last step is left out: validation follows it.
    """

    before: Callable[[int], object] = id  # called with the number of each step before it begins
    steps: list[float] = field(default_factory=list)  # seconds of each step on the wall
    processor: list[float] = field(default_factory=list)  # the same in processor time, of all threads
    waits: list[float] = field(default_factory=list)  # seconds of each of them spent waiting for the batch

    def measured(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches, with the clock running."""
        while True:
            self.before(len(self.steps))
            asked, busy = time.perf_counter(), time.process_time()
            batch = next(batches, None)
            waited = time.perf_counter() - asked
            if batch is None:
                for measured in (self.steps, self.processor, self.waits):
                    del measured[-1:]
                return
            yield batch
            self.steps.append(time.perf_counter() - asked)
            self.processor.append(time.process_time() - busy)
            self.waits.append(waited)

    @property
    def step(self) -> float:
        """Median seconds of a step."""
        return median(self.steps)

    @property
    def waiting(self) -> float:
        """Share of the time spent waiting for data."""
        return sum(self.waits) / sum(self.steps)

    def attach(self, trainer: Trainer) -> Trainer:
        """The same training, with the clock running."""
        trainer.feed = _ClockedFeed(trainer.feed, self)
        return trainer


class _ClockedFeed(Feed):
    def __init__(self, feed: Feed, clock: Clock) -> None:
        vars(self).update(vars(feed))
        self._clock = clock

    def batches(self, *of_stage: Any, **settings: Any) -> Batches:  # noqa: ANN401  whatever it takes
        return _ClockedBatches(super().batches(*of_stage, **settings), self._clock)


class _ClockedBatches(Batches):
    def __init__(self, batches: Batches, clock: Clock) -> None:
        self._batches, self._clock = batches, clock

    def since(self, step: int) -> Iterator[Batch]:
        return self._clock.measured(self._batches.since(step))
