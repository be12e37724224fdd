"""What a run measured, in the form that is written and reported."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from xsent.files.atomic import atomic_file

FORMAT_VERSION = 1

Axis = str | int | float


@dataclass(frozen=True)
class Measurement:
    """The figures of one thing."""

    group: str  # latency, start, memory, size, share, training, quality or peers
    axes: Mapping[str, Axis]  # what was measured: layers, precision, backend, threads, tokens, system, …
    figures: Mapping[str, float]  # what came out; the unit ends the name, as in `p50_ms` and `peak_mib`
    # The same figures by turn, where there were several; their spread says what a difference is worth.
    turns: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @staticmethod
    def of_turns(group: str, axes: Mapping[str, Axis], turns: Sequence[Mapping[str, float]]) -> "Measurement":
        """The medians over turns, and the turns."""
        by_turn = {figure: [turn[figure] for turn in turns] for figure in turns[0]}
        return Measurement(group, axes, {figure: median(values) for figure, values in by_turn.items()}, by_turn)

    def __str__(self) -> str:
        return " ".join([self.group, *(f"{axis}={value}" for axis, value in self.axes.items())])


@dataclass
class Results:
    """A whole run."""

    command: str  # the command line
    environment: Mapping[str, Any] = field(default_factory=dict)  # machine and software, see `xsent_bench.machine`
    measurements: list[Measurement] = field(default_factory=list)  # in the order they were made
    notes: list[str] = field(default_factory=list)  # what a reader must know: random weights, a busy machine
    failures: list[str] = field(default_factory=list)  # what could not be measured, and why

    def of(self, group: str) -> list[Measurement]:
        """The measurements of a group."""
        return [m for m in self.measurements if m.group == group]

    def write(self, path: Path) -> None:
        """Write them as JSON."""
        with atomic_file(path) as file:
            file.write(json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1).encode() + b"\n")
