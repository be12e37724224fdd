"""Systems in turns, each turn in a fresh process."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from xsent.bench.peers.entries import BARE, ENTRIES
from xsent.bench.processes import answers
from xsent.bench.results import Axis, Measurement
from xsent.errors import DataError

# What is compared, and its decimals.
COLUMNS = {"sentences_per_second": 0, "latency_ms": 2, "first_ms": 0, "first_mib": 0, "peak_mib": 0}
ENCODES = ("sentences_per_second", "latency_ms")  # what a bare process does not
# No system looks for anything outside, and none takes more threads than it is given for its tokenizer.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": "1"}
Facts = Mapping[str, float]


@dataclass
class Result:
    """What was measured of a system.

    Attributes:
        turns: One mapping a turn: first_ms, first_mib, latency_ms, sentences_per_second, peak_mib.
        failure: Why there is none, or no more.
    """

    turns: list[Facts] = field(default_factory=list)
    failure: str = ""

    def measurement(self, axes: Mapping[str, Axis]) -> Measurement:
        """The medians over turns, and the turns."""
        keys = [key for key in COLUMNS if key in self.turns[0] and (axes["system"] != BARE or key not in ENCODES)]
        turns = {key: [turn[key] for turn in self.turns] for key in keys}
        return Measurement("peers", axes, {key: median(values) for key, values in turns.items()}, turns)


def run_child(name: str, folder: Path, *, number: int, stream: int = 0) -> tuple[dict[str, float], list[Facts]]:
    """One turn of a system.

    Args:
        name: One of `ENTRIES`.
        folder: Its model.
        number: Sentences to time; none are with 0.
        stream: Sentences of mixed length to watch the memory over.

    Returns:
        What it said, and its memory at points of the stream.

    Raises:
        DataError: It failed; has the last line of what it wrote.
    """
    system = ENTRIES[name].system
    arguments = [system, str(folder), str(number), str(stream)]
    began = time.perf_counter()
    threads = 2 if "2 threads" in system else 1
    facts: dict[str, float] = {}
    points: list[Facts] = []
    try:
        for said in answers("xsent.bench.peers.child", arguments, threads=threads, environment=ENVIRONMENT):
            if "first" in said:
                facts["first_ms"] = 1000 * (time.perf_counter() - began)
            if "after" in said:
                points.append(said)
            else:
                facts |= said
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    return facts, points


def race(folders: Mapping[str, Path], results: Mapping[str, Result], *, turns: int, number: int) -> None:
    """Let systems take turns; one that fails is left out of the turns after.

    Args:
        folders: The model of each of `ENTRIES`.
        results: Of the same names; every turn is added as it ends.
        turns: Turns of each.
        number: Sentences to time in a turn.
    """
    for _ in range(turns):
        for name, folder in folders.items():
            if results[name].failure:
                continue
            try:
                results[name].turns.append(run_child(name, folder, number=number)[0])
            except (DataError, OSError) as error:
                results[name].failure = str(error)
