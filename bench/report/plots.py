"""The plots of a report; each says one thing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from xsent.bench.grid.fit import fit
from xsent.bench.report.tables import heading, order, scaled
from xsent.bench.results import Axis, Measurement

USUAL: dict[str, Axis] = {"precision": "int8", "backend": "onnx", "threads": 1}
SCORES = ("tatoeba", "sib", "sts")
SIZE = (7, 4.2)  # inches
POINTS = 10  # of a score, the least that a panel spans: tenths of a point should look like what they are


@dataclass(frozen=True)
class Plot:
    """A picture.

    Attributes:
        name: Of its file.
        title: What it shows.
        figure: The drawing.
    """

    name: str
    title: str
    figure: Figure


def latency_by_layers(measured: Sequence[Measurement]) -> Plot | None:
    """Median milliseconds by layers, a line for each length, with its straight line."""
    rows, told = usual(measured, "precision", "backend", "threads")
    rows = [m for m in rows if "p50_ms" in m.figures]
    if len(axis_values(rows, "layers")) < 2:
        return None
    figure, axes = canvas()
    for tokens, colour in coloured(axis_values(rows, "tokens")):
        points = series(rows, "layers", "p50_ms", tokens=tokens)
        axes.plot(*zip(*points, strict=True), "o", color=colour, label=str(tokens))
        if len(points) > 1:
            line, ends = fit(points), np.array([points[0][0], points[-1][0]])
            axes.plot(ends, line.start + line.slope * ends, color=colour, linewidth=1)
    finish(axes, "layers", "milliseconds, median", "tokens")
    axes.set_xticks(axis_values(rows, "layers"))
    axes.set_ylim(bottom=0)
    return titled("latency-by-layers", f"One sentence by layers, and the straight line through it ({told})", figure)


def throughput_by_length(measured: Sequence[Measurement]) -> Plot | None:
    """Sentences a second by tokens, a line for each number of layers."""
    rows, told = usual(measured, "precision", "backend", "threads")
    rows = [m for m in rows if "sentences_per_second" in m.figures]
    lengths = axis_values(rows, "tokens")
    if len(lengths) < 2:
        return None
    figure, axes = canvas()
    for layers, colour in coloured(axis_values(rows, "layers")):
        points = series(rows, "tokens", "sentences_per_second", layers=layers)
        axes.plot(*zip(*points, strict=True), "o-", color=colour, label=str(layers))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    finish(axes, "tokens of a sentence", "sentences a second", "layers")
    axes.set_xticks(lengths, [str(tokens) for tokens in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return titled("throughput-by-length", f"Sentences a second by their length ({told})", figure)


def memory_by_layers(measured: Sequence[Measurement]) -> Plot | None:
    """MiB after the first sentence by layers, and after the most that all took, a colour for each precision."""
    rows, told = usual(measured, "backend")
    layers = axis_values(rows, "layers")
    if len(layers) < 2 or not points_of(rows):
        return None
    figure, axes = canvas()
    precisions = axis_values(rows, "precision")
    for drawn, (precision, colour) in enumerate(coloured(precisions)):
        width = 1.5 * (len(precisions) - drawn)  # lines that lie on each other are both seen
        for sentences, style in dict(zip(points_of(rows), ("-", "--"), strict=False)).items():
            points = series(rows, "layers", f"mib_{sentences}", precision=precision)
            if points:
                name, (line,) = f"{precision}, {sentences:,}", axes.plot(*zip(*points, strict=True), f"o{style}")
                line.set(label=name, color=colour, linewidth=width, markersize=4 + width)
    finish(axes, "layers", "MiB, resident", "precision, sentences")
    axes.set_xticks(layers)
    axes.set_ylim(bottom=0)
    return titled("memory-by-layers", f"Memory of a process by layers ({told})", figure)


def quality_by_milliseconds(measured: Sequence[Measurement]) -> Plot | None:
    """Scores of bundles against the time of a sentence."""
    return against(measured, "p50_ms", "milliseconds, one sentence", "quality-by-milliseconds")


def quality_by_megabytes(measured: Sequence[Measurement]) -> Plot | None:
    """Scores of bundles against their size."""
    return against(measured, "bytes", "megabytes on the disk", "quality-by-megabytes")


def against(measured: Sequence[Measurement], cost: str, label: str, name: str) -> Plot | None:
    """A panel for each score, with a point a bundle.

    Args:
        measured: The bundles.
        cost: The figure from left to right.
        label: What it is called.
        name: Of the plot.
    """
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
    return titled(name, f"Quality against {label.partition(',')[0]}", figure)


def usual(measured: Sequence[Measurement], *axes: str) -> tuple[list[Measurement], str]:
    """Measurements that are alike on these axes: as one runs it usually, or else as the first was."""
    rows = list(measured)
    for axis in axes:
        found = {m.axes[axis] for m in rows}
        wanted = USUAL[axis] if USUAL[axis] in found else next(iter(found), None)
        rows = [m for m in rows if m.axes[axis] == wanted]
    words = [f"{rows[0].axes[axis]} {axis}" if axis == "threads" else str(rows[0].axes[axis]) for axis in axes if rows]
    return rows, ", ".join(words).replace("1 threads", "1 thread")


def axis_values(rows: Iterable[Measurement], axis: str) -> list[Axis]:
    """The different values of an axis, in order."""
    return sorted({m.axes[axis] for m in rows}, key=order)


def series(rows: Iterable[Measurement], x: str, figure: str, **axes: Axis) -> list[tuple[float, float]]:
    """A figure by an axis, of the measurements that have these other axes."""
    chosen = (m for m in rows if figure in m.figures and axes.items() <= dict(m.axes).items())
    return sorted((float(m.axes[x]), m.figures[figure]) for m in chosen)


def points_of(rows: Iterable[Measurement]) -> list[int]:
    """The fewest and the most sentences after which memory was read everywhere."""
    found = [{int(name[4:]) for name in m.figures if name.startswith("mib_")} for m in rows]
    shared = set.intersection(*found) if found else set[int]()
    return sorted({min(shared), max(shared)}) if shared else []


def coloured(values: Sequence[Axis]) -> Iterable[tuple[Axis, tuple[float, ...]]]:
    """Values with colours from dark to light."""
    return zip(values, colormaps["viridis"](np.linspace(0, 0.85, len(values))).tolist(), strict=True)


def canvas() -> tuple[Figure, Axes]:
    """An empty drawing."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    return figure, axes


def finish(axes: Axes, x: str, y: str, legend: str) -> None:
    """Say what the axes and the lines are."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    named = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    named.sort(key=lambda line: -float(np.asarray(line.get_ydata())[-1]))  # from the top down, as one sees them end
    axes.legend(
        handles=named, title=legend, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, alignment="left"
    )


def titled(name: str, title: str, figure: Figure) -> Plot:
    """The drawing under its title."""
    figure.suptitle(title, fontsize=11)
    return Plot(name, title, figure)
