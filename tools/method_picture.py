"""Draws docs/images/stages.svg for docs/method.md from the table of stages in docs/lab/model.md.

    python tools/method_picture.py

Needs matplotlib (pip install "xsent[bench]").
"""

import re
from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS = Path(__file__).parent.parent / "docs"
STAGE = re.compile(r"(\d) `(\w+)`|mean of (\d(?:, \d)* and \d)")

Row = tuple[str, list[float], list[float], list[float]]  # name, Tatoeba 4 / 8, SIB-200 en / 4 / 8, STS-B en / 4


def numbers(cell: str) -> list[float]:
    """The numbers of a cell, separated by slashes."""
    return [float(number) for number in re.findall(r"\d+\.\d+", cell)]


def stages() -> list[Row]:
    """The rows of the table, in order."""
    rows: list[Row] = []
    for line in (DOCS / "lab" / "model.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and (name := STAGE.match(cells[0])):
            label = f"{name[1]} {name[2]}" if name[1] else f"mean of {name[3]}"
            rows.append((label, numbers(cells[3]), numbers(cells[4]), numbers(cells[5])))
    return rows


def draw_gains(axes: Axes, rows: list[Row]) -> None:
    """Draw translations and topics after each stage, without the means of stages."""
    trained = [row for row in rows if not row[0].startswith("mean")]
    for place, label in ((1, "translations found, Tatoeba"), (2, "topics learnt in English, SIB-200")):
        axes.plot([row[0] for row in trained], [row[place][-1] for row in trained], "o-", label=label)
    axes.set(ylabel="per cent, mean of eight languages", ylim=(60, 100))
    axes.legend(frameon=False, loc="lower right")


def draw_line(axes: Axes, rows: list[Row]) -> None:
    """Draw retrieval against similarity, without the first stage, which is far below."""
    for name, tatoeba, _, similarity in rows[1:]:
        style = {"marker": "s", "color": "tab:red"} if name.startswith("mean") else {"marker": "o", "color": "tab:blue"}
        axes.plot(similarity[-1], tatoeba[0], linestyle="", **style)
        axes.annotate(name, (similarity[-1], tatoeba[0]), xytext=(6, -3), textcoords="offset points")
    ends = [next(row for row in rows if row[0].startswith(stage)) for stage in ("3", "4")]
    axes.plot([row[3][-1] for row in ends], [row[1][0] for row in ends], "--", color="tab:blue", linewidth=1)
    axes.set_xticks([0.710, 0.715, 0.720, 0.725])
    axes.set(xlabel="similarity, STS-B, mean of four languages", ylabel="translations found, Tatoeba, mean of four")
    axes.set_xlim(0.708, 0.7265)


rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "stages", "font.size": 9})
figure = Figure(figsize=(9, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
draw_gains(left, stages())
draw_line(right, stages())
for panel in (left, right):
    panel.grid(alpha=0.3)
figure.savefig(DOCS / "images" / "stages.svg", metadata={"Date": None}, facecolor="white")
