"""The plots of a report; each says one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from xsent.bench.fit import fit
from xsent.bench.report.tables import heading, order, scaled
from xsent.bench.results import Axis, Measurement

USUAL: dict[str, Axis] = {"precision": "int8", "backend": "onnx", "threads": 1}
SCORES = ("tatoeba", "sib", "sts")
POINTS = 10  # of a score, the least that a panel spans: tenths of a point should look like what they are

Measured = Sequence[Measurement]
Series = list[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """A picture."""

    name: str  # of its file
    title: str
    figure: Figure

    def png(self) -> bytes:
        """The picture as a file."""
        file = BytesIO()
        FigureCanvasAgg(self.figure)
        self.figure.savefig(file, format="png", dpi=120)
        return file.getvalue()


def latency_by_layers(measured: Measured) -> Plot | None:
    """Median milliseconds by layers, a line for each length, with its straight line."""
    rows, told = _usual([m for m in measured if "p50_ms" in m.figures], "precision", "backend", "threads")
    lines = {tokens: _series(rows, "layers", "p50_ms", tokens=tokens) for tokens in _values(rows, "tokens")}
    if len(_values(rows, "layers")) < 2:
        return None
    axes = _draw(lines, "o", ("layers", "milliseconds, median", "tokens"))
    for points, dots in zip(lines.values(), list(axes.get_lines()), strict=True):
        if len(points) > 1:
            line, ends = fit(points), np.array([points[0][0], points[-1][0]])
            axes.plot(ends, line.start + line.slope * ends, color=dots.get_color(), linewidth=1)
    axes.set_xticks(_values(rows, "layers"))
    axes.set_ylim(bottom=0)
    return _titled("latency-by-layers", f"One sentence by layers, and the straight line through it ({told})", axes)


def throughput_by_length(measured: Measured) -> Plot | None:
    """Sentences a second by tokens, a line for each number of layers."""
    figure = "sentences_per_second"
    rows, told = _usual([m for m in measured if figure in m.figures], "precision", "backend", "threads")
    lengths = _values(rows, "tokens")
    if len(lengths) < 2:
        return None
    lines = {layers: _series(rows, "tokens", figure, layers=layers) for layers in _values(rows, "layers")}
    axes = _draw(lines, "o-", ("tokens of a sentence", "sentences a second", "layers"))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(tokens) for tokens in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return _titled("throughput-by-length", f"Sentences a second by their length ({told})", axes)


def memory_by_layers(measured: Measured) -> Plot | None:
    """MiB after the first sentence by layers, and after the most that all took, a colour for each precision."""
    rows, told = _usual(measured, "backend")
    layers, precisions = _values(rows, "layers"), _values(rows, "precision")
    if len(layers) < 2 or not points_of(rows):
        return None
    lines: dict[Axis, Series] = {
        f"{precision}, {sentences:,}": _series(rows, "layers", f"mib_{sentences}", precision=precision)
        for precision in precisions
        for sentences in points_of(rows)
    }
    axes = _draw(lines, "o-", ("layers", "MiB, resident", "precision, sentences"), shades=len(precisions))
    axes.set_xticks(layers)
    axes.set_ylim(bottom=0)
    return _titled("memory-by-layers", f"Memory of a process by layers ({told})", axes)


def quality_by_milliseconds(measured: Measured) -> Plot | None:
    """Scores of bundles against the time of a sentence."""
    return _against(measured, "p50_ms", "milliseconds, one sentence", "quality-by-milliseconds")


def quality_by_megabytes(measured: Measured) -> Plot | None:
    """Scores of bundles against their size."""
    return _against(measured, "bytes", "megabytes on the disk", "quality-by-megabytes")


def points_of(rows: Measured) -> list[int]:
    """The fewest and the most sentences after which memory was read everywhere."""
    found = [{int(name[4:]) for name in m.figures if name.startswith("mib_")} for m in rows]
    shared = set.intersection(*found) if found else set[int]()
    return sorted({min(shared), max(shared)}) if shared else []


def _against(measured: Measured, cost: str, label: str, name: str) -> Plot | None:
    """A panel for each score, with a point a bundle; the cost from left to right."""
    rows = [m for m in measured if cost in m.figures]
    scores = [score for score in SCORES if any(score in m.figures for m in rows)]
    if not scores:
        return None
    figure = Figure(figsize=(3.4 * len(scores) + 1.6, 3.8), layout="constrained")
    panels = figure.subplots(1, len(scores), squeeze=False)[0]
    for axes, score in zip(panels, scores, strict=True):
        for m, shape in zip(rows, cycle("osD^vP*X")):
            if score in m.figures:
                point, bundle = (scaled(cost, m.figures[cost]), m.figures[score]), str(m.axes["bundle"])
                axes.plot(*point, shape, label=bundle, markersize=9, fillstyle="none", markeredgewidth=2, clip_on=False)
        axes.margins(0.25)
        middle = sum(axes.get_ylim()) / 2
        axes.set_ylim(min(axes.get_ylim()[0], middle - POINTS / 2), max(axes.get_ylim()[1], middle + POINTS / 2))
        axes.set_xlim(left=0)
        axes.set_title(heading(score), fontsize=10)
        axes.set_xlabel(label)
        axes.grid(alpha=0.3)
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return _titled(name, f"Quality against {label.partition(',')[0]}", panels[0])


def _draw(lines: Mapping[Axis, Series], style: str, labels: tuple[str, str, str], shades: int = 0) -> Axes:
    """Lines from dark to light; so many shades have several lines, which then differ in style and width."""
    axes = Figure(figsize=(7, 4.2), layout="constrained").subplots()
    axes.grid(alpha=0.3)
    shades = shades or len(lines)
    colours = colormaps["viridis"](np.linspace(0, 0.85, shades)).tolist()
    for number, (name, points) in enumerate(lines.items()):
        shade, place = divmod(number * shades, len(lines))
        if points:
            (line,) = axes.plot(*zip(*points, strict=True), style, color=colours[shade], label=str(name))
            if shades < len(lines):  # lines that lie on each other are all seen
                line.set(linewidth=1.5 * (shades - shade), linestyle="--" if place else "-")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    # From the top down, as one sees them end.
    named = sorted(axes.get_lines(), key=lambda line: -float(np.asarray(line.get_ydata())[-1]))
    axes.legend(
        handles=named, title=labels[2], loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, alignment="left"
    )
    return axes


def _usual(measured: Measured, *axes: str) -> tuple[list[Measurement], str]:
    """Measurements that are alike on these axes: as one runs it usually, or else as the first was."""
    rows = list(measured)
    for axis in axes:
        found = {m.axes[axis] for m in rows}
        wanted = USUAL[axis] if USUAL[axis] in found else next(iter(found), None)
        rows = [m for m in rows if m.axes[axis] == wanted]
    words = [f"{rows[0].axes[axis]} {axis}" if axis == "threads" else str(rows[0].axes[axis]) for axis in axes if rows]
    return rows, ", ".join(words).replace("1 threads", "1 thread")


def _values(rows: Measured, axis: str) -> list[Axis]:
    """The different values of an axis, in order."""
    return sorted({m.axes[axis] for m in rows}, key=order)


def _series(rows: Measured, x: str, figure: str, **axes: Axis) -> Series:
    """A figure by an axis, of the measurements that have these other axes."""
    chosen = (m for m in rows if figure in m.figures and axes.items() <= dict(m.axes).items())
    return sorted((float(m.axes[x]), m.figures[figure]) for m in chosen)


def _titled(name: str, title: str, axes: Axes) -> Plot:
    """The drawing under its title."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.suptitle(title, fontsize=11)
    return Plot(name, title, figure)
