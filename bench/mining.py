"""Mining against a plain product of the same vectors: they take turns, each in a process of its own, one thread.

Both read float32 vectors from the disk. The product is what no exact method can do without: every block of source rows
times every block of target rows, into memory that is used again, and nothing is looked at.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from xsent.bench.machine import processor
from xsent.bench.markdown import markdown_table
from xsent.bench.processes import end, end_with_parent, peak_memory, start_child
from xsent.errors import XsentError
from xsent.mining.bitext import mine_bitext
from xsent.similarity import CANDIDATES, QUERIES

Rows = NDArray[np.float32]

_WRITTEN = 10_000  # made-up vectors written at once


def measure_mining(*, rows: int, dim: int, rounds: int, command: str, folder: Path | None = None) -> str:
    """Compare mining, with its default margin and retrieval, with the plain product.

    Args:
        rows: Sentences on each side, made up.
        dim: Length of their vectors.
        rounds: Turns of each.
        command: The command line, for the report.
        folder: Where to put the vectors; None takes the system's place for temporary files.

    Returns:
        Markdown.
    """
    found: dict[str, list[dict[str, float]]] = {name: [] for name in TASKS}
    with TemporaryDirectory(dir=folder) as name:
        write_vectors(Path(name), rows, dim)
        for _ in range(rounds):
            for task, results in found.items():
                results.append(run(task, Path(name)))
    ratio = median(mined["seconds"] / plain["seconds"] for plain, mined in zip(*found.values(), strict=True))
    cells = [
        [task, *(f"{median(turn[field] for turn in turns):.1f}" for field in ("seconds", "processor", "peak"))]
        for task, turns in found.items()
    ]
    headings = ["what", "seconds, median", "processor seconds", "peak MiB"]
    what = f"{rows:,} × {rows:,} sentences of {dim} numbers, float32 on the disk, one thread, {rounds} turns each"
    return (
        f"`{command}` on {processor()}: {what}.\n\n{markdown_table(headings, cells)}\n\n"
        f"Mining takes {ratio:.2f} times as long as the product (median over the turns)."
    )


def write_vectors(folder: Path, rows: int, dim: int) -> None:
    """Made-up sentences and translations: a direction that they share, and noise."""
    random = np.random.default_rng(0)
    files = {name: np.lib.format.open_memmap(folder / name, "w+", np.float32, (rows, dim)) for name in NAMES}
    for start in range(0, rows, _WRITTEN):
        count = min(_WRITTEN, rows - start)
        shared = random.standard_normal((count, dim), np.float32)
        for file in files.values():
            file[start : start + count] = shared + random.standard_normal((count, dim), np.float32)
    for file in files.values():
        file.flush()


def run(task: str, folder: Path) -> dict[str, float]:
    """One turn: its seconds, processor seconds and peak memory in MiB."""
    out = folder / "result.json"
    with out.open("wb") as file:
        process = start_child("xsent.bench.mining", [task, str(folder)], threads=1, stdout=file)
    try:
        code = process.wait()
    finally:
        end(process)
    if code:
        raise XsentError(f"{task} ended with exit code {code}; see above")
    result: dict[str, float] = json.loads(out.read_bytes())
    return result


def product(src: Rows, trg: Rows) -> None:
    """Every inner product, in blocks as large as those of mining."""
    memory = np.empty(QUERIES * CANDIDATES, np.float32)
    for start in range(0, len(src), QUERIES):
        a = src[start : start + QUERIES]
        for first in range(0, len(trg), CANDIDATES):
            b = trg[first : first + CANDIDATES]
            np.matmul(a, b.T, out=memory[: len(a) * len(b)].reshape(len(a), len(b)))


def mining(src: Rows, trg: Rows) -> None:
    """Mining with its defaults."""
    mine_bitext(src, trg)


NAMES = ("src.npy", "trg.npy")
TASKS: dict[str, Callable[[Rows, Rows], None]] = {"product": product, "mining": mining}


def child(task: str, folder: Path) -> None:
    """One turn, in a process of its own; prints what it took."""
    end_with_parent()
    src, trg = (np.load(folder / name, mmap_mode="r", allow_pickle=False) for name in NAMES)
    began, busy = time.perf_counter(), time.process_time()
    TASKS[task](src, trg)
    result = {"seconds": time.perf_counter() - began, "processor": time.process_time() - busy, "peak": peak_memory()}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    child(sys.argv[1], Path(sys.argv[2]))
