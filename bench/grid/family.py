"""Encoders of one precision and backend that differ in their layers alone: they take turns in fresh processes."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xsent.bench.grid.cells import Turn, run_cell
from xsent.bench.grid.child import Task
from xsent.bench.grid.figures import latencies, memory, start
from xsent.bench.results import Axis, Measurement
from xsent.errors import DataError
from xsent.export.form import Precision

logger = logging.getLogger(__name__)

LONG = 100_000  # sentences


@dataclass(frozen=True)
class Family:
    """Encoders that differ in their layers alone.

    Attributes:
        precision: float32, int8 or int4-table.
        backend: onnx, numpy or openvino.
        layers: Numbers of layers.
        threads: Sentences encoded at once.
        turns: Turns of each, a fresh process each.
        stream: Sentences over which the memory is watched; 0 for not.
        long: Numbers of layers whose memory is watched over 100,000 instead, for its slope.
    """

    precision: Precision
    backend: str
    layers: Sequence[int]
    threads: int = 1
    turns: int = 3
    stream: int = 1000
    long: Sequence[int] = ()

    def axes(self, layers: int) -> dict[str, Axis]:
        """What is measured, but for the threads and tokens."""
        return {"layers": layers, "precision": self.precision, "backend": self.backend}

    def measure(
        self, folders: Mapping[int, Path], *, lengths: Sequence[int], seconds: float, fail: Callable[[str], None]
    ) -> Iterator[Measurement]:
        """Measure them; an encoder that fails is left out of the turns after.

        A turn before the others, which is not kept, has the system read the files.

        Args:
            folders: The bundle of each number of layers.
            lengths: Tokens of the sentences that are timed.
            seconds: Seconds for each length in a turn.
            fail: Is told what failed, and why.

        Yields:
            Latency and start once all turns are over, or on Ctrl-C those of the turns so far; then memory.
        """
        task = Task("", self.backend, self.threads, lengths, seconds)
        tasks = {layers: replace(task, bundle=str(folder)) for layers, folder in folders.items()}
        turns: dict[int, list[Turn]] = {layers: [] for layers in tasks}
        for layers in list(tasks):
            self._attempt(replace(tasks[layers], seconds=0), layers, tasks, [], fail)
        try:
            for number in range(self.turns):
                for layers in list(tasks):
                    logger.info("%s, turn %d", self.name(layers), number + 1)
                    self._attempt(tasks[layers], layers, tasks, turns[layers], fail)
        finally:
            for layers, done in turns.items():
                if done:
                    yield from latencies({**self.axes(layers), "threads": self.threads}, done)
                    if self.threads == 1:
                        yield start(self.axes(layers), done)
        for layers in list(tasks) if self.stream else []:
            stream = LONG if layers in self.long else self.stream
            logger.info("%s, memory over %s sentences", self.name(layers), f"{stream:,}")
            streams: list[Turn] = []
            self._attempt(replace(tasks[layers], lengths=(), stream=stream), layers, tasks, streams, fail)
            if streams:
                yield memory(self.axes(layers), streams[0])

    def name(self, layers: int) -> str:
        """One of them in words."""
        return f"{layers} layers, {self.precision}, {self.backend}, threads {self.threads}"

    def _attempt(
        self, task: Task, layers: int, tasks: dict[int, Task], turns: list[Turn], fail: Callable[[str], None]
    ) -> None:
        """One turn; an encoder that fails has no more tasks."""
        try:
            turns.append(run_cell(task))
        except (DataError, OSError) as error:
            fail(f"{self.name(layers)}: {error}")
            del tasks[layers]
