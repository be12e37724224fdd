"""Mining against a plain product of the same vectors: they take turns, each in a process of its own, one thread.

Both read float32 vectors from the disk. The product is what no exact method can do without: every block of source rows
times every block of target rows, into memory that is used again, and nothing is looked at.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from xsent.bench.machine import processor
from xsent.bench.processes import answers, end_with_parent, peak_memory, say
from xsent.bench.report.tables import Table
from xsent.mining.bitext import mine_bitext
from xsent.similarity import CANDIDATES, QUERIES

Rows = NDArray[np.float32]

NAMES = ("src.npy", "trg.npy")
WRITTEN = 10_000  # made-up vectors written at once


def measure_mining(*, rows: int, dim: int, rounds: int, command: str, folder: Path | None = None) -> str:
    """Compare mining, with its default margin and retrieval, with the plain product, in Markdown.

    Args:
        rows: Sentences on each side, made up.
        dim: Length of their vectors.
        rounds: Turns of each.
        command: The command line, for the report.
        folder: Where to put the vectors; None takes the system's place for temporary files.
    """
    found: dict[str, list[dict[str, float]]] = {name: [] for name in TASKS}
    with TemporaryDirectory(dir=folder) as name:
        write_vectors(Path(name), rows, dim)
        for _ in range(rounds):
            for task, results in found.items():
                results += answers("xsent.bench.mining", [task, name])
    ratio = median(mined["seconds"] / plain["seconds"] for plain, mined in zip(*found.values(), strict=True))
    cells = [
        [task, *(f"{median(turn[field] for turn in turns):.1f}" for field in ("seconds", "processor", "peak"))]
        for task, turns in found.items()
    ]
    table = Table(["what", "seconds, median", "processor seconds", "peak MiB"], cells).markdown()
    what = f"{rows:,} × {rows:,} sentences of {dim} numbers, float32 on the disk, one thread, {rounds} turns each"
    told = f"Mining takes {ratio:.2f} times as long as the product (median over the turns)."
    return f"`{command}` on {processor()}: {what}.\n\n{table}\n\n{told}"


def write_vectors(folder: Path, rows: int, dim: int) -> None:
    """Made-up sentences and translations: a direction that they share, and noise."""
    random = np.random.default_rng(0)
    files = {name: np.lib.format.open_memmap(folder / name, "w+", np.float32, (rows, dim)) for name in NAMES}
    for start in range(0, rows, WRITTEN):
        count = min(WRITTEN, rows - start)
        shared = random.standard_normal((count, dim), np.float32)
        for file in files.values():
            file[start : start + count] = shared + random.standard_normal((count, dim), np.float32)
    for file in files.values():
        file.flush()


def product(src: Rows, trg: Rows) -> None:
    """Every inner product, in blocks as large as those of mining."""
    memory = np.empty(QUERIES * CANDIDATES, np.float32)
    for start in range(0, len(src), QUERIES):
        a = src[start : start + QUERIES]
        for first in range(0, len(trg), CANDIDATES):
            b = trg[first : first + CANDIDATES]
            np.matmul(a, b.T, out=memory[: len(a) * len(b)].reshape(len(a), len(b)))


TASKS: dict[str, Callable[[Rows, Rows], object]] = {"product": product, "mining": mine_bitext}


def main(task: str, folder: Path) -> None:
    """One turn, in a process of its own: its seconds, processor seconds and peak memory in MiB."""
    src, trg = (np.load(folder / name, mmap_mode="r", allow_pickle=False) for name in NAMES)
    began, busy = time.perf_counter(), time.process_time()
    TASKS[task](src, trg)
    seconds, processor_seconds = time.perf_counter() - began, time.process_time() - busy
    say({"seconds": seconds, "processor": processor_seconds, "peak": peak_memory()})


if __name__ == "__main__":
    end_with_parent()
    main(sys.argv[1], Path(sys.argv[2]))
