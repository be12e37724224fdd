"""Measurements as tables: what their axes and figures are called, and how many digits are worth showing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xsent.bench.results import Axis, Measurement

NONE = "–"
UNITS = {"ms": "ms", "mib": "MiB", "seconds": "s", "bytes": "MB", "share": "%", "second": "/s"}
NAMES = {  # what its last word does not say
    "bytes": "MB",
    "first_ms": "first vector, ms",
    "first_mib": "MiB after the first vector",
    "latency_ms": "one sentence, ms",
    "slope_mib": "MiB more per 10,000",
    "peak_mib": "peak MiB",
    "sentences_per_second": "sentences/s",
    "tokens_per_second": "tokens/s",
    "gib_per_second": "memory, GiB/s",
    "tokenisation": "tokenisation, % of the time",
    "int8_peak": "% of the int8 peak",
    "float_peak": "% of the float peak",
    "tatoeba": "Tatoeba xx→en, P@1",
    "sib": "SIB-200 en→xx, accuracy",
    "sts": "STS, Spearman × 100",
}
TABLE_5 = {  # of mao2021, what layers cost: memory in MB, and minutes per 10,000 steps at batch 128 on a V100
    1: (7_135, 19),
    2: (11_607, 24),
    3: (16_804, 29),
    4: (21_923, 34),
    6: (28_024, 44),
}
SHARES = {"tokenisation", "int8_peak", "float_peak"}


@dataclass(frozen=True)
class Table:
    """Cells with headings; the first column has names, the others have numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The first column stands left, the others right."""
        lines = [self.headings, ["---", *["---:"] * (len(self.headings) - 1)], *self.rows]
        return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)


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
    if figure in SHARES or figure.endswith("_share"):
        return 100 * value
    return value / 1e6 if figure.endswith("bytes") else value


def shown(measurement: Measurement, figure: str) -> str:
    """A figure in a cell."""
    found = measurement.figures.get(figure)
    if found is None:
        return NONE
    return f"{found:,.0f}" if figure == "rounds" else number(scaled(figure, found))


def listing(measurements: Sequence[Measurement]) -> Table:
    """One row a measurement, one column a figure; the axes are the row's name."""
    figures = list(dict.fromkeys(figure for m in measurements for figure in m.figures))
    axes = list(dict.fromkeys(axis for m in measurements for axis in m.axes))
    rows = [
        [*(str(m.axes.get(axis, NONE)) for axis in axes), *(shown(m, figure) for figure in figures)]
        for m in measurements
    ]
    return Table([*axes, *(heading(figure) for figure in figures)], rows)


def pivot(measurements: Sequence[Measurement], column: str, figures: Sequence[str]) -> Table:
    """One column for each value of an axis, one row for each combination of the others; figures by slashes."""
    values = sorted({m.axes[column] for m in measurements}, key=order)
    rows: dict[tuple[tuple[str, Axis], ...], dict[Axis, Measurement]] = {}
    for m in measurements:
        rest = tuple((axis, value) for axis, value in m.axes.items() if axis != column)
        rows.setdefault(rest, {})[m.axes[column]] = m
    axes = list(dict.fromkeys(axis for rest in rows for axis, _ in rest))
    cells = [
        [
            *(str(dict(rest).get(axis, NONE)) for axis in axes),
            *(" / ".join(shown(found[v], figure) for figure in figures) if v in found else NONE for v in values),
        ]
        for rest, found in rows.items()
    ]
    return Table([*axes, *(f"{value} {column}" for value in values)], cells)


def order(value: Axis) -> tuple[float, str]:
    """Numbers by size, then words by letter."""
    return (float("inf"), value) if isinstance(value, str) else (value, "")


def beside_table_5(ours: Mapping[int, tuple[float, float]], headings: tuple[str, str]) -> Table:
    """Time and memory by layers, and the paper's, each also as a multiple of one layer's."""
    rows = []
    for layers, costs in ours.items():
        cells = [str(layers)]
        for place, paper in ((0, 1), (1, 0)):
            cells += [number(costs[place]), number(costs[place] / ours[1][place]) if 1 in ours else NONE]
            if layers in TABLE_5:
                cells += [number(TABLE_5[layers][paper]), number(TABLE_5[layers][paper] / TABLE_5[1][paper])]
            else:
                cells += [NONE, NONE]
        rows.append(cells)
    times = "× 1 layer"
    return Table(["layers", headings[0], times, "paper, min", times, headings[1], times, "paper, MB", times], rows)
