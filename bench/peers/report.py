"""The comparison: as measurements, and as Markdown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from xsent.bench.grid.bundles import Bundles
from xsent.bench.machine import Watch, processor
from xsent.bench.markdown import markdown_table
from xsent.bench.peers.entries import BARE, ENTRIES, OURS, Entry, choose, missing
from xsent.bench.peers.peak import share_of_peak
from xsent.bench.peers.race import COLUMNS, Facts, Result, race, run_child
from xsent.bench.peers.shapes import write_shape
from xsent.bench.results import Axis, Measurement
from xsent.bundle import Bundle
from xsent.errors import DataError, XsentError

TEXT = """`{command}` on {processor}.

Every turn is a fresh process, and the systems take turns; medians of {turns} turns, in brackets how many times
better ours is (the median over turns). One thread unless said. {number:,} sentences in four languages, of 20 tokens
in the mean and as different in length as real ones. The models of other systems have random weights in their true
shape, and our tokenizer filled up to their number of pieces, so that all read the same number of tokens.

{table}

{settings}
{failures}
{streams}

A sentence of {tokens} tokens reaches {share:.0%} of the {peak:.0f} GOP/s of a large 8-bit matrix product in ONNX
Runtime on one thread; arithmetic counted for every layer on every token.
"""


def measure(
    bundle: Path,
    work: Path,
    *,
    only: Sequence[str] = (),
    turns: int,
    number: int,
    note: Callable[[str], None],
    fail: Callable[[str], None],
) -> Iterator[Measurement]:
    """Compare a bundle with other systems; Ctrl-C goes on after what was measured was given.

    Args:
        bundle: Ours.
        work: Existing folder for the models of the others; kept, and used again.
        only: Names in `xsent.bench.peers.entries.ENTRIES`; all of them unless given. Ours always runs.
        turns: Turns of each.
        number: Sentences to time in a turn.
        note: Is told how each system runs.
        fail: Is told which systems could not be measured, and why.

    Yields:
        One measurement a system, when all turns are over.

    Raises:
        DataError: There is no such system.
        BundleError: The bundle is missing or damaged.
    """
    names, ours = choose(only), Bundle.open(bundle)
    folders: dict[str, Path] = {}
    results: dict[str, Result] = {}
    interrupted: KeyboardInterrupt | None = None
    try:
        for name in names:
            try:
                folders[name], results[name] = _prepare(ENTRIES[name], ours, work), Result()
            except Exception as error:  # whatever a package raises that writes its model
                fail(f"{name}: {_reason(error)}")
        race(folders, results, turns=turns, number=number)
    except KeyboardInterrupt as error:
        interrupted = error
    for name, result in results.items():
        if result.turns:
            note(f"{name}: {ENTRIES[name].settings}.")
            yield result.measurement(_axes(name, folders[name]))
        if result.failure:
            fail(result.failure)
    if interrupted:
        raise interrupted


def measure_peers(
    bundle: Path, work: Path, *, only: Sequence[str], turns: int, number: int, stream: int, command: str
) -> str:
    """Compare a bundle with other systems, see `measure`.

    Args:
        bundle: Ours.
        work: Existing folder for the models of the others; kept, and used again.
        only: Systems; all that there are unless given. Ours always runs.
        turns: Turns of each.
        number: Sentences to time in a turn.
        stream: Sentences over which the memory of ours is watched; 0 for not.
        command: The command line, for the report.

    Returns:
        Markdown.

    Raises:
        DataError: There is no such system, or ours fails.
        BundleError: The bundle is missing or damaged.
    """
    notes: list[str] = []
    failures: list[str] = []
    with Watch() as watch:
        measured = list(
            measure(bundle, work, only=only, turns=turns, number=number, note=notes.append, fail=failures.append)
        )
    notes += watch.warnings()
    if not measured or measured[0].axes["system"] != OURS:
        raise DataError(failures[0])
    points = run_child(OURS, bundle, number=0, stream=stream)[1] if stream else []
    share, peak = share_of_peak(bundle, tokens=(tokens := 32))
    return TEXT.format(
        command=command,
        processor=processor(),
        turns=turns,
        number=number,
        table=markdown_table(["system", "model", *(heading(key) for key in COLUMNS)], rows(measured)),
        settings="\n".join(f"- {note}" for note in notes),
        failures="".join(f"\nNot measured: {failure}\n" for failure in failures),
        streams=_stream(OURS, points) if points else "",
        tokens=tokens,
        share=share,
        peak=peak / 1e9,
    )


def heading(key: str) -> str:
    """What a column holds, with its unit."""
    return {
        "sentences_per_second": "sentences/s",
        "latency_ms": "ms, one sentence",
        "first_ms": "ms to the first vector",
        "first_mib": "MiB after one sentence",
        "peak_mib": "peak MiB",
    }[key]


def rows(measured: Sequence[Measurement]) -> list[list[str]]:
    """A table with one row a system, in brackets how many times better ours is: the median over turns.

    Args:
        measured: Ours first.
    """
    ours = measured[0]
    table = []
    for other in measured:
        cells = [str(other.axes["system"]), str(other.axes["model"])]
        for key, decimals in COLUMNS.items():
            if key not in other.figures:
                cells.append("")
                continue
            ratio = "" if other is ours else f" ({times_better(other, ours, key):.2f} ×)"
            cells.append(f"{other.figures[key]:,.{decimals}f}{ratio}")
        table.append(cells)
    return table


def times_better(other: Measurement, ours: Measurement, key: str) -> float:
    """How many times better ours is in a figure: the median over turns."""
    pairs = list(zip(other.turns[key], ours.turns[key], strict=False))  # one that failed has fewer
    return median(b / a for a, b in pairs) if key == "sentences_per_second" else median(a / b for a, b in pairs)


def _prepare(entry: Entry, ours: Bundle, work: Path) -> Path:
    """The folder of what an entry runs."""
    if name := missing(entry):
        raise ModuleNotFoundError(name=name)
    if entry.form == "given":
        return ours.path
    if entry.form == "no layers":
        return Bundles(work, like=ours.path).path(0, "int8")
    return write_shape(entry.model, entry.form, ours.tokenizer_path, work)


def _axes(name: str, folder: Path) -> Mapping[str, Axis]:
    entry = ENTRIES[name]
    model = entry.model or ("none" if name == BARE else Bundle.open(folder).name)
    return {"system": entry.system, "model": model}


def _reason(error: Exception) -> str:
    """An exception in one line for people."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'xsent[peers]'"
    text = " ".join(str(error).split())
    return text if isinstance(error, XsentError) else f"{type(error).__name__}: {text}"


def _stream(name: str, points: Sequence[Facts]) -> str:
    """The memory over a stream, and its slope over the second half."""
    half = points[len(points) // 2 :]
    slope = (half[-1]["mib"] - half[0]["mib"]) / max(half[-1]["after"] - half[0]["after"], 1) * 10_000
    at = ", ".join(f"{point['mib']:.1f} after {int(point['after']):,}" for point in (points[0], half[0], half[-1]))
    return f"\n{name}, sentences of 5 to 100 tokens: MiB {at}; {slope:+.2f} MiB per 10,000 over the second half.\n"
