"""The report of an ablation: a Markdown table a group, the papers' numbers beside ours, and plots."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from xsent.bench.ablation.groups import CLASSIFICATION, RETRIEVAL, Group, groups
from xsent.bench.ablation.plan import Plan
from xsent.bench.ablation.plots import plot_group, plot_layer_costs
from xsent.bench.ablation.results import COSTS, VALIDATION, Value, headings, read_results, values
from xsent.bench.machine import processor
from xsent.bench.markdown import markdown_table
from xsent.files import atomic_file

Results = Mapping[str, list[dict[str, Any]]]
REPORT = "ablation.md"
DECIMALS = {"held-out loss": 3, "peak MiB": 0}  # one elsewhere


def write_report(plan: Plan, folder: Path, command: str) -> Path:
    """Write `ablation.md` and its plots from the rows that are finished.

    Returns:
        The file.
    """
    results = read_results(folder)
    (folder / "plots").mkdir(exist_ok=True)
    parts = [heading(plan, command)]
    for group in groups(plan):
        if any(row.key in results for row in group.rows):
            parts.append(section(group, results, folder))
    with atomic_file(folder / REPORT) as file:
        file.write("\n\n".join(parts).encode() + b"\n")
    return folder / REPORT


def heading(plan: Plan, command: str) -> str:
    """What the tables are about."""
    first = plan.languages[0]
    return "\n".join(
        [
            "# Ablation",
            "",
            f"`{command}` on {processor()}, {plan.threads} thread{'s' * (plan.threads > 1)} a row.",
            "",
            f"- Every row sees {plan.pairs:,} pairs (English with {', '.join(plan.languages)}; up to {plan.characters} "
            f"characters a side, {plan.max_tokens} tokens read in training; sources sampled with temperature 0.5), "
            f"with {plan.vocabulary:,} pieces and, unless said, {plan.dim} dimensions. Rows over the shared table "
            f"start from one that saw {plan.table_pairs:,} pairs.",
            "- Tatoeba: P@1 by cosine among up to 1,000 sentences. "
            f"XSR en→{first}: P@1 of 2,000 queries among the rows' translations and the first {plan.distractors:,} "
            f"distractors, fewer than the protocol's 200,000; {first}→en: among the rows' English sides.",
            "- SIB en→xx: accuracy of a linear topic probe trained on English (701 sentences) and tested in xx; "
            "regularisation chosen on the English development split. STS: Spearman's correlation × 100, test split.",
            "- Held-out P@1 and loss: on the corpus' own validation pairs. s/1,000 steps: processor seconds. peak MiB: "
            "of the training process. ± is the deviation over seeds; a row without it has one seed.",
            "- The papers' numbers are on other data (ParaCrawl, Europarl, MLDoc) and budgets a thousand times larger: "
            "compare orders and differences, not levels.",
        ]
    )


def section(group: Group, results: Results, folder: Path) -> str:
    """The table of one group and its plot."""
    measured = {row.label: values(row, dict(results)) for row in group.rows}
    names = [*headings(dict(results)), *VALIDATION.values(), *COSTS]
    rows = []
    for row in group.rows:
        cells = [cell(measured[row.label].get(name), DECIMALS.get(name, 1)) for name in names]
        paper = [f"{number:.1f}" for number in row.paper] or ["–"] * len(group.paper)
        rows.append([row.label, *cells, *paper])
    parts = [f"## {group.title}", group.note, markdown_table(["", *names, *group.paper], rows)]
    parts += orders(group, measured)
    plot = folder / "plots" / f"{group.name}.png"
    plot_group(group, measured, plot)
    parts.append(f"![{group.title}](plots/{plot.name})")
    if group.name == "layers":
        plot_layer_costs(dict(results), folder / "plots" / "layer-costs.png")
        parts.append("![What layers cost](plots/layer-costs.png)")
    return "\n\n".join(parts)


def cell(value: Value | None, decimals: int) -> str:
    """A number in a table, with its deviation if it has one."""
    if value is None:
        return "–"
    text = f"{value.mean:.{decimals}f}"
    return text if value.deviation is None else f"{text} ± {value.deviation:.{decimals}f}"


def orders(group: Group, measured: Mapping[str, Mapping[str, Value]]) -> list[str]:
    """The paper's order of the rows and ours, best first, where there are numbers of both."""
    found = []
    for column, name in enumerate((RETRIEVAL, CLASSIFICATION)[: len(group.paper)]):
        ours = {row.label: measured[row.label] for row in group.rows if row.paper}
        if len(ours) > 1 and all(name in numbers for numbers in ours.values()):
            paper = {row.label: row.paper[column] for row in group.rows if row.paper}
            lines = descending({label: numbers[name].mean for label, numbers in ours.items()}), descending(paper)
            found.append(f"- {name}, ours: {lines[0]}\n- {group.paper[column]}: {lines[1]}")
    return ["Best first:\n\n" + "\n".join(found)] if found else []


def descending(numbers: Mapping[str, float]) -> str:
    """Names from the largest number to the smallest, equal ones joined."""
    labels: Sequence[str] = sorted(numbers, key=lambda label: -numbers[label])
    text = labels[0]
    for before, label in pairwise(labels):
        text += f" {'=' if numbers[label] == numbers[before] else '>'} {label}"
    return text
