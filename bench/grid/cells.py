"""One turn of an encoder: a fresh process, and what it said."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from tempfile import TemporaryFile
from typing import Any

from xsent.bench.grid.child import Task
from xsent.bench.processes import end, start_child
from xsent.errors import DataError

CHILD = "xsent.bench.grid.child"


@dataclass
class Turn:
    """What one process said.

    Attributes:
        first_ms: Milliseconds from the start of the process to its first vector.
        first_mib: Its memory then.
        ms: Milliseconds of each sentence by its tokens.
        rates: Sentences a second, of many at once, by their tokens.
        memory: MiB after so many sentences of a stream.
        peak_mib: The most memory that it ever held.
    """

    first_ms: float = 0.0
    first_mib: float = 0.0
    ms: dict[int, list[float]] = field(default_factory=dict)
    rates: dict[int, float] = field(default_factory=dict)
    memory: dict[int, float] = field(default_factory=dict)
    peak_mib: float = 0.0


def run_cell(task: Task) -> Turn:
    """Measure in a fresh process.

    Raises:
        DataError: It failed; has the last line of what it wrote.
    """
    turn = Turn()
    began = time.perf_counter()
    for said in answers(CHILD, [json.dumps(asdict(task))]):
        if "first_mib" in said:
            turn.first_ms, turn.first_mib = 1000 * (time.perf_counter() - began), said["first_mib"]
        elif "tokens" in said:
            turn.ms[said["tokens"]] = said["ms"]
            turn.rates[said["tokens"]] = said["sentences_per_second"]
        elif "after" in said:
            turn.memory[said["after"]] = said["mib"]
        else:
            turn.peak_mib = said["peak_mib"]
    return turn


def answers(module: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The lines of JSON that a module of ours says in a process of its own, as it says them.

    Raises:
        DataError: It failed; has the last line of what it wrote.
    """
    with TemporaryFile() as messages:
        # One thread for numerical libraries: ours run sentences side by side.
        child = start_child(module, arguments, threads=1, stdout=subprocess.PIPE, stderr=messages)
        try:
            assert child.stdout is not None
            for line in child.stdout:
                yield json.loads(line)
            if child.wait() != 0:
                messages.seek(0)
                last = messages.read().decode(errors="replace").strip().splitlines()[-1:]
                raise DataError(last[0] if last else f"the process ended with {child.returncode}")
        finally:
            end(child)
