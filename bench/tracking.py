"""A figure that stays the same on a noisy machine as long as the code does, for `xsent-bench compare` in CI.

Encoding is timed in turns with a fixed work of numpy's, each turn right between two of the other's: what slows down one
slows down both, and only their ratio is kept. Alone in a child: python -m xsent.bench.tracking BUNDLE TURNS
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from xsent.bench.machine import Watch, environment
from xsent.bench.processes import answers, end_with_parent, say
from xsent.bench.results import Measurement, Results
from xsent.bench.texts import sentences
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.probe import time_call

# Encoded at once: some ten milliseconds. Cutting into tokens is not tracked: other programs slow down searching pieces
# less than numpy's work.
SENTENCES = 20
# Processes, because how one lies in memory makes a difference of its own; turns of every process.
PROCESSES, TURNS = 11, 10
SETTINGS = {"PYTHONHASHSEED": "0"}  # no chance in the order of sets


def track(bundle: Path, *, command: str) -> Results:
    """Measure the ratio: the median of processes, each of which takes the median of its turns."""
    named = {"tracked": Bundle.open(bundle).fingerprint}
    arguments = [str(bundle), str(TURNS)]
    with Watch() as watch:
        turns = [one for _ in range(PROCESSES) for one in answers(MODULE, arguments, environment=SETTINGS)]
    about = {**environment(), "bundles": named, "meanwhile": watch.figures()}
    found = Measurement.of_turns("tracking", {"work": "encode", "by": "time"}, turns)
    return Results(command, about, [found], watch.warnings())


def median_of_turns(
    work: Callable[[], None], reference: Callable[[], None], turns: int, clock: Callable[[], float]
) -> float:
    """The time of work in times of the reference right before and after it, the median of all turns but the first.

    The clock says seconds of this process: other programs do not let it run.
    """
    ratios = []
    for _ in range(turns + 1):
        before, took, after = (time_call(run, clock) for run in (reference, work, reference))
        ratios.append(2 * took / (before + after))
    return median(ratios[1:])  # the first warms up


def encoding(bundle: Path) -> Callable[[], None]:
    """What is tracked."""
    encoder, texts = SentenceEncoder(bundle, threads=1), sentences(SENTENCES)

    def run() -> None:
        for text in texts:
            encoder.encode(text)

    return run


def numpy_work() -> Callable[[], None]:
    """What it is compared with, arithmetic and memory: products with 4 MiB of weights, rows of a table."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((32, 512), np.float32), rng.standard_normal((512, 2048), np.float32)
    table, picks = rng.integers(-127, 128, (48_000, 512), np.int8), rng.integers(0, 48_000, (10, 20))

    def run() -> None:
        for ids in picks:
            np.tanh(x @ weight)
            table[ids].astype(np.float32).mean(axis=0)

    return run


MODULE = "xsent.bench.tracking"

if __name__ == "__main__":
    end_with_parent()
    say({"ratio": median_of_turns(encoding(Path(sys.argv[1])), numpy_work(), int(sys.argv[2]), time.process_time)})
