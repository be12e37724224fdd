"""Draws docs/images/stages.svg for docs/explanation/method.md from the figures of the stages of xsent-10, in float32.

    python tools/method_picture.py

Needs matplotlib (pip install "xsent[bench]").
"""

from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS = Path(__file__).parent.parent / "docs"
Row = tuple[str, list[float], list[float], list[float]]  # name, Tatoeba 4 / 8, SIB-200 en / 4 / 8, STS-B en / 4

STAGES: list[Row] = [  # of train/xsent_train/recipes/builtin.toml; 4: mean of fr de es it, 8: that of all
    ("1 table", [74.9, 73.2], [85.8, 74.4, 71.3], [0.802, 0.705]),
    ("2 layers", [93.55, 92.4], [85.3, 76.7, 75.6], [0.797, 0.710]),
    ("3 mild", [93.70, 92.9], [86.3, 79.3, 78.4], [0.801, 0.716]),
    ("mean of 2 and 3", [93.90, 93.1], [85.8, 78.8, 78.1], [0.802, 0.718]),
    ("4 retrieval", [94.98, 94.2], [86.8, 77.6, 76.8], [0.789, 0.710]),
    ("mean of 2, 3 and 4", [94.90, 94.1], [87.3, 79.7, 78.8], [0.797, 0.717]),
    ("5 settle", [94.65, 93.7], [86.8, 77.8, 77.0], [0.800, 0.721]),
]


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
draw_gains(left, STAGES)
draw_line(right, STAGES)
for panel in (left, right):
    panel.grid(alpha=0.3)
figure.savefig(DOCS / "images" / "stages.svg", metadata={"Date": None}, facecolor="white")
