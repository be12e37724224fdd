"""Systems in turns, each turn in a fresh process; what each costs beside ours."""

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile

from xsent.bench.processes import end, start_child
from xsent.errors import DataError

OURS, BARE = "xsent", "bare"
# What is compared, and its decimals.
COLUMNS = {"sentences_per_second": 0, "latency_ms": 2, "first_ms": 0, "first_mib": 0, "peak_mib": 0}
Facts = Mapping[str, float]


@dataclass
class Result:
    """What was measured of a system.

    Attributes:
        turns: One mapping a turn: first_ms, first_mib, latency_ms, sentences_per_second, peak_mib.
        failure: Why there is none.
    """

    turns: list[Facts] = field(default_factory=list)
    failure: str = ""

    def median(self, key: str) -> float:
        """The median of all turns."""
        return median(turn[key] for turn in self.turns)


def run_child(system: str, folder: Path, *, number: int, stream: int = 0) -> tuple[dict[str, float], list[Facts]]:
    """One turn of a system.

    Args:
        system: One of `xsent.bench.peers.systems.SYSTEMS`.
        folder: Its model.
        number: Sentences to time; none are with 0.
        stream: Sentences of mixed length to watch the memory over.

    Returns:
        What it said, and its memory at points of the stream.

    Raises:
        DataError: It failed; has the last line of what it wrote.
    """
    arguments = [system, str(folder), str(number), str(stream)]
    began = time.perf_counter()
    threads = 2 if "2 threads" in system else 1
    facts: dict[str, float] = {}
    points: list[Facts] = []
    with TemporaryFile() as messages:
        child = start_child(
            "xsent.bench.peers.child", arguments, threads=threads, stdout=subprocess.PIPE, stderr=messages
        )
        try:
            assert child.stdout is not None
            for line in child.stdout:
                said = json.loads(line)
                if "first" in said:
                    facts["first_ms"] = 1000 * (time.perf_counter() - began)
                if "after" in said:
                    points.append(said)
                else:
                    facts |= said
            if child.wait() != 0:
                messages.seek(0)
                last = messages.read().decode(errors="replace").strip().splitlines()[-1:]
                raise DataError(f"{system}: {last[0] if last else f'ended with {child.returncode}'}")
        finally:
            end(child)
    return facts, points


def race(folders: Mapping[str, Path], *, turns: int, number: int) -> dict[str, Result]:
    """Let systems take turns; one that fails is left out of the turns after.

    Args:
        folders: The model of each system.
        turns: Turns of each.
        number: Sentences to time in a turn.
    """
    results = {system: Result() for system in folders}
    for _ in range(turns):
        for system, folder in folders.items():
            if results[system].failure:
                continue
            try:
                results[system].turns.append(run_child(system, folder, number=number)[0])
            except DataError as error:
                results[system].failure = str(error)
    return results


def rows(results: Mapping[str, Result]) -> list[list[str]]:
    """A table with one row a system, in brackets how many times better ours is: the median over turns."""
    ours = results[OURS].turns
    table = []
    for system, result in results.items():
        cells = [system]
        for key, decimals in COLUMNS.items():
            if result.failure or (system == BARE and key in ("sentences_per_second", "latency_ms")):
                cells.append("")
                continue
            ratio = "" if system == OURS else f" ({_times_better(result.turns, ours, key):.2f} ×)"
            cells.append(f"{result.median(key):,.{decimals}f}{ratio}")
        table.append(cells)
    return table


def _times_better(theirs: Sequence[Facts], ours: Sequence[Facts], key: str) -> float:
    pairs = list(zip(theirs, ours, strict=False))
    if key == "sentences_per_second":
        return median(own[key] / other[key] for other, own in pairs)
    return median(other[key] / own[key] for other, own in pairs)
