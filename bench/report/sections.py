"""What a report says: a section for each group of figures that were measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xsent.bench.grid.fit import fits
from xsent.bench.papers import TABLE_5
from xsent.bench.peers.entries import OURS
from xsent.bench.peers.race import COLUMNS
from xsent.bench.peers.report import heading as peer_heading
from xsent.bench.peers.report import rows
from xsent.bench.report.plots import (
    USUAL,
    Plot,
    latency_by_layers,
    memory_by_layers,
    quality_by_megabytes,
    quality_by_milliseconds,
    throughput_by_length,
)
from xsent.bench.report.tables import NONE, Table, heading, listing, number, order, pivot
from xsent.bench.results import Axis, Measurement, Results

SUMMARY = {  # the figures of each group that most readers came for
    "latency": ("p50_ms", "p99_ms", "sentences_per_second"),
    "start": ("first_ms",),
    "memory": ("mib_1", "mib_1000"),
    "size": ("bytes",),
}
PEER = "peer "  # begins the notes that stand with the peers: how each runs


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        title: Its heading.
        text: What to know when reading it, then what it says; one paragraph each.
        points: Lines of a list.
        tables: Its tables.
        plots: Its plots.
    """

    title: str
    text: Sequence[str] = ()
    points: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()


def sections(results: Results) -> list[Section]:
    """Everything that there is to say about a run."""
    general = [note for note in results.notes if not note.startswith(PEER)]
    found = [_points("To know", general), _summary(results), _environment(results.environment)]
    found += [make(results) for group, make in PARTS if results.of(group)]
    found.append(_points("Not measured", results.failures))
    return [section for section in found if section]


def _points(title: str, points: Sequence[str]) -> Section | None:
    return Section(title, points=points) if points else None


def _environment(environment: Mapping[str, Any]) -> Section | None:
    words = ((heading(name), plain(value)) for name, value in environment.items())
    return _points("Machine", [f"{name}: {text}" for name, text in words if text])


def plain(value: object) -> str:
    """A value of the environment in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{heading(name) if name.islower() else name} {plain(inner)}" for name, inner in value.items())
    return number(value) if isinstance(value, float) else str(value)


def _summary(results: Results) -> Section | None:
    """The usual way to run, by layers."""
    usual, found = {**USUAL, "tokens": 32}, dict[Axis, dict[str, float]]()
    for group, figures in SUMMARY.items():
        for m in results.of(group):
            if all(m.axes[axis] == usual.get(axis, m.axes[axis]) for axis in m.axes):
                row = found.setdefault(m.axes["layers"], {})
                row.update((figure, m.figures[figure]) for figure in figures if figure in m.figures)
    if not found:
        return None
    about = (
        "One sentence of 32 tokens by layers, int8 in ONNX Runtime on one thread; the first vector from the start of "
        "the process; memory that is resident in a process of its own."
    )
    rows = [Measurement("summary", {"layers": layers}, found[layers]) for layers in sorted(found, key=order)]
    return Section("In short", [about], tables=[listing(rows)])


def _latency(results: Results) -> Section:
    measured = one_by_one(results)
    return Section(
        "Latency",
        [
            "Milliseconds of one sentence, tokenisation included: median / 95th / 99th percentile; the last two where "
            "there were 20 and 100 sentences or more."
        ],
        tables=[pivot(measured, "tokens", ["p50_ms", "p95_ms", "p99_ms"])],
        plots=existing(latency_by_layers(measured)),
    )


def _lines(results: Results) -> Section | None:
    """The straight lines of latency over layers."""
    found = fits(one_by_one(results))
    if not found:
        return None
    about = (
        "The straight line through the medians, by least squares: what it starts from, what a layer adds, the root of "
        "the mean square of the distances from it, and the share of the variance that it explains. It starts below "
        "zero where later layers take longer than the first."
    )
    rows = [
        [
            *map(str, fit.axes.values()),
            number(fit.start),
            number(fit.slope),
            number(fit.residual),
            f"{fit.explained:.4f}",
        ]
        for fit in found
    ]
    headings = [*found[0].axes, "no layer, ms", "a layer, ms", "residual, ms", "R²"]
    return Section("The straight line of latency over layers", [about], tables=[Table(headings, rows)])


def _throughput(results: Results) -> Section:
    measured = results.of("latency")
    return Section(
        "Throughput",
        [
            "Sentences a second / tokens a second, by the tokens of a sentence. Threads take sentences each; beside a "
            "table alone the interpreter is the limit, so that takes one thread where none is asked for."
        ],
        tables=[pivot(measured, "tokens", ["sentences_per_second", "tokens_per_second"])],
        plots=existing(throughput_by_length(measured)),
    )


def _start(results: Results) -> Section:
    about = "From the start of the process to the first vector, everything loaded from the disk's cache."
    return Section("First vector", [about], tables=[listing(results.of("start"))])


def _memory(results: Results) -> Section:
    about = (
        "Resident memory of a fresh process after so many sentences, its growth over the second half of 100,000, and "
        "the most it ever held, over as many sentences as its row has; the interpreter, its libraries and the mapped "
        "pages of the model included. The sentences are made up of few different words: real text maps more of the "
        "table."
    )
    measured = results.of("memory")
    return Section("Memory", [about], tables=[listing(measured)], plots=existing(memory_by_layers(measured)))


def _size(results: Results) -> Section:
    return Section("Size on the disk", ["Megabytes, 1,000,000 bytes each."], tables=[listing(results.of("size"))])


def _share(results: Results) -> Section:
    about = (
        "The peaks are large matrix products that this machine was seen to do on one thread; arithmetic is counted for "
        "every layer on every token. Sentences of 32 tokens, of 20 in the mean for tokenisation's share; the float "
        "peak is for the float32 bundle. Memory: what one thread of this machine reads from arrays that no cache holds."
    )
    return Section("Distance to the machine's own limits", [about], tables=[listing(results.of("share"))])


def _training(results: Results) -> Section:
    about = (
        "A training step of 128 pairs by layers, ours on made-up text and one thread of the processor, beside "
        "mao2021's table 5 (as many pairs, one V100; megabytes, minutes per 10,000 steps): compare the columns of "
        "× 1 layer."
    )
    measured = [m for m in results.of("training") if {"step_seconds", "peak_mib"} <= m.figures.keys()]
    one = next((m.figures for m in measured if m.axes.get("layers") == 1), None)
    rows = []
    for m in measured:
        seconds, peak = m.figures["step_seconds"], m.figures["peak_mib"]
        paper, first = TABLE_5.get(int(m.axes["layers"])), TABLE_5[1]
        rows.append(
            [
                str(m.axes["layers"]),
                number(seconds),
                number(seconds / one["step_seconds"]) if one else NONE,
                number(paper.minutes) if paper else NONE,
                number(paper.minutes / first.minutes) if paper else NONE,
                number(peak),
                number(peak / one["peak_mib"]) if one else NONE,
                number(paper.memory) if paper else NONE,
                number(paper.memory / first.memory) if paper else NONE,
            ]
        )
    headings = ["layers", "s/step", "× 1 layer", "paper, min", "× 1 layer"]
    headings += ["peak MiB", "× 1 layer", "paper, MB", "× 1 layer"]
    return Section("Training", [about], tables=[Table(headings, rows)])


def _quality(results: Results) -> Section:
    about = (
        "What a bundle is worth beside what it costs: means over languages, in per cent, higher is better, as "
        "`xsent evaluate` and `xsent classify evaluate` have them. The milliseconds are of a sentence of 32 tokens on "
        "one thread."
    )
    measured = results.of("quality")
    plots = existing(quality_by_milliseconds(measured), quality_by_megabytes(measured))
    return Section("Quality and cost", [about], tables=[listing(measured)], plots=plots)


def _peers(results: Results) -> Section:
    about = (
        "Other systems beside ours, in turns, every turn a fresh process: medians of the turns, in brackets how many "
        "times better ours is, the median over turns. One thread unless said; sentences in four languages, of 20 "
        "tokens in the mean and as different in length as real ones. Their models have random weights in the shape of "
        "their layers and our tokenizer, filled up to their number of pieces where they have more, so that all read the "
        "same tokens."
    )
    measured = results.of("peers")
    table = listing(measured)
    if measured[0].axes["system"] == OURS:
        table = Table(["system", "model", *map(peer_heading, COLUMNS)], rows(measured))
    return Section(
        "Peers", [about], [note.removeprefix(PEER) for note in results.notes if note.startswith(PEER)], [table]
    )


def _modules(results: Results) -> Section:
    about = (
        "What the pytest-benchmark modules say (`pytest --pyargs xsent.bench`), on one thread where none is named: one "
        "pass in one process, so that a slow moment of the machine falls on few rows. Compare by the tables above."
    )
    return Section("pytest-benchmark", [about], tables=[listing(results.of("modules"))])


def _tracking(results: Results) -> Section:
    about = (
        "What `xsent-bench compare` tells apart even on a machine that is not quiet: the time of some sentences over "
        "that of a fixed product of matrices in numpy, in turns."
    )
    return Section("Tracking", [about], tables=[listing(results.of("tracking"))])


def one_by_one(results: Results) -> list[Measurement]:
    """Latencies on the fewest threads: one sentence never takes more than one."""
    measured = results.of("latency")
    fewest = min(int(m.axes["threads"]) for m in measured)
    return [m for m in measured if m.axes["threads"] == fewest]


def existing(*plots: Plot | None) -> list[Plot]:
    """Those plots that there was something to draw for."""
    return [plot for plot in plots if plot]


PARTS: Sequence[tuple[str, Callable[[Results], Section | None]]] = (
    ("latency", _latency),
    ("latency", _lines),
    ("latency", _throughput),
    ("start", _start),
    ("memory", _memory),
    ("size", _size),
    ("share", _share),
    ("training", _training),
    ("quality", _quality),
    ("peers", _peers),
    ("modules", _modules),
    ("tracking", _tracking),
)
