"""One turn of an encoder: a fresh process, and what it said."""

import json
import time
from dataclasses import asdict, dataclass, field

from xsent.bench.grid.child import Task
from xsent.bench.processes import answers

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
    # One thread for numerical libraries: ours run sentences side by side.
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
