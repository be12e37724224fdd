"""How long the steps of a training take, measured where it asks for its batches."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from xsent.train.data.batching import Batch, Batches
from xsent.train.feed import Feed
from xsent.train.trainer import Trainer


def nothing(step: int) -> None:
    """What is done before a step unless asked otherwise."""


@dataclass
class Clock:
    """What the steps of a training cost; a step begins when it asks for its batch.

    The last step is left out: validation follows it.

    Attributes:
        before: Called with the number of each step before it begins.
        steps: Seconds of each step on the wall.
        processor: The same in seconds of processor time, of all threads.
        waits: Seconds of each of them spent waiting for the batch.
    """

    before: Callable[[int], None] = nothing
    steps: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

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
    def processor_step(self) -> float:
        """Mean processor seconds of a step; unlike the wall's they do not count what other processes took."""
        return sum(self.processor) / len(self.processor)

    @property
    def waiting(self) -> float:
        """Share of the time spent waiting for data."""
        return sum(self.waits) / sum(self.steps)


class ClockedBatches(Batches):
    """Batches with a clock."""

    def __init__(self, batches: Batches, clock: Clock) -> None:
        self._batches, self._clock = batches, clock

    def since(self, step: int) -> Iterator[Batch]:
        """The batches of the steps from `step` on."""
        return self._clock.measured(self._batches.since(step))


class ClockedFeed(Feed):
    """The data of a training, with a clock."""

    def __init__(self, feed: Feed, clock: Clock) -> None:
        vars(self).update(vars(feed))
        self._clock = clock

    def batches(self, *of_stage: Any, **settings: Any) -> Batches:  # noqa: ANN401  whatever it takes
        """The batches of a stage."""
        return ClockedBatches(super().batches(*of_stage, **settings), self._clock)


class ClockedTrainer(Trainer):
    """A training whose steps are measured."""

    def train_with(self, clock: Clock) -> Path:
        """Train all stages that are not finished.

        Args:
            clock: What measures the steps.

        Returns:
            The last stage's checkpoint.
        """
        self.feed = ClockedFeed(self.feed, clock)
        return self.train()
