"""The comparison as Markdown."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from xsent.bench.machine import processor
from xsent.bench.markdown import markdown_table
from xsent.bench.peers.peak import share_of_peak
from xsent.bench.peers.race import BARE, COLUMNS, OURS, Facts, Result, race, rows, run_child
from xsent.bench.peers.shapes import SHAPES, write_shape
from xsent.bench.peers.systems import BATCH
from xsent.bundle import Bundle
from xsent.errors import DataError

# System and shape; None is our own bundle.
ENTRIES: Mapping[str, str | None] = {
    OURS: None,
    BARE: None,
    "xsent 2 threads": None,
    "xsent numpy": None,
    "onnxruntime": "multilingual-MiniLM-L12",
    "sentence-transformers": "multilingual-MiniLM-L12",
    "fastembed": "all-MiniLM-L6",
}
TEXT = """`{command}` on {processor}.

Every turn is a fresh process, and the systems take turns; medians of {turns} turns, in brackets how many times
better ours is (the median over turns). One thread unless said. {number:,} sentences in four languages, of 20 tokens
in the mean and as different in length as real ones. The models of other systems have random weights in their true
shape, int8 by ONNX Runtime's own tools, and our tokenizer filled up to their number of pieces, so that all read the
same number of tokens. Of many sentences, onnxruntime gets batches of {batch}, sorted by length; the others run as
they do where nothing is set.

{table}
{failures}
{streams}

A sentence of {tokens} tokens reaches {share:.0%} of the {peak:.0f} GOP/s of a large 8-bit matrix product in ONNX
Runtime on one thread; arithmetic counted for every layer on every token.
"""


def measure_peers(
    bundle: Path, work: Path, *, only: Sequence[str], turns: int, number: int, stream: int, command: str
) -> str:
    """Compare a bundle with other systems.

    Args:
        bundle: Ours.
        work: Folder for the models of the others; kept, and used again.
        only: Systems; all that there are unless given. Ours always runs.
        turns: Turns of each.
        number: Sentences to time in a turn.
        stream: Sentences over which the memory of ours is watched; 0 for not.
        command: The command line, for the report.

    Returns:
        Markdown.

    Raises:
        DataError: There is no such system, or ours fails.
    """
    if unknown := [name for name in only if name not in ENTRIES]:
        raise DataError(f"no system {', '.join(unknown)}; there are {', '.join(ENTRIES)}")
    wanted = [name for name in ENTRIES if name in (OURS, *only) or not only]
    tokenizer = Bundle.open(bundle).tokenizer_path
    folders = {name: _folder(ENTRIES[name], bundle, tokenizer, work) for name in wanted}
    results = race(folders, turns=turns, number=number)
    points = run_child(OURS, bundle, number=0, stream=stream)[1] if stream else []
    share, peak = share_of_peak(bundle, tokens := 32)
    return TEXT.format(
        command=command,
        processor=processor(),
        turns=turns,
        number=number,
        batch=BATCH,
        table=markdown_table(["system", *(heading(key) for key in COLUMNS)], rows(results)),
        failures=_failures(results),
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


def _folder(shape: str | None, bundle: Path, tokenizer: Path, work: Path) -> Path:
    if shape is None:
        return bundle
    assert shape in SHAPES
    folder = work / shape
    if not folder.is_dir():
        partial = work / f"{shape}.part"
        shutil.rmtree(partial, ignore_errors=True)
        write_shape(shape, tokenizer, partial)
        partial.rename(folder)
    return folder


def _failures(results: Mapping[str, Result]) -> str:
    return "".join(f"\nNot measured: {result.failure}\n" for result in results.values() if result.failure)


def _stream(name: str, points: Sequence[Facts]) -> str:
    """The memory over a stream, and its slope over the second half."""
    half = points[len(points) // 2 :]
    slope = (half[-1]["mib"] - half[0]["mib"]) / max(half[-1]["after"] - half[0]["after"], 1) * 10_000
    at = ", ".join(f"{point['mib']:.1f} after {int(point['after']):,}" for point in (points[0], half[0], half[-1]))
    return f"\n{name}, sentences of 5 to 100 tokens: MiB {at}; {slope:+.2f} MiB per 10,000 over the second half.\n"
