"""What a report says of our own bundles: their time, memory and size."""

from xsent.bench.grid.fit import fits
from xsent.bench.report.plots import USUAL, latency_by_layers, memory_by_layers, throughput_by_length
from xsent.bench.report.section import Section, existing
from xsent.bench.report.tables import Table, listing, number, order, pivot
from xsent.bench.results import Axis, Measurement, Results

SUMMARY = {  # the figures of each group that most readers came for
    "latency": ("p50_ms", "p99_ms", "sentences_per_second"),
    "start": ("first_ms",),
    "memory": ("mib_1", "mib_1000"),
    "size": ("bytes",),
}


def summary(results: Results) -> Section | None:
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


def latency(results: Results) -> Section:
    """The time of one sentence."""
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


def lines(results: Results) -> Section | None:
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


def throughput(results: Results) -> Section:
    """Sentences and tokens a second."""
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


def start(results: Results) -> Section:
    """The time to the first vector."""
    about = "From the start of the process to the first vector, everything loaded from the disk's cache."
    return Section("First vector", [about], tables=[listing(results.of("start"))])


def memory(results: Results) -> Section:
    """What a process holds."""
    about = (
        "Resident memory of a fresh process after so many sentences, its growth over the second half of 100,000, and "
        "the most it ever held, over as many sentences as its row has; the interpreter, its libraries and the mapped "
        "pages of the model included. The sentences are made up of few different words: real text maps more of the "
        "table."
    )
    measured = results.of("memory")
    return Section("Memory", [about], tables=[listing(measured)], plots=existing(memory_by_layers(measured)))


def size(results: Results) -> Section:
    """Bytes of the bundles."""
    return Section("Size on the disk", ["Megabytes, 1,000,000 bytes each."], tables=[listing(results.of("size"))])


def share(results: Results) -> Section:
    """How near to what the machine can do."""
    about = (
        "The peaks are large matrix products that this machine was seen to do on one thread; arithmetic is counted for "
        "every layer on every token. Sentences of 32 tokens, of 20 in the mean for tokenisation's share; the float "
        "peak is for the float32 bundle. Memory: what one thread of this machine reads from arrays that no cache holds."
    )
    return Section("Distance to the machine's own limits", [about], tables=[listing(results.of("share"))])


def one_by_one(results: Results) -> list[Measurement]:
    """Latencies on the fewest threads: one sentence never takes more than one."""
    measured = results.of("latency")
    fewest = min(int(m.axes["threads"]) for m in measured)
    return [m for m in measured if m.axes["threads"] == fewest]
