"""What a report says: a section for each group of figures that were measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xsent.bench.papers import TABLE_5
from xsent.bench.peers.entries import OURS
from xsent.bench.peers.race import COLUMNS
from xsent.bench.peers.report import heading as peer_heading
from xsent.bench.peers.report import rows
from xsent.bench.report import costs
from xsent.bench.report.plots import quality_by_megabytes, quality_by_milliseconds
from xsent.bench.report.section import Section, existing
from xsent.bench.report.tables import NONE, Table, heading, listing, number
from xsent.bench.results import Results

PEER = "peer "  # begins the notes that stand with the peers: how each runs


def sections(results: Results) -> list[Section]:
    """Everything that there is to say about a run."""
    general = [note for note in results.notes if not note.startswith(PEER)]
    found = [_points("To know", general), costs.summary(results), _environment(results.environment)]
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
        "their layers, and our tokenizer, filled up to their number of pieces where they have more: all read the same "
        "tokens."
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


PARTS: Sequence[tuple[str, Callable[[Results], Section | None]]] = (
    ("latency", costs.latency),
    ("latency", costs.lines),
    ("latency", costs.throughput),
    ("start", costs.start),
    ("memory", costs.memory),
    ("size", costs.size),
    ("share", costs.share),
    ("training", _training),
    ("quality", _quality),
    ("peers", _peers),
    ("modules", _modules),
    ("tracking", _tracking),
)
