"""Measurements as tables: what axes and figures are called, how many digits are worth showing, lines over layers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, stdev

import numpy as np

from xsent_bench.pages import Table
from xsent_bench.results import Axis, Measurement

NONE = "–"
UNITS = {"ms": "ms", "mib": "MiB", "seconds": "s", "bytes": "MB", "second": "/s"}
NAMES = {  # what its last word does not say
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
SHARES = {"tokenisation", "int8_peak", "float_peak"}


def number(value: float) -> str:
    """A number with three digits that count, but at most four decimals, and commas between thousands."""
    size = abs(value)
    decimals = 0 if size >= 100 or not size else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.1 else 4
    return f"{value:,.{decimals}f}"


def heading(figure: str) -> str:
    """What a figure is called, with its unit."""
    if figure in NAMES:
        return NAMES[figure]
    rest, _, unit = figure.rpartition("_")
    if rest == "mib":
        return f"MiB after {int(unit):,} sentence{'s' if unit != '1' else ''}"
    return f"{rest.replace('_', ' ')}, {UNITS[unit]}" if rest and unit in UNITS else figure.replace("_", " ")


def scaled(figure: str, value: float) -> float:
    """A figure in the unit of its heading."""
    return 100 * value if figure in SHARES else value / 1e6 if figure.endswith("bytes") else value


def shown(measurement: Measurement, figure: str) -> str:
    """A figure in a cell."""
    found = measurement.figures.get(figure)
    return NONE if found is None else number(scaled(figure, found))


def listing(measurements: Sequence[Measurement]) -> Table:
    """One row a measurement, one column a figure; the axes are the row's name."""
    figures = list(dict.fromkeys(figure for m in measurements for figure in m.figures))
    axes = list(dict.fromkeys(axis for m in measurements for axis in m.axes))
    rows = [
        [*(str(m.axes.get(axis, NONE)) for axis in axes), *(shown(m, figure) for figure in figures)]
        for m in measurements
    ]
    return Table([*axes, *map(heading, figures)], rows)


def by_tokens(measurements: Sequence[Measurement], *figures: str) -> Table:
    """One column for each length, one row for each combination of the other axes; figures by slashes."""
    lengths = sorted({m.axes["tokens"] for m in measurements}, key=order)
    rows = by_others(measurements, "tokens")
    cells = [
        [
            *(str(value) for _, value in rest),
            *(" / ".join(shown(found[n], figure) for figure in figures) if n in found else NONE for n in lengths),
        ]
        for rest, found in rows.items()
    ]
    return Table([*(axis for axis, _ in next(iter(rows))), *(f"{n} tokens" for n in lengths)], cells)


def by_others(
    measurements: Iterable[Measurement], axis: str
) -> dict[tuple[tuple[str, Axis], ...], dict[Axis, Measurement]]:
    """Measurements by all other axes, then by this one."""
    found: dict[tuple[tuple[str, Axis], ...], dict[Axis, Measurement]] = {}
    for m in measurements:
        found.setdefault(tuple((name, value) for name, value in m.axes.items() if name != axis), {})[m.axes[axis]] = m
    return found


def order(value: Axis) -> tuple[float, str]:
    """Numbers by size, then words by letter."""
    return (float("inf"), value) if isinstance(value, str) else (value, "")


def mean_cell(numbers: Sequence[float], decimals: int) -> str:
    """The mean, with the deviation of the sample if there are several."""
    if not numbers:
        return NONE
    deviation = f" ± {stdev(numbers):.{decimals}f}" if len(numbers) > 1 else ""
    return f"{fmean(numbers):.{decimals}f}{deviation}"


def descending(numbers: Mapping[str, float]) -> str:
    """Names from the largest number to the smallest, equal ones joined."""
    labels = sorted(numbers, key=lambda label: -numbers[label])
    signs = ("=" if numbers[label] == numbers[before] else ">" for before, label in pairwise(labels))
    return labels[0] + "".join(f" {sign} {label}" for sign, label in zip(signs, labels[1:], strict=True))


def fit_line(points: Mapping[float, float]) -> tuple[float, float, float, float]:
    """The line through figures by layers, at least two, by least squares.

    Its value at no layers, what a layer adds, the root of the mean square of the distances from it, and R².
    """
    layers, values = np.array(list(points.items()), dtype=float).T
    slope, start = np.polyfit(layers, values, 1)
    square, spread = ((values - start - slope * layers) ** 2).mean(), values.var()
    return float(start), float(slope), float(np.sqrt(square)), float(1 - square / spread) if spread else 1.0


def lines(latencies: Sequence[Measurement]) -> Table | None:
    """The lines of what was measured with three or more numbers of layers: two points are always on one."""
    rows, names = list[list[str]](), list[str]()
    for rest, found in by_others(latencies, "layers").items():
        if len(found) > 2:
            *line, explained = fit_line({float(n): m.figures["p50_ms"] for n, m in found.items()})
            rows.append([*(str(value) for _, value in rest), *map(number, line), f"{explained:.4f}"])
            names = [axis for axis, _ in rest]
    return Table([*names, "no layer, ms", "a layer, ms", "residual, ms", "R²"], rows) if rows else None
