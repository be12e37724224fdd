"""The report of a run as a folder: Markdown with a section for each group of figures, and its plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from statistics import median

from xsent.files.atomic import atomic_file
from xsent_bench import OURS, plots
from xsent_bench.plots import Plot
from xsent_bench.results import NONE, Axis, Measurement, Results, by_others, fit_line, heading, number, order, shown

PEER = "peer "  # begins the notes that stand in the section of the peers: how each runs
PEER_FIGURES = ("sentences_per_second", "latency_ms", "first_ms", "first_mib", "peak_mib")  # what peers are compared by
TABLE_5 = {  # mao2021, by layers: minutes per 10,000 steps at batch 128 on a V100, and memory in MB
    1: (19, 7_135),
    2: (24, 11_607),
    3: (29, 16_804),
    4: (34, 21_923),
    6: (44, 28_024),
}
SUMMARY = {  # the figures of each group that most readers look for
    "latency": ("p50_ms", "p99_ms", "sentences_per_second"),
    "start": ("first_ms",),
    "memory": ("mib_1", "mib_1000"),
    "size": ("bytes",),
}
SUMMARY_TEXT = (
    "One sentence of 32 tokens by layers, int8 in ONNX Runtime on one thread; the first vector from the start of the "
    "process; memory that is resident in a process of its own."
)

Measured = Sequence[Measurement]


@dataclass(frozen=True)
class Table:
    """Cells with headings; the first column has names, the others have numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table in Markdown, with the first column aligned left and the others right."""
        lines = [self.headings, ["---", *["---:"] * (len(self.headings) - 1)], *self.rows]
        return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)


@dataclass(frozen=True)
class Section:
    """A section of a report."""

    title: str
    text: str = ""  # what to know when reading it
    points: Sequence[str] = ()
    table: Table | None = None
    plots: Sequence[Plot] = ()


@dataclass(frozen=True)
class GroupSection:
    """How a group of figures becomes a section; it is left out where its table is None."""

    group: str
    title: str
    text: str
    make_table: Callable[[Measured], Table | None]
    draw: Sequence[Callable[[Measured], Plot | None]] = ()


def write_report(results: Results, folder: Path) -> Path:
    """Write `report.md`, which is returned, and `plots/` of a run, or of what there is of it."""
    machine = results.environment.get("processor")
    about = f"`{results.command}`{f' on {machine}' if machine else ''}."
    return write_pages("What xsent costs", about, sections(results), folder)


def write_pages(title: str, about: str, sections: Sequence[Section], folder: Path, name: str = "report") -> Path:
    """Write a Markdown file, which is returned, and `plots/` if there are some."""
    for plot in (plot for section in sections for plot in section.plots):
        (folder / "plots").mkdir(exist_ok=True)
        image = BytesIO()
        plot.figure.savefig(image, format="png", dpi=120)
        with atomic_file(folder / "plots" / f"{plot.name}.png") as file:
            file.write(image.getvalue())
    lines = [f"# {title}", _escaped(about)]
    for section in sections:
        points = "\n".join(f"- {_escaped(point)}" for point in section.points)
        table = section.table.markdown() if section.table else ""
        lines += [f"## {section.title}", _escaped(section.text), points, table]
        lines += [f"![{plot.title}](plots/{plot.name}.png)" for plot in section.plots]
    report = folder / f"{name}.md"
    with atomic_file(report) as file:
        file.write(("\n\n".join(filter(None, lines)) + "\n").encode())
    return report


def _escaped(text: str) -> str:
    """Text with escaped angle brackets, except in `code`: messages of other programs may have some."""
    pieces = text.split("`")
    pieces[::2] = [escape(piece, quote=False) for piece in pieces[::2]]
    return "`".join(pieces)


def sections(results: Results) -> list[Section]:
    """All sections of a report that have something to say."""
    peer_notes = [note.removeprefix(PEER) for note in results.notes if note.startswith(PEER)]
    machine = {heading(name): in_words(value) for name, value in results.environment.items()}
    found = [
        Section("To know", points=[note for note in results.notes if not note.startswith(PEER)]),
        Section("In short", SUMMARY_TEXT, table=summary(results)),
        Section("Machine", points=[f"{name}: {text}" for name, text in machine.items() if text]),
    ]
    for spec in GROUP_SECTIONS:
        measured = results.of(spec.group)
        if measured and (table := spec.make_table(measured)):
            drawn = [plot for draw in spec.draw if (plot := draw(measured))]
            found.append(Section(spec.title, spec.text, peer_notes if spec.group == "peers" else (), table, drawn))
    found.append(Section("Not measured", points=results.failures))
    return [section for section in found if section.points or section.table]


def summary(results: Results) -> Table | None:
    """The usual way to run, by layers."""
    usual = {**plots.USUAL, "tokens": 32}
    found = dict[Axis, dict[str, float]]()
    for group, figures in SUMMARY.items():
        for m in results.of(group):
            if all(m.axes[axis] == usual.get(axis, m.axes[axis]) for axis in m.axes):
                row = found.setdefault(m.axes["layers"], {})
                row.update((figure, m.figures[figure]) for figure in figures if figure in m.figures)
    rows = [Measurement("summary", {"layers": layers}, found[layers]) for layers in sorted(found, key=order)]
    return listing(rows) if rows else None


def in_words(value: object) -> str:
    """A value of the environment in words."""
    if isinstance(value, Mapping):
        names = {name: heading(name) if name.islower() else name for name in value}
        return ", ".join(f"{names[name]} {in_words(inner)}" for name, inner in value.items())
    return number(value) if isinstance(value, float) else str(value)


def listing(measurements: Measured) -> Table:
    """One row a measurement, one column a figure; the axes are the row's name."""
    figures = list(dict.fromkeys(figure for m in measurements for figure in m.figures))
    axes = list(dict.fromkeys(axis for m in measurements for axis in m.axes))
    rows = [[str(m.axes.get(a, NONE)) for a in axes] + [shown(m, figure) for figure in figures] for m in measurements]
    return Table([*axes, *map(heading, figures)], rows)


def by_tokens(measurements: Measured, *figures: str) -> Table:
    """One column a length, one row a combination of the other axes; the figures stand between slashes."""
    lengths = sorted({m.axes["tokens"] for m in measurements}, key=order)
    rows = list[list[str]]()
    for others, found in by_others(measurements, "tokens").items():
        cells = [" / ".join(shown(found[n], figure) for figure in figures) if n in found else NONE for n in lengths]
        rows.append([*(str(value) for _, value in others), *cells])
    axes = [axis for axis in measurements[0].axes if axis != "tokens"]
    return Table([*axes, *(f"{n} tokens" for n in lengths)], rows)


def lines_table(latencies: Measured) -> Table | None:
    """The line through the medians by layers, where there are three depths or more: two always lie on a line."""
    rows = list[list[str]]()
    for others, found in by_others(latencies, "layers").items():
        if len(found) > 2:
            *line, r_squared = fit_line({float(n): m.figures["p50_ms"] for n, m in found.items()})
            rows.append([*(str(value) for _, value in others), *map(number, line), f"{r_squared:.4f}"])
    axes = [axis for axis in latencies[0].axes if axis != "layers"]
    return Table([*axes, "no layer, ms", "a layer, ms", "residual, ms", "R²"], rows) if rows else None


def on_fewest_threads(measured: Measured) -> Measured:
    """The latencies on the fewest threads: one sentence never takes more than one."""
    fewest = min(int(m.axes["threads"]) for m in measured)
    return [m for m in measured if m.axes["threads"] == fewest]


def training_table(measured: Measured) -> Table:
    """Training steps, and their costs as multiples of one layer's, with those of the paper."""
    one_layer = {m.axes["batch"]: m for m in measured if m.axes["layers"] == 1}
    rows = []
    for m in measured:
        one = one_layer.get(m.axes["batch"])
        paper = TABLE_5.get(int(m.axes["layers"]))
        cells = [*(str(m.axes[axis]) for axis in ("layers", "batch", "device")), shown(m, "pairs_per_second")]
        for column, figure in enumerate(("step_seconds", "peak_mib")):
            cells += [shown(m, figure), number(m.figures[figure] / one.figures[figure]) if one else NONE]
            cells += [number(paper[column]), number(paper[column] / TABLE_5[1][column])] if paper else [NONE, NONE]
        rows.append(cells)
    times = "× 1 layer"
    costs = ["pairs/s", "s/step", times, "paper, min", times, "peak MiB", times, "paper, MB", times]
    return Table(["layers", "batch", "device", *costs], rows)


def peers_table(measured: Measured) -> Table:
    """Ours first, then the others with how many times better ours is, the median over turns; not where ours failed."""
    ours, *_ = measured
    if ours.axes["system"] != OURS:
        return listing(measured)
    rows = []
    for other in measured:
        cells = [str(other.axes["system"]), str(other.axes["model"])]
        for figure in PEER_FIGURES:
            cell = shown(other, figure)
            if figure in other.figures and other is not ours:
                pairs = zip(other.turns[figure], ours.turns[figure], strict=False)  # a failed system has fewer turns
                ratio = median(b / a if figure.endswith("_per_second") else a / b for a, b in pairs)
                cell += f" ({ratio:.2f} ×)"
            cells.append(cell)
        rows.append(cells)
    return Table(["system", "model", *map(heading, PEER_FIGURES)], rows)


GROUP_SECTIONS: Sequence[GroupSection] = (
    GroupSection(
        "latency",
        "Latency",
        "Milliseconds of one sentence, tokenisation included: median / 95th / 99th percentile; the last two where "
        "there were 20 and 100 sentences or more.",
        lambda measured: by_tokens(on_fewest_threads(measured), "p50_ms", "p95_ms", "p99_ms"),
        [lambda measured: plots.latency_by_layers(on_fewest_threads(measured))],
    ),
    GroupSection(
        "latency",
        "The straight line of latency over layers",
        "The straight line through the medians, by least squares: its value at no layers, what a layer adds, the root "
        "mean square of the residuals, and the share of the variance that it explains (R²). It starts below zero where "
        "later layers take longer than the first.",
        lambda measured: lines_table(on_fewest_threads(measured)),
    ),
    GroupSection(
        "latency",
        "Throughput",
        "Sentences a second / tokens a second, by the tokens of a sentence. Each thread takes sentences of its own. "
        "Without layers the interpreter is the limit, so that the default there is one thread.",
        lambda measured: by_tokens(measured, "sentences_per_second", "tokens_per_second"),
        [plots.throughput_by_length],
    ),
    GroupSection(
        "start",
        "First vector",
        "From the start of the process to the first vector, everything loaded from the disk's cache.",
        listing,
    ),
    GroupSection(
        "memory",
        "Memory",
        "Resident memory of a fresh process by the number of sentences it has encoded, its growth over the second half "
        "of 100,000, and its peak over the sentences of the row; the interpreter, its libraries and the mapped pages "
        "of the model included. The sentences are made up of few different words: real text maps more of the table.",
        listing,
        [plots.memory_by_layers],
    ),
    GroupSection(
        "size",
        "Size on the disk",
        "Megabytes, 1,000,000 bytes each, of a bundle whose last depth this is. A bundle holds its layers once, with a "
        "small graph for each depth; the row of most layers is the whole bundle, and `xsent-export --layers` makes the "
        "others.",
        listing,
    ),
    GroupSection(
        "share",
        "Distance to the machine's own limits",
        "The peaks are those of large matrix products on one thread of this machine; the arithmetic is counted for "
        "every layer on every token. The sentences have 32 tokens, and 20 in the mean for the share of tokenisation; "
        "the float peak is for the float32 bundle. Memory: what one thread of this machine reads from arrays that are "
        "larger than its caches.",
        listing,
    ),
    GroupSection(
        "training",
        "Training",
        "The median training step by layers, its data included, on made-up text: about 25 tokens a side, 50,000 "
        "pieces, 512 dimensions, UGT + 2 align + 2 sim (literal) as in mao2021. Its table 5 (batch 128, one V100; "
        "minutes per 10,000 steps, megabytes) is shown too: compare the columns × 1 layer. Peak memory on a CPU "
        "includes the interpreter and its libraries, about 440 MiB.",
        training_table,
    ),
    GroupSection(
        "quality",
        "Quality and cost",
        "The scores of a bundle and its costs. Scores are means over languages in per cent, higher is better, by the "
        "protocols of `xsent evaluate` and `xsent classify evaluate`; P@1 also with queries by fewer layers among "
        "English by all. The milliseconds are of a sentence of 32 tokens on one thread, the memory of a process of its "
        "own, the megabytes of a bundle with this depth as its last.",
        listing,
        [plots.quality_by_time],
    ),
    GroupSection(
        "peers",
        "Peers",
        "Other systems and ours, in turns, every turn in a fresh process: medians of the turns, and in brackets how "
        "many times better ours is, the median over turns. One thread unless said; sentences in four languages, of 20 "
        "tokens in the mean and as different in length as real ones. Their models have random weights in the true "
        "shape of their layers, and our tokenizer, padded to their number of pieces: all read the same tokens.",
        peers_table,
    ),
)
