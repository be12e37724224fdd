"""The report of an ablation: a table and a plot a group, the papers' numbers beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

from matplotlib.figure import Figure

from xsent.bench.ablation.groups import CLASSIFICATION, RETRIEVAL, Group, Row, groups
from xsent.bench.ablation.plan import Plan
from xsent.bench.machine import processor
from xsent.bench.report.pages import Section, write_pages
from xsent.bench.report.plots import Plot
from xsent.bench.report.tables import NONE, TABLE_5, Table
from xsent.bench.results import Results

VALIDATION = {"p1": "held-out P@1", "loss": "held-out loss"}  # in a checkpoint, and as a heading
COSTS = ("s/1,000 steps", "peak MiB")
UNSEEN = ("wall s/1,000 steps", "waiting %")  # measured, and not in the tables
DECIMALS = {"held-out loss": 3, "peak MiB": 0}  # one elsewhere


@dataclass(frozen=True)
class Value:
    """A number over the seeds."""

    mean: float
    deviation: float | None  # of a sample; None of a single one

    def cell(self, decimals: int) -> str:
        """The number in a table, with its deviation if it has one."""
        text = f"{self.mean:.{decimals}f}"
        return text if self.deviation is None else f"{text} ± {self.deviation:.{decimals}f}"


Values = Mapping[str, Value]  # by heading


def write_report(plan: Plan, results: Results, folder: Path) -> Path:
    """Write `ablation.md`, which is returned, `ablation.html` and `plots/` from the rows that are finished."""
    about = f"`{results.command}` on {processor()}, {plan.threads} thread{'s' * (plan.threads > 1)} a row."
    finished = {m.axes["variant"] for m in results.of("ablation")}
    shown = [group for group in groups(plan) if any(row.variant.key in finished for row in group.rows)]
    parts = [Section("How it was measured", points=method(plan)), *(section(group, results) for group in shown)]
    return write_pages("Ablation", about, parts, folder, "ablation")


def method(plan: Plan) -> list[str]:
    """What the tables are about."""
    first = plan.languages[0]
    return [
        f"Every row sees {plan.pairs:,} pairs (English with {', '.join(plan.languages)}; up to {plan.characters} "
        f"characters a side, {plan.max_tokens} tokens read in training; sources sampled with temperature 0.5), with "
        f"{plan.vocabulary:,} pieces and, unless said, {plan.dim} dimensions. Rows over the shared table start from "
        f"one that saw {plan.table_pairs:,} pairs.",
        f"Tatoeba: P@1 by cosine among up to 1,000 sentences. XSR en→{first}: P@1 of 2,000 queries among the rows' "
        f"translations and the first {plan.distractors:,} distractors, fewer than the protocol's 200,000; {first}→en: "
        "among the rows' English sides.",
        "SIB en→xx: accuracy of linear topic heads trained on English (701 sentences) and tested in xx, the mean of "
        "five seeds; L2 chosen by cross-validation within the training file. STS: Spearman's correlation × 100, test "
        "split.",
        "Held-out P@1 and loss: on the corpus' own validation pairs. s/1,000 steps: processor seconds. peak MiB: of "
        "the training process. ± is the deviation over seeds; a row without it has one seed.",
        "The papers' numbers are on other data (ParaCrawl, Europarl, MLDoc) and budgets a thousand times larger: "
        "compare orders and differences, not levels.",
    ]


def section(group: Group, results: Results) -> Section:
    """The table of one group, the papers' order of its rows and ours, and its plot."""
    measured = {row.label: values(row, results) for row in group.rows}
    names = headings(results)
    rows = []
    for row in group.rows:
        found = measured[row.label]
        cells = [found[name].cell(DECIMALS.get(name, 1)) if name in found else NONE for name in names]
        paper = [f"{number:.1f}" for number in row.paper] or [NONE] * len(group.paper)
        rows.append([row.label, *cells, *paper])
    plots = [plot_group(group, measured)]
    if group.name == "layers":
        plots.append(plot_layer_costs(group, measured))
    table = Table(["", *names, *group.paper], rows)
    return Section(group.title, group.note, orders(group, measured), [table], plots)


def headings(results: Results) -> list[str]:
    """What was measured of all rows: scores in the order in which they are measured, then the rest."""
    every = [m.figures for m in results.of("ablation")]
    rest = [*VALIDATION.values(), *COSTS]
    common = [name for name in every[0] if all(name in figures for figures in every)] if every else []
    return [*(name for name in common if name not in (*rest, *UNSEEN)), *rest]


def values(row: Row, results: Results) -> dict[str, Value]:
    """The numbers of a row by heading; none while it is not finished."""
    numbers: dict[str, list[float]] = {}
    ending = f" {row.measures}" if row.measures else ""  # of a prefix: it was not trained apart
    for m in results.of("ablation", variant=row.variant.key):
        for name, number in m.figures.items():
            if name.endswith(ending):
                numbers.setdefault(name.removesuffix(ending), []).append(number)
    return {name: Value(fmean(column), stdev(column) if len(column) > 1 else None) for name, column in numbers.items()}


def orders(group: Group, measured: Mapping[str, Values]) -> list[str]:
    """The paper's order of the rows and ours, where there are numbers of both."""
    found = []
    for column, name in enumerate((RETRIEVAL, CLASSIFICATION)[: len(group.paper)]):
        ours = {row.label: measured[row.label] for row in group.rows if row.paper}
        if len(ours) > 1 and all(name in numbers for numbers in ours.values()):
            paper = {row.label: row.paper[column] for row in group.rows if row.paper}
            found.append(f"{name}, best first, ours: {descending({label: v[name].mean for label, v in ours.items()})}")
            found.append(f"{group.paper[column]}, best first: {descending(paper)}")
    return found


def descending(numbers: Mapping[str, float]) -> str:
    """Names from the largest number to the smallest, equal ones joined."""
    labels: Sequence[str] = sorted(numbers, key=lambda label: -numbers[label])
    text = labels[0]
    for before, label in pairwise(labels):
        text += f" {'=' if numbers[label] == numbers[before] else '>'} {label}"
    return text


def plot_group(group: Group, measured: Mapping[str, Values]) -> Plot:
    """Retrieval and classification of the rows of a group as bars, with the deviation over seeds."""
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
    return Plot(group.name, group.title, figure)


def plot_layer_costs(group: Group, measured: Mapping[str, Values]) -> Plot:
    """Time and memory of training by layers over the table, as multiples of one layer's, beside the paper's."""
    stages = {row.label: row.variant.stage.num_layers for row in group.rows if row.variant.warm}
    ours = {number: measured[label] for label, number in stages.items() if measured[label]}
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    for axes, name, place in zip(figure.subplots(1, 2), COSTS, (1, 0), strict=True):
        paper = {number: costs[place] / TABLE_5[1][place] for number, costs in TABLE_5.items()}
        axes.plot(list(paper), list(paper.values()), "o--", label="mao2021, V100")
        own = {number: found[name].mean for number, found in ours.items() if name in found}
        if 1 in own:
            axes.plot(list(own), [mean / own[1] for mean in own.values()], "o-", label="ours")
        axes.set_xlabel("layers")
        axes.set_title(f"{name}, one layer = 1")
        axes.legend()
    return Plot("layer-costs", "What layers cost", figure)
