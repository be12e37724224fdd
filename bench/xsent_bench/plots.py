"""The plots of a report; each says one thing."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from xsent_bench.pages import Plot
from xsent_bench.results import Axis, Measurement
from xsent_bench.tables import by_others, fit_line, heading, order

USUAL: Mapping[str, Axis] = {"precision": "int8", "backend": "onnx", "threads": 1}
SCORES = ("tatoeba", "sib", "sts")
POINTS = 10  # of a score, the least that a panel spans: tenths of a point should look like what they are

Measured = Sequence[Measurement]
Series = list[tuple[float, float]]


def latency_by_layers(measured: Measured) -> Plot | None:
    """Median milliseconds by layers, a line for each length, with its straight line."""
    rows, told = _usual(measured, "precision", "backend", "threads")
    if len(_values(rows, "layers")) < 2:
        return None
    series = {tokens: _series(rows, "layers", "p50_ms", tokens=tokens) for tokens in _values(rows, "tokens")}
    axes = _draw(series, "o", ("layers", "milliseconds, median", "tokens"))
    for points, dots in zip(series.values(), list(axes.get_lines()), strict=True):
        if len(points) > 1:
            start, slope, *_ = fit_line(dict(points))
            ends = np.array([points[0][0], points[-1][0]])
            axes.plot(ends, start + slope * ends, color=dots.get_color(), linewidth=1)
    axes.set_xticks(_values(rows, "layers"))
    axes.set_ylim(bottom=0)
    return _titled("latency-by-layers", f"One sentence by layers, and the straight line through it ({told})", axes)


def throughput_by_length(measured: Measured) -> Plot | None:
    """Sentences a second by tokens, a line for each number of layers."""
    rows, told = _usual(measured, "precision", "backend", "threads")
    lengths = _values(rows, "tokens")
    if len(lengths) < 2:
        return None
    numbers = _values(rows, "layers")
    series = {layers: _series(rows, "tokens", "sentences_per_second", layers=layers) for layers in numbers}
    axes = _draw(series, "o-", ("tokens of a sentence", "sentences a second", "layers"))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(tokens) for tokens in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return _titled("throughput-by-length", f"Sentences a second by their length ({told})", axes)


def memory_by_layers(measured: Measured) -> Plot | None:
    """MiB after the first sentence by layers, and after the most that all took, a line for each precision."""
    rows, told = _usual(measured, "backend")
    shared = set.intersection(*({name for name in m.figures if name.startswith("mib_")} for m in rows))
    points = sorted(shared, key=lambda name: int(name[4:]))
    if len(_values(rows, "layers")) < 2 or not points:
        return None
    series: dict[Axis, Series] = {
        f"{precision}, {int(name[4:]):,}": _series(rows, "layers", name, precision=precision)
        for precision in _values(rows, "precision")
        for name in dict.fromkeys([points[0], points[-1]])
    }
    axes = _draw(series, "o-", ("layers", "MiB, resident", "precision, sentences"))
    axes.set_xticks(_values(rows, "layers"))
    axes.set_ylim(bottom=0)
    return _titled("memory-by-layers", f"Memory of a process by layers ({told})", axes)


def bars(name: str, title: str, rows: Mapping[str, Mapping[str, Sequence[float]]], series: Sequence[str]) -> Plot:
    """Per cents of rows as bars, one a series, each the mean of its numbers with the deviation of the sample."""
    figure = Figure(figsize=(8, 1.2 + 0.4 * len(rows)), layout="constrained")
    axes, height = figure.subplots(), 0.8 / len(series)
    for place, one in enumerate(series):
        found = {row: numbers[one] for row, numbers in enumerate(rows.values()) if one in numbers}
        axes.barh(
            [row + (place - (len(series) - 1) / 2) * height for row in found],
            [np.mean(numbers) for numbers in found.values()],
            height,
            xerr=[np.std(numbers, ddof=1) if len(numbers) > 1 else 0.0 for numbers in found.values()],
            label=one,
        )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set(xlabel="per cent", title=title)
    axes.legend()
    return Plot(name, title, figure)


def quality_by_time(measured: Measured) -> Plot | None:
    """Scores of bundles against milliseconds: a panel for each score, a line a bundle, layers beside its points."""
    scores = [score for score in SCORES if any(score in m.figures for m in measured)]
    if not scores:
        return None
    figure = Figure(figsize=(3.0 * len(scores) + 2.2, 3.4), layout="constrained")
    panels = figure.subplots(1, len(scores), squeeze=False)[0]
    for axes, score in zip(panels, scores, strict=True):
        for (rest, depths), shape in zip(by_others(measured, "layers").items(), cycle("osD^vP*X")):
            found = {layers: m.figures for layers, m in depths.items() if score in m.figures}
            points = np.reshape([(figures["p50_ms"], figures[score]) for figures in found.values()], (-1, 2))
            style = {"markersize": 9, "fillstyle": "none", "markeredgewidth": 2, "linewidth": 1, "clip_on": False}
            axes.plot(*points.T, f"{shape}-", label=dict(rest)["bundle"], **style)
            for layers, point in zip(found, points, strict=True):
                axes.annotate(str(layers), point, (0, -14), textcoords="offset points", ha="center", fontsize=8)
        axes.margins(0.25)
        middle = sum(axes.get_ylim()) / 2
        axes.set_ylim(min(axes.get_ylim()[0], middle - POINTS / 2), max(axes.get_ylim()[1], middle + POINTS / 2))
        axes.set_xlim(left=0)
        axes.set_title(heading(score), fontsize=10)
        axes.set_xlabel("milliseconds, one sentence")
        axes.grid(alpha=0.3)
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return _titled("quality-by-milliseconds", "Quality against time, layers beside each point", panels[0])


def _draw(series: Mapping[Axis, Series], style: str, labels: tuple[str, str, str]) -> Axes:
    """Lines from dark to light."""
    axes = Figure(figsize=(7, 4.2), layout="constrained").subplots()
    axes.grid(alpha=0.3)
    colours = colormaps["viridis"](np.linspace(0, 0.85, len(series))).tolist()
    for (name, points), colour in zip(series.items(), colours, strict=True):
        axes.plot(*np.reshape(points, (-1, 2)).T, style, color=colour, label=str(name))
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.legend(title=labels[2], loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, reverse=True)
    return axes


def _usual(measured: Measured, *axes: str) -> tuple[Measured, str]:
    """Measurements that are alike on these axes: as one runs it usually, or else as the first was."""
    for axis in axes:
        found = {m.axes[axis] for m in measured}
        wanted = USUAL[axis] if USUAL[axis] in found else measured[0].axes[axis]
        measured = [m for m in measured if m.axes[axis] == wanted]
    words = [f"{measured[0].axes[axis]}{' threads' * (axis == 'threads')}" for axis in axes]
    return measured, ", ".join(words).replace("1 threads", "1 thread")


def _values(rows: Measured, axis: str) -> list[Axis]:
    """The different values of an axis, in order."""
    return sorted({m.axes[axis] for m in rows}, key=order)


def _series(rows: Measured, x: str, figure: str, **axes: Axis) -> Series:
    """A figure by an axis, of the measurements that have these other axes."""
    return sorted((float(m.axes[x]), m.figures[figure]) for m in rows if axes.items() <= dict(m.axes).items())


def _titled(name: str, title: str, axes: Axes) -> Plot:
    """The drawing under its title."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.suptitle(title, fontsize=11)
    return Plot(name, title, figure)
