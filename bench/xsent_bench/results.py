"""What a run measured: figures by what was measured, their names and units, and how they are written down."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from xsent.files.atomic import atomic_file

FORMAT_VERSION = 1
NONE = "–"  # shown where there is no figure
UNITS = {"ms": "ms", "mib": "MiB", "seconds": "s", "bytes": "MB", "second": "/s"}
HEADINGS = {  # of figures whose name and unit do not say enough
    "bytes": "MB",
    "first_ms": "first vector, ms",
    "first_mib": "MiB after the first vector",
    "latency_ms": "one sentence, ms",
    "slope_mib": "MiB more per 10,000",
    "peak_mib": "peak MiB",
    "step_seconds": "s/step",
    "pairs_per_second": "pairs/s",
    "sentences_per_second": "sentences/s",
    "tokens_per_second": "tokens/s",
    "gib_per_second": "memory, GiB/s",
    "tokenisation": "tokenisation, % of the time",
    "int8_peak": "% of the int8 peak",
    "float_peak": "% of the float peak",
    "tatoeba": "Tatoeba xx→en, P@1",
    "across": "in English by all layers, P@1",
    "sib": "SIB-200 en→xx, accuracy",
    "sts": "STS, Spearman × 100",
}
SHARES = {"tokenisation", "int8_peak", "float_peak"}  # figures between 0 and 1 that are shown in per cent

Axis = str | int | float


@dataclass(frozen=True)
class Measurement:
    """The figures of one thing."""

    group: str  # latency, start, memory, size, share, training, quality or peers
    axes: Mapping[str, Axis]  # what was measured: layers, precision, backend, threads, tokens, system, …
    figures: Mapping[str, float]  # the unit ends the name, as in `p50_ms` and `peak_mib`
    turns: Mapping[str, Sequence[float]] = field(default_factory=dict)  # the same figures by turn, to see their spread

    @staticmethod
    def of_turns(group: str, axes: Mapping[str, Axis], turns: Sequence[Mapping[str, float]]) -> "Measurement":
        """The medians over turns, with the turns."""
        by_turn = {figure: [turn[figure] for turn in turns] for figure in turns[0]}
        return Measurement(group, axes, {figure: median(values) for figure, values in by_turn.items()}, by_turn)

    def __str__(self) -> str:
        return " ".join([self.group, *(f"{axis}={value}" for axis, value in self.axes.items())])


@dataclass
class Results:
    """The results of a run."""

    command: str  # the command line
    environment: Mapping[str, Any] = field(default_factory=dict)  # machine and software, see `xsent_bench.machine`
    measurements: list[Measurement] = field(default_factory=list)  # in the order in which they were made
    notes: list[str] = field(default_factory=list)  # what a reader must know: random weights, a busy machine
    failures: list[str] = field(default_factory=list)  # what could not be measured, and why

    def of(self, group: str) -> list[Measurement]:
        """The measurements of a group."""
        return [m for m in self.measurements if m.group == group]

    def write(self, path: Path) -> None:
        """Write the results as JSON."""
        with atomic_file(path) as file:
            file.write(json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1).encode() + b"\n")


def heading(figure: str) -> str:
    """The name of a figure for people, with its unit."""
    if figure in HEADINGS:
        return HEADINGS[figure]
    rest, _, unit = figure.rpartition("_")
    if rest == "mib":
        return f"MiB after {int(unit):,} sentence{'s' if unit != '1' else ''}"
    return f"{rest.replace('_', ' ')}, {UNITS[unit]}" if rest and unit in UNITS else figure.replace("_", " ")


def number(value: float) -> str:
    """A number with three significant digits, at most four decimals, and commas between thousands."""
    size = abs(value)
    decimals = 0 if size >= 100 or not size else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.1 else 4
    return f"{value:,.{decimals}f}"


def shown(measurement: Measurement, figure: str) -> str:
    """A figure as the text of a cell, in the unit of its heading."""
    value = measurement.figures.get(figure)
    if value is None:
        return NONE
    return number(100 * value if figure in SHARES else value / 1e6 if figure.endswith("bytes") else value)


def by_others(
    measurements: Iterable[Measurement], axis: str
) -> dict[tuple[tuple[str, Axis], ...], dict[Axis, Measurement]]:
    """Measurements by their values on all other axes, then by the value on this one."""
    found: dict[tuple[tuple[str, Axis], ...], dict[Axis, Measurement]] = {}
    for m in measurements:
        found.setdefault(tuple((name, value) for name, value in m.axes.items() if name != axis), {})[m.axes[axis]] = m
    return found


def order(value: Axis) -> tuple[float, str]:
    """A key for sorting: numbers by size, then words by letter."""
    return (float("inf"), value) if isinstance(value, str) else (value, "")


def fit_line(points: Mapping[float, float]) -> tuple[float, float, float, float]:
    """The line through at least two figures by layers, by least squares.

    Returns its value at no layers, what a layer adds, the root mean square of the residuals, and R².
    """
    layers, values = np.array(list(points.items()), dtype=float).T
    slope, start = np.polyfit(layers, values, 1)
    square = ((values - start - slope * layers) ** 2).mean()
    variance = values.var()
    return float(start), float(slope), float(np.sqrt(square)), float(1 - square / variance) if variance else 1.0
