"""Encoders of one precision and backend that differ in their layers alone: they take turns in fresh processes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from xsent.bench.results import Axis, Measurement
from xsent.bench.turn import BLOCK, Task, Turn, take_turns
from xsent.export.form import Precision

LONG = 100_000  # sentences
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
STEADY = 50_000  # sentences of a stream, below which its growth is rows of the table that are read for the first time


@dataclass(frozen=True)
class Family:
    """Encoders that differ in their layers alone."""

    precision: Precision
    backend: str
    layers: Sequence[int]
    threads: int = 1  # sentences encoded at once
    turns: int = 3  # of each, a fresh process each
    stream: int = 1000  # sentences over which the memory is watched; 0 for not
    long: Sequence[int] = ()  # numbers of layers whose memory is watched over 100,000 instead, for its slope

    def name(self, layers: int) -> str:
        """One of them in words."""
        return f"{layers} layers, {self.precision}, {self.backend}, threads {self.threads}"

    def measure(
        self, folders: Mapping[int, Path], lengths: Sequence[int], seconds: float, fail: Callable[[str], None]
    ) -> Iterator[Measurement]:
        """Measure the bundle of each number of layers, so many seconds a length and turn; one that fails is left out.

        Yields:
            Latency and start once all turns are over, or on Ctrl-C those of the turns so far; then memory.
        """
        settings: Mapping[str, str | int] = {"backend": self.backend, "threads": self.threads}
        numbers = {self.name(layers): layers for layers in folders}
        tasks = {name: Task(str(folders[n]), "xsent", settings, lengths, seconds) for name, n in numbers.items()}
        unseen, found, streams = ({name: list[Turn]() for name in tasks} for _ in range(3))
        first = {name: replace(task, seconds=0) for name, task in tasks.items()}
        take_turns(first, unseen, fail)  # has the system read the files
        tasks = {name: tasks[name] for name in first}
        axes = {name: self._axes(layers) for name, layers in numbers.items()}
        try:
            for _ in range(self.turns):
                take_turns(tasks, found, fail)
        finally:
            for name, done in found.items():
                if done:
                    yield from latencies({**axes[name], "threads": self.threads}, done)
                    if self.threads == 1:
                        yield start(axes[name], done)
        if self.stream:
            watched = {name: LONG if numbers[name] in self.long else self.stream for name in tasks}
            tasks = {name: replace(task, lengths=(), stream=watched[name]) for name, task in tasks.items()}
            take_turns(tasks, streams, fail)
            yield from (memory(axes[name], streams[name][0]) for name in tasks)

    def _axes(self, layers: int) -> dict[str, Axis]:
        """What is measured, but for the threads and tokens."""
        return {"layers": layers, "precision": self.precision, "backend": self.backend}


def latencies(axes: Mapping[str, Axis], turns: Sequence[Turn]) -> Iterator[Measurement]:
    """The figures of each length: percentiles over all sentences of all turns, rates as the median turn's.

    A percentile beyond which there would be no whole sentence is left out.
    """
    for tokens in turns[0].ms:
        every = [one.ms[tokens] for one in turns]
        together = [ms for one in every for ms in one]
        shares = {name: share for name, share in PERCENTILES.items() if (100 - share) * len(together) >= 100}
        figures = {name: float(np.percentile(together, share)) for name, share in shares.items()}
        by_turn = {name: [float(np.percentile(ms, share)) for ms in every] for name, share in shares.items()}
        rates = [one.rates[tokens] for one in turns]
        figures |= {"sentences_per_second": median(rates), "tokens_per_second": tokens * median(rates)}
        by_turn |= {"sentences_per_second": rates, "tokens_per_second": [tokens * rate for rate in rates]}
        yield Measurement("latency", {**axes, "tokens": tokens}, figures, by_turn)


def start(axes: Mapping[str, Axis], turns: Sequence[Turn]) -> Measurement:
    """The first vector of a process."""
    return Measurement.of_turns("start", axes, [{"first_ms": t.first_ms, "first_mib": t.first_mib} for t in turns])


def memory(axes: Mapping[str, Axis], turn: Turn) -> Measurement:
    """The memory over a stream; if it is long enough to be steady by then, with what its second half adds by 10,000."""
    most = max(turn.memory)
    figures = {"mib_1": turn.first_mib, **{f"mib_{n}": turn.memory[n] for n in turn.memory if n in (BLOCK, most)}}
    if most >= STEADY:
        half = min(number for number in turn.memory if number >= most / 2)
        figures["slope_mib"] = (turn.memory[most] - turn.memory[half]) / (most - half) * 10_000
    return Measurement("memory", axes, {**figures, "peak_mib": turn.peak_mib})
