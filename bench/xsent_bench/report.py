"""What a report says: a section for each group of figures that were measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from xsent_bench import plots
from xsent_bench.pages import Plot, Section, Table, write_pages
from xsent_bench.results import Axis, Measurement, Results
from xsent_bench.systems import OURS
from xsent_bench.tables import NONE, by_tokens, heading, lines, listing, number, order, shown

TITLE = "What xsent costs"
PEER = "peer "  # begins the notes that stand with the peers: how each runs
PEER_FIGURES = ("sentences_per_second", "latency_ms", "first_ms", "first_mib", "peak_mib")  # what peers are compared by
TABLE_5 = {  # of mao2021, what layers cost: minutes per 10,000 steps at batch 128 on a V100, and memory in MB
    1: (19, 7_135),
    2: (24, 11_607),
    3: (29, 16_804),
    4: (34, 21_923),
    6: (44, 28_024),
}
SUMMARY = {  # the figures of each group that most readers came for
    "latency": ("p50_ms", "p99_ms", "sentences_per_second"),
    "start": ("first_ms",),
    "memory": ("mib_1", "mib_1000"),
    "size": ("bytes",),
}

Measured = Sequence[Measurement]


@dataclass(frozen=True)
class Part:
    """A section for a group of figures; there is none where its table says so."""

    group: str
    title: str
    about: str
    table: Callable[[Measured], Table | None] = listing
    plots: Sequence[Callable[[Measured], Plot | None]] = ()


def write_report(results: Results, folder: Path) -> Path:
    """Write `report.md`, which is returned, and `plots/` of a run or of a part of one."""
    machine = results.environment.get("processor")
    return write_pages(TITLE, f"`{results.command}`{f' on {machine}' if machine else ''}.", sections(results), folder)


def sections(results: Results) -> list[Section]:
    """Everything that there is to say about a run."""
    about_peers = [note.removeprefix(PEER) for note in results.notes if note.startswith(PEER)]
    words = {heading(name): worded(value) for name, value in results.environment.items()}
    found = [
        Section("To know", points=[note for note in results.notes if not note.startswith(PEER)]),
        *summary(results),
        Section("Machine", points=[f"{name}: {text}" for name, text in words.items() if text]),
    ]
    for part in PARTS:
        measured = results.of(part.group)
        if measured and (table := part.table(measured)):
            drawn = [plot for draw in part.plots if (plot := draw(measured))]
            points = about_peers if part.group == "peers" else ()
            found.append(Section(part.title, part.about, points, table, drawn))
    found.append(Section("Not measured", points=results.failures))
    return [section for section in found if section.points or section.table]


def summary(results: Results) -> list[Section]:
    """The usual way to run, by layers."""
    usual, found = {**plots.USUAL, "tokens": 32}, dict[Axis, dict[str, float]]()
    for group, figures in SUMMARY.items():
        for m in results.of(group):
            if all(m.axes[axis] == usual.get(axis, m.axes[axis]) for axis in m.axes):
                row = found.setdefault(m.axes["layers"], {})
                row.update((figure, m.figures[figure]) for figure in figures if figure in m.figures)
    about = (
        "One sentence of 32 tokens by layers, int8 in ONNX Runtime on one thread; the first vector from the start of "
        "the process; memory that is resident in a process of its own."
    )
    rows = [Measurement("summary", {"layers": layers}, found[layers]) for layers in sorted(found, key=order)]
    return [Section("In short", about, table=listing(rows))] if rows else []


def worded(value: object) -> str:
    """A value of the environment in words."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{heading(name) if name.islower() else name} {worded(inner)}" for name, inner in value.items()
        )
    return number(value) if isinstance(value, float) else str(value)


def one_by_one(measured: Measured) -> Measured:
    """Latencies on the fewest threads: one sentence never takes more than one."""
    fewest = min(int(m.axes["threads"]) for m in measured)
    return [m for m in measured if m.axes["threads"] == fewest]


def training_table(measured: Measured) -> Table:
    """Training steps, and as multiples of one layer's beside the paper's."""
    ones = {m.axes["batch"]: m for m in measured if m.axes["layers"] == 1}
    rows = []
    for m in measured:
        one, cells = ones.get(m.axes["batch"]), [str(m.axes[axis]) for axis in ("layers", "batch", "device")]
        cells.append(shown(m, "pairs_per_second"))
        for figure, paper in (("step_seconds", 0), ("peak_mib", 1)):
            theirs = TABLE_5.get(int(m.axes["layers"]))
            cells += [shown(m, figure), number(m.figures[figure] / one.figures[figure]) if one else NONE]
            cells += [number(theirs[paper]), number(theirs[paper] / TABLE_5[1][paper])] if theirs else [NONE, NONE]
        rows.append(cells)
    times = "× 1 layer"
    costs = ["pairs/s", "s/step", times, "paper, min", times, "peak MiB", times, "paper, MB", times]
    return Table(["layers", "batch", "device", *costs], rows)


def peers_table(measured: Measured) -> Table:
    """Ours first, then the others with how many times better ours is: the median over turns; not where ours failed."""
    ours, rows = measured[0], []
    if ours.axes["system"] != OURS:
        return listing(measured)
    for other in measured:
        cells = [str(other.axes["system"]), str(other.axes["model"])]
        for figure in PEER_FIGURES:
            cell = shown(other, figure)
            if figure in other.figures and other is not ours:
                pairs = zip(other.turns[figure], ours.turns[figure], strict=False)  # one that failed has fewer
                ratio = median(b / a if figure.endswith("_per_second") else a / b for a, b in pairs)
                cell += f" ({ratio:.2f} ×)"
            cells.append(cell)
        rows.append(cells)
    return Table(["system", "model", *map(heading, PEER_FIGURES)], rows)


PARTS: Sequence[Part] = (
    Part(
        "latency",
        "Latency",
        "Milliseconds of one sentence, tokenisation included: median / 95th / 99th percentile; the last two where "
        "there were 20 and 100 sentences or more.",
        lambda measured: by_tokens(one_by_one(measured), "p50_ms", "p95_ms", "p99_ms"),
        [lambda measured: plots.latency_by_layers(one_by_one(measured))],
    ),
    Part(
        "latency",
        "The straight line of latency over layers",
        "The straight line through the medians, by least squares: what it starts from, what a layer adds, the root of "
        "the mean square of the distances from it, and the share of the variance that it explains. It starts below "
        "zero where later layers take longer than the first.",
        lambda measured: lines(one_by_one(measured)),
    ),
    Part(
        "latency",
        "Throughput",
        "Sentences a second / tokens a second, by the tokens of a sentence. Threads take sentences each; beside a "
        "table alone the interpreter is the limit, so that takes one thread where none is asked for.",
        lambda measured: by_tokens(measured, "sentences_per_second", "tokens_per_second"),
        [plots.throughput_by_length],
    ),
    Part(
        "start",
        "First vector",
        "From the start of the process to the first vector, everything loaded from the disk's cache.",
    ),
    Part(
        "memory",
        "Memory",
        "Resident memory of a fresh process after so many sentences, its growth over the second half of 100,000, and "
        "the most it ever held, over as many sentences as its row has; the interpreter, its libraries and the mapped "
        "pages of the model included. The sentences are made up of few different words: real text maps more of the "
        "table.",
        plots=[plots.memory_by_layers],
    ),
    Part(
        "size",
        "Size on the disk",
        "Megabytes, 1,000,000 bytes each, of a bundle whose last depth this is: it holds its layers once, with a small "
        "graph for each depth, and the row of most layers is all of it; `xsent-export --layers` makes the others.",
    ),
    Part(
        "share",
        "Distance to the machine's own limits",
        "The peaks are large matrix products that this machine was seen to do on one thread; arithmetic is counted for "
        "every layer on every token. Sentences of 32 tokens, of 20 in the mean for tokenisation's share; the float "
        "peak is for the float32 bundle. Memory: what one thread of this machine reads from arrays that no cache "
        "holds.",
    ),
    Part(
        "training",
        "Training",
        "The median training step by layers, its data included, on made-up text: about 25 tokens a side, 50,000 "
        "pieces, 512 dimensions, UGT + 2 align + 2 sim (literal) as in mao2021, whose table 5 stands beside it (batch "
        "128, one V100; megabytes, minutes per 10,000 steps): compare the columns of × 1 layer. Peak memory on a "
        "processor has the interpreter and its libraries in it, about 440 MiB.",
        training_table,
    ),
    Part(
        "quality",
        "Quality and cost",
        "What a bundle is worth beside what it costs: means over languages, in per cent, higher is better, as "
        "`xsent evaluate` and `xsent classify evaluate` have them; P@1 also with queries by fewer layers among English "
        "by all. The milliseconds are of a sentence of 32 tokens on one thread, the memory of a process of its own, "
        "the megabytes of a bundle with this depth as its last.",
        plots=[plots.quality_by_time],
    ),
    Part(
        "peers",
        "Peers",
        "Other systems beside ours, in turns, every turn a fresh process: medians of the turns, in brackets how many "
        "times better ours is, the median over turns. One thread unless said; sentences in four languages, of 20 "
        "tokens in the mean and as different in length as real ones. Their models have random weights in the shape of "
        "their layers, and our tokenizer, filled up to their number of pieces where they have more: all read the same "
        "tokens.",
        peers_table,
    ),
)
