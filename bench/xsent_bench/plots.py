"""The plots of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from xsent_bench.results import Axis, Measurement, by_others, fit_line, heading, order

USUAL: Mapping[str, Axis] = {"precision": "int8", "backend": "onnx", "threads": 1}
SCORES = ("tatoeba", "sib", "sts")
LEAST_SPAN = 10  # points of a score that a panel spans at least, so that tenths of a point look small

Measured = Sequence[Measurement]
Series = list[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """A picture."""

    name: str  # of its file, without ending
    title: str
    figure: Figure


def latency_by_layers(measured: Measured) -> Plot | None:
    """Median milliseconds by layers, with a fitted line for each length; None with one depth."""
    rows, alike = _usual(measured, "precision", "backend", "threads")
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
    return _titled("latency-by-layers", f"One sentence by layers, and the straight line through it ({alike})", axes)


def throughput_by_length(measured: Measured) -> Plot | None:
    """Sentences a second by tokens, a line for each depth; None with one length."""
    rows, alike = _usual(measured, "precision", "backend", "threads")
    lengths = _values(rows, "tokens")
    if len(lengths) < 2:
        return None
    depths = _values(rows, "layers")
    series = {layers: _series(rows, "tokens", "sentences_per_second", layers=layers) for layers in depths}
    axes = _draw(series, "o-", ("tokens of a sentence", "sentences a second", "layers"))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(tokens) for tokens in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return _titled("throughput-by-length", f"Sentences a second by their length ({alike})", axes)


def memory_by_layers(measured: Measured) -> Plot | None:
    """MiB after the first sentence and after the most that all took, by layers and precision; None with one depth."""
    rows, alike = _usual(measured, "backend")
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
    return _titled("memory-by-layers", f"Memory of a process by layers ({alike})", axes)


def quality_by_time(measured: Measured) -> Plot | None:
    """Scores of bundles against milliseconds: a panel for each score, a line for each bundle, points by layers."""
    scores = [score for score in SCORES if any(score in m.figures for m in measured)]
    if not scores:
        return None
    figure = Figure(figsize=(3.0 * len(scores) + 2.2, 3.4), layout="constrained")
    panels = figure.subplots(1, len(scores), squeeze=False)[0]
    style = {"markersize": 9, "fillstyle": "none", "markeredgewidth": 2, "linewidth": 1, "clip_on": False}
    for axes, score in zip(panels, scores, strict=True):
        for (others, depths), marker in zip(by_others(measured, "layers").items(), cycle("osD^vP*X")):
            found = {layers: m.figures for layers, m in depths.items() if score in m.figures}
            points = np.reshape([(figures["p50_ms"], figures[score]) for figures in found.values()], (-1, 2))
            axes.plot(*points.T, f"{marker}-", label=dict(others)["bundle"], **style)
            for layers, point in zip(found, points, strict=True):
                axes.annotate(str(layers), point, (0, -14), textcoords="offset points", ha="center", fontsize=8)
        axes.margins(0.25)
        low, high = axes.get_ylim()
        middle = (low + high) / 2
        axes.set_ylim(min(low, middle - LEAST_SPAN / 2), max(high, middle + LEAST_SPAN / 2))
        axes.set_xlim(left=0)
        axes.set_title(heading(score), fontsize=10)
        axes.set_xlabel("milliseconds, one sentence")
        axes.grid(alpha=0.3)
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return _titled("quality-by-milliseconds", "Quality against time, layers at each point", panels[0])


def _draw(series: Mapping[Axis, Series], style: str, labels: tuple[str, str, str]) -> Axes:
    """Lines from dark to light; the labels are those of x, y and the legend."""
    axes = Figure(figsize=(7, 4.2), layout="constrained").subplots()
    axes.grid(alpha=0.3)
    colours = colormaps["viridis"](np.linspace(0, 0.85, len(series))).tolist()
    for (name, points), colour in zip(series.items(), colours, strict=True):
        axes.plot(*np.reshape(points, (-1, 2)).T, style, color=colour, label=str(name))
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.legend(title=labels[2], loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, reverse=True)
    return axes


def _usual(measured: Measured, *axes: str) -> tuple[Measured, str]:
    """The measurements with one value on each of these axes, and these values in words.

    The value is the usual one, or that of the first measurement where there is none with it.
    """
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
    """A figure by an axis, of the measurements with these values on other axes."""
    return sorted((float(m.axes[x]), m.figures[figure]) for m in rows if axes.items() <= dict(m.axes).items())


def _titled(name: str, title: str, axes: Axes) -> Plot:
    """The drawing under its title."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.suptitle(title, fontsize=11)
    return Plot(name, title, figure)
