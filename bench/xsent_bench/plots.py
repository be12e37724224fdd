"""The plots of a report: the finding is the title, dark text is on white, and a colour means a number of layers.

matplotlib takes a second to import, so it is imported when a plot is drawn: the processes that measure draw none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from xsent_bench import OURS
from xsent_bench.results import NONE, Axis, Measurement, heading, order, systems_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USUAL: Mapping[str, Axis] = {"precision": "int8", "backend": "onnx", "threads": 1}
SCORES = {"xx_en": "Finding translations", "sklearn": "Topics learnt in English", "similarity": "Similarity"}
TIME = "ms_32_words"
TOKENS = 32  # of the sentences that tables, and titles of plots, are about
LEAST_SPAN = 10  # smallest span of a panel in points of a score, so that tenths of a point look small
WIDTH = 5  # of a plot in inches, so that text of 10 points has 10 pixels on a phone
MARKERS = "osD^vP*X"  # of systems
INK, RULES = "#1b2626", "#c8cfce"  # text and lines, and the grid
COLOURED = ("text.color", "xtick.color", "ytick.color", "axes.edgecolor", "axes.labelcolor")
STYLE: Mapping[Any, object] = {**dict.fromkeys(COLOURED, INK), "grid.color": RULES, "axes.titlesize": 10}

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
    axes = _draw(series, "", ("layers", f"milliseconds, median\n({alike})", "tokens"), xticks=depths, ylim=(0, None))
    for points, dots in zip(series.values(), list(axes.get_lines()), strict=True):
        if len(points) > 1:  # one model's; a line through two models would mean nothing
            x, y = np.transpose(points)
            axes.plot(x, np.polyval(np.polyfit(x, y, 1), x), color=dots.get_color(), linewidth=1)
    (_, length), points = next(iter(_of_usual_length(series).items()))
    x, y = np.transpose(points)
    slope = np.polyfit(x, y, 1)[0] if len(points) > 1 else 0
    return _titled("latency-by-layers", f"Each layer adds about {slope:.2g} ms to a sentence of {length} tokens", axes)


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
    labels = "tokens of a sentence", f"sentences per second\n({alike})", "layers"
    axes = _draw(series, "-", labels, xscale="log", yscale="log", xticks=lengths, xticklabels=lengths)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    most = max(rate for points in series.values() for _, rate in points)
    return _titled(
        "throughput-by-length", f"Up to {most:,.0f} sentences per second, fewer with length and layers", axes
    )


def memory_by_layers(measured: Measured) -> Plot | None:
    """MiB after one sentence and after 1,000, by layers; None with one depth."""
    rows, alike = _usual(measured, "precision", "backend")
    if len(depths := _values(rows, "layers")) < 2:
        return None
    series = {
        (system, f"{after:,}"): _series(rows, "layers", f"mib_{after}", system=system)
        for system in systems_in(rows)
        for after in (1, 1000)
    }
    axes = _draw(series, "-", ("layers", f"MiB, resident\n({alike})", "sentences"), xticks=depths, ylim=(0, None))
    least, most = (of(figure for points in series.values() for _, figure in points) for of in (min, max))
    return _titled("memory-by-layers", f"A process needs {least:.0f} to {most:.0f} MiB", axes)


def quality_by_time(measured: Measured) -> Plot | None:
    """Scores of systems against milliseconds: a panel for each score, a line through the depths of a bundle."""
    scores = [score for score in SCORES if any(score in m.figures for m in measured)]
    if not scores:
        return None
    systems = dict[str, list[Measurement]]()  # each with its depths; a model that is run in two ways by the faster one
    for m in sorted(measured, key=lambda m: m.figures.get(TIME, np.inf)):
        if any(score in m.figures for score in scores):
            name = _public_name(m)
            if name not in systems or m.axes["system"] == systems[name][0].axes["system"]:
                systems.setdefault(name, []).append(m)
    figure = _figure(2 * len(scores) + 0.5)
    panels = figure.subplots(len(scores), sharex=True, squeeze=False)[:, 0]
    for axes, score in zip(panels, scores, strict=True):
        _draw_panel(axes, score, systems)
    panels[-1].set_xlabel("milliseconds, 32 words")
    title = "Quality against time: up and left is better; the axes do not start at 0"
    return _titled("quality-by-milliseconds", title, panels[0])


def _public_name(measurement: Measurement) -> str:
    """What people call a system: ours by its name, another by its model."""
    if measurement.axes["layers"] != NONE:
        return str(measurement.axes["system"])
    return str(measurement.axes["model"]).split(",")[0].replace("universal-sentence-encoder", "USE")


def _draw_panel(axes: "Axes", score: str, systems: Mapping[str, Measured]) -> None:
    """One score of all systems; the title says who is ahead, and by how much."""
    from matplotlib.ticker import LogLocator

    best = dict[str, float]()
    slowest = max(m.figures[TIME] for depths in systems.values() for m in depths)
    for (name, depths), marker in zip(systems.items(), cycle(MARKERS)):
        scored = [m for m in depths if score in m.figures]
        if not scored:
            continue
        x, y = np.transpose([(m.figures[TIME], m.figures[score]) for m in scored])
        best[name] = max(y)
        axes.plot(x, y, "-", color=INK, linewidth=1)
        for m, point in zip(scored, zip(x, y, strict=True), strict=True):
            axes.plot(*point, marker, color=_colour(m.axes["layers"]), markersize=8)
            text = _label(name, m, scored)
            away, side = ((9, -3), "left") if name in text else ((-6, 5), "right")
            if point[0] == slowest:  # a label to its right would not fit
                away, side = (6, -17), "right"
            axes.annotate(text, point, away, textcoords="offset points", ha=side)
    low, high = axes.get_ylim()
    middle = (low + high) / 2
    axes.set_ylim(min(low, middle - LEAST_SPAN / 2) - 1, max(high, middle + LEAST_SPAN / 2) + 1)
    axes.set(xscale="log", ylabel=heading(score), title=_finding(score, best))
    axes.margins(x=0.08)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))  # more labels would overlap
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid()


def _label(name: str, measurement: Measurement, depths: Measured) -> str:
    """The label of a point: the layers of a bundle, with its name at the last of them."""
    layers = measurement.axes["layers"]
    if layers == NONE:
        return name
    return f"{name}, {layers} layers" if measurement is depths[-1] else f"{layers}"


def _finding(score: str, best: Mapping[str, float]) -> str:
    """Who is ahead, from the best score of each system."""
    title = SCORES[score]
    others = {name: value for name, value in best.items() if name != OURS}
    if not others or OURS not in best:
        return title
    rival = max(others, key=others.__getitem__)
    lead = best[OURS] - others[rival]
    first = OURS if lead >= 0 else rival
    return f"{title}:\n{first} is ahead by {abs(lead):.1f} points"


def _colour(layers: Axis) -> Any:  # noqa: ANN401
    """The colour of a number of layers in every plot: the more layers, the darker; other systems are black."""
    from matplotlib import colormaps

    return INK if isinstance(layers, str) else colormaps["viridis"](0.55 - 0.55 * min(float(layers), 6) / 6)


def _figure(height: float) -> "Figure":
    """An empty figure of this height in inches, in our style."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update(STYLE)
    return Figure(figsize=(WIDTH, height), layout="constrained")


def _draw(series: Mapping[Label, Series], style: str, labels: tuple[str, str, str], **settings: Any) -> "Axes":  # noqa: ANN401
    """Lines with a marker for each system; the labels are for x, y and what the lines are of."""
    axes = _figure(3.6).subplots()
    axes.grid()
    systems = list(dict.fromkeys(system for system, _ in series))
    markers = dict(zip(systems, cycle(MARKERS)))
    ends = dict[str, tuple[float, float]]()
    for (system, kind), points in series.items():
        label = f"{system}, {kind}" if len(systems) > 1 else kind
        colour = _colour(int(kind)) if labels[2] == "layers" else INK
        x, y = np.reshape(points, (-1, 2)).T
        axes.plot(x, y, label=label, marker=markers[system], linestyle=style, color=colour)
        ends |= {label: points[-1]} if points else {}
    axes.set(xlabel=labels[0], ylabel=labels[1], **settings)
    _name_lines(axes, ends, labels[2])
    return axes


def _name_lines(axes: "Axes", ends: Mapping[str, tuple[float, float]], what: str) -> None:
    """Write the label of each line beside its end, and above all what the labels are."""
    to_axes = axes.transScale + axes.transLimits
    heights = {label: float(to_axes.transform(end)[1]) for label, end in ends.items()}
    place = -1.0
    for label in sorted(heights, key=heights.__getitem__):
        place = max(heights[label], place + 0.06)  # labels of close lines do not overlap
        axes.text(1.02, place, label, transform=axes.transAxes, va="center")
    axes.text(1.02, max(1.0, place + 0.08), what, transform=axes.transAxes, va="center", weight="bold")


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


def _of_usual_length(series: Mapping[Label, Series]) -> dict[Label, Series]:
    """The lines of the sentences of `TOKENS`, or all if there are none."""
    return {label: points for label, points in series.items() if label[1] == f"{TOKENS}"} or dict(series)


def _values(rows: Measured, axis: str) -> list[Axis]:
    """The different values of an axis, in order."""
    return sorted({m.axes[axis] for m in rows}, key=order)


def _series(rows: Measured, x: str, figure: str, **axes: Axis) -> Series:
    """A figure by an axis, of the measurements with these values on other axes."""
    return sorted((float(m.axes[x]), m.figures[figure]) for m in rows if m.has(**axes))


def _titled(name: str, title: str, axes: "Axes") -> Plot:
    """The drawing under its title."""
    figure: Any = axes.get_figure()
    figure.suptitle(re.sub("(?<=[,;]) ", "\\n", title), fontsize=11)
    return Plot(name, title, figure)
