"""Plots of an ablation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from xsent.bench.ablation.groups import CLASSIFICATION, RETRIEVAL, Group, Row
from xsent.bench.ablation.results import COSTS, Value, values
from xsent.bench.papers import TABLE_5
from xsent.files import atomic_file


def plot_group(group: Group, measured: Mapping[str, Mapping[str, Value]], path: Path) -> None:
    """Retrieval and classification of the rows of a group as bars, with the deviation over seeds.

    Args:
        group: The group.
        measured: The numbers of each row, by label and heading.
        path: The PNG to write.
    """
    series = [name for name in (RETRIEVAL, CLASSIFICATION) if any(name in numbers for numbers in measured.values())]
    if not series:  # another first language than the papers'
        series = sorted({name for numbers in measured.values() for name in numbers})[:2]
    labels = [row.label for row in group.rows if measured[row.label]]
    figure = Figure(figsize=(8, 1.2 + 0.4 * len(labels)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(series)
    for number, name in enumerate(series):
        found = [(place, measured[label][name]) for place, label in enumerate(labels) if name in measured[label]]
        axes.barh(
            [place + (number - (len(series) - 1) / 2) * height for place, _ in found],
            [value.mean for _, value in found],
            height,
            xerr=[value.deviation or 0.0 for _, value in found],
            label=name,
        )
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("per cent")
    axes.set_title(group.title)
    axes.legend()
    save(figure, path)


def plot_layer_costs(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Time and memory of training by number of layers, as multiples of one layer's, beside the paper's (table 5)."""
    ours = {n: values(Row("", f"layers-{n}"), results) for n in (0, 1, 2, 3, 4, 6)}
    ours = {n: numbers for n, numbers in ours.items() if numbers}
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    for axes, name, field in zip(figure.subplots(1, 2), COSTS, ("minutes", "memory"), strict=True):
        paper = {n: float(getattr(cost, field)) for n, cost in TABLE_5.items()}
        axes.plot(list(paper), [number / paper[1] for number in paper.values()], "o--", label="mao2021, V100")
        if 1 in ours:
            own = {n: numbers[name].mean / ours[1][name].mean for n, numbers in ours.items()}
            axes.plot(list(own), list(own.values()), "o-", label="ours")
        axes.set_xlabel("layers")
        axes.set_title(f"{name}, one layer = 1")
        axes.legend()
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    FigureCanvasAgg(figure)
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=120)
