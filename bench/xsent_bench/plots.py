"""The plots of a report, on a transparent background in colours that are visible on white and on black.

matplotlib takes a second to import, so it is imported when a plot is drawn: the processes that measure draw none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from xsent_bench.results import NONE, Axis, Measurement, heading, order, systems_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USUAL: Mapping[str, Axis] = {"precision": "int8", "backend": "onnx", "threads": 1}
SCORES = ("xx_en", "sklearn", "similarity")
TIME = "ms_32_words"
LEAST_SPAN = 10  # smallest span of a panel in points of a score, so that tenths of a point look small
MARKERS = "osD^vP*X"  # of systems
GREY = "#808080"
COLOURED = ("text.color", "xtick.color", "ytick.color", "grid.color", "axes.edgecolor", "axes.labelcolor")
STYLE: Mapping[Any, object] = {**dict.fromkeys(COLOURED, GREY), "axes.titlesize": 10, "savefig.transparent": True}

Measured = Sequence[Measurement]
Series = list[tuple[float, float]]
Label = tuple[str, str]  # a system, and what the line is of


@dataclass(frozen=True)
class Plot:
    """A plot."""

    name: str  # of its file, without the suffix
    title: str
    figure: "Figure"


def latency_by_layers(measured: Measured) -> Plot | None:
    """Median milliseconds by layers, with a fitted line for each length and model; None with one depth."""
    rows, alike = _usual(measured, "precision", "backend", "threads")
    if len(depths := _values(rows, "layers")) < 2:
        return None
    series = {
        (system, f"{n}"): _series(rows, "layers", "p50_ms", tokens=n, system=system)
        for system in systems_in(rows)
        for n in _values(rows, "tokens")
    }
    axes = _draw(series, "", ("layers", "milliseconds, median", "tokens"), xticks=depths)
    for points, dots in zip(series.values(), list(axes.get_lines()), strict=True):
        if len(points) > 1:  # one model's; a line through two models would mean nothing
            x, y = np.transpose(points)
            axes.plot(x, np.polyval(np.polyfit(x, y, 1), x), color=dots.get_color(), linewidth=1)
    axes.set_ylim(bottom=0)
    return _titled("latency-by-layers", f"One sentence by layers, and the straight line through it ({alike})", axes)


def throughput_by_length(measured: Measured) -> Plot | None:
    """Sentences per second by tokens, with a line for each depth; None with one length."""
    rows, alike = _usual(measured, "precision", "backend", "threads")
    if len(lengths := _values(rows, "tokens")) < 2:
        return None
    series = {
        (system, f"{n}"): _series(rows, "tokens", "sentences_per_second", layers=n, system=system)
        for system in systems_in(rows)
        for n in _values([m for m in rows if m.has(system=system)], "layers")
    }
    labels = "tokens of a sentence", "sentences per second", "layers"
    axes = _draw(series, "-", labels, xscale="log", yscale="log", xticks=lengths, xticklabels=lengths)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return _titled("throughput-by-length", f"Sentences per second by length ({alike})", axes)


def memory_by_layers(measured: Measured) -> Plot | None:
    """MiB after one sentence and after 1,000, by layers and precision; None with one depth."""
    rows, alike = _usual(measured, "backend")
    if len(depths := _values(rows, "layers")) < 2:
        return None
    series = {
        (system, f"{precision}, {after}"): _series(rows, "layers", f"mib_{after}", precision=precision, system=system)
        for system in systems_in(rows)
        for precision in _values(rows, "precision")
        for after in (1, 1000)
    }
    axes = _draw(series, "-", ("layers", "MiB, resident", "precision, sentences"), xticks=depths)
    axes.set_ylim(bottom=0)
    return _titled("memory-by-layers", f"Memory of a process by layers ({alike})", axes)


def quality_by_time(measured: Measured) -> Plot | None:
    """Scores of systems against milliseconds: a panel for each score, a line through the depths of a bundle."""
    from matplotlib.ticker import LogLocator

    scores = [score for score in SCORES if any(score in m.figures for m in measured)]
    if not scores:
        return None
    systems = dict[Axis, list[Measurement]]()  # each with its depths
    for m in (m for m in measured if any(score in m.figures for score in scores)):
        systems.setdefault(m.axes["system"], []).append(m)
    figure = _figure(3.1 * len(scores) + 2.4, 3.6)
    panels = figure.subplots(1, len(scores), squeeze=False)[0]
    for axes, score in zip(panels, scores, strict=True):
        for (name, depths), marker in zip(systems.items(), cycle(MARKERS)):
            x, y = np.transpose([(m.figures[TIME], m.figures.get(score, np.nan)) for m in depths])
            axes.plot(x, y, f"{marker}-", label=name, markersize=8, fillstyle="none", linewidth=1)
            for m, *point in zip(depths, x, y, strict=True):
                text = str(m.axes["layers"]).replace(NONE, "")
                axes.annotate(text, point, (0, -14), textcoords="offset points", ha="center", size=8)
        low, high = axes.get_ylim()
        middle = (low + high) / 2
        axes.set_ylim(min(low, middle - LEAST_SPAN / 2) - 1, max(high, middle + LEAST_SPAN / 2))
        axes.set(xscale="log", xlabel="milliseconds, 32 words", title=heading(score))
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))  # more labels would overlap
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(alpha=0.3)
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return _titled("quality-by-milliseconds", "Quality against time, layers at the points", panels[0])


def _figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, in our style."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update(STYLE)
    return Figure(figsize=(width, height), layout="constrained")


def _draw(series: Mapping[Label, Series], style: str, labels: tuple[str, str, str], **settings: Any) -> "Axes":  # noqa: ANN401
    """Lines from dark to light, with a marker for each system; the labels are for x, y and the legend."""
    from matplotlib import colormaps

    axes = _figure(7, 4.2).subplots()
    axes.grid(alpha=0.3)
    systems, kinds = (list(dict.fromkeys(label[place] for label in series)) for place in (0, 1))
    colours = dict(zip(kinds, colormaps["viridis"](np.linspace(0.2, 0.85, len(kinds))).tolist(), strict=True))
    markers = dict(zip(systems, cycle(MARKERS)))
    for (system, kind), points in series.items():
        label = f"{system}, {kind}" if len(systems) > 1 else kind
        look = {"marker": markers[system], "linestyle": style, "color": colours[kind]}
        axes.plot(*np.reshape(points, (-1, 2)).T, label=label, **look)
    axes.set(xlabel=labels[0], ylabel=labels[1], **settings)
    axes.legend(title=labels[2], loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, reverse=True)
    return axes


def _usual(measured: Measured, *axes: str) -> tuple[Measured, str]:
    """The measurements with one value on each of these axes, and these values in words.

    The value is the usual one, or that of the first measurement if none has it.
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
    return sorted((float(m.axes[x]), m.figures[figure]) for m in rows if m.has(**axes))


def _titled(name: str, title: str, axes: "Axes") -> Plot:
    """The drawing under its title."""
    figure: Any = axes.get_figure()
    figure.suptitle(title, fontsize=11)
    return Plot(name, title, figure)
