"""Figures that stay the same on a noisy machine as long as the code does, for `xsent-bench compare` in CI.

Where instructions can be counted (`perf`, `valgrind`) they are: neither other programs nor heat change them. Elsewhere
encoding is timed in turns with a fixed work of numpy's, each turn right between two of the other's: what slows down one
slows down both, and only their ratio is kept; under load 3 it was found 5 % higher, under load 5 10 %.
In a child: python -m xsent.bench.tracking WORK BUNDLE NUMBER
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

from xsent.bench.machine import Watch, environment
from xsent.bench.processes import answers, end_with_parent, say
from xsent.bench.results import Measurement, Results
from xsent.bench.texts import sentences
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.probe import time_call
from xsent.threads import available_cpus
from xsent.tokenizer import Tokenizer

MODULE = "xsent.bench.tracking"
# At once: some ten milliseconds, or 100 million instructions. Only the second is timed: other programs slow down
# searching pieces less than numpy's work.
SENTENCES = {"tokenise": 1000, "encode": 20}
# Processes, because how one lies in memory makes a difference of its own; turns of every process.
PROCESSES, TURNS = 11, 10
TIME, AUTO = "time", "auto"
# What stands before a command, where the count is in the messages, and how many times SENTENCES are counted: the start
# of a process varies by a few million instructions; valgrind is too slow for more.
COUNTERS = {
    "perf": ("perf stat -x, -e instructions:u --", r"^(\d+),.*instructions", 10),
    "valgrind": (
        "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null",
        r"I\s+refs:\s+([\d,]+)",
        2,
    ),
}
# One thread; without chance in the order of sets.
SETTINGS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def track(bundle: Path, *, command: str, by: str = AUTO) -> Results:
    """Measure instructions of a sentence, or ratios of time with one turn for each process.

    Axes are the work and what it was measured by: "perf", "valgrind", "time" or, by "auto", the first of them that
    works here. So only figures of one kind are compared.
    """
    if by not in (AUTO, TIME, *COUNTERS):
        raise DataError(f"no way to measure by {by!r}; there are {', '.join([AUTO, *COUNTERS, TIME])}")
    chosen = available() if by == AUTO else by
    about = {**environment(), "bundles": {"tracked": Bundle.open(bundle).fingerprint}}
    with Watch() as watch:
        found = time_work(bundle) if chosen == TIME else [count_work(work, bundle, chosen) for work in SENTENCES]
    notes = watch.warnings() if chosen == TIME else []  # others do not change counts
    return Results(command, {**about, "meanwhile": watch.figures()}, found, notes)


def available() -> str:
    """The best way to measure that works here: a counter may be there without the right to count."""
    for counter in COUNTERS:
        try:
            count(counter, ["true"])
        except (OSError, DataError):
            continue
        return counter
    return TIME


def count(counter: str, command: Sequence[str]) -> int:
    """Instructions of a command; that it failed, or that nothing was counted, is a DataError."""
    prefix, pattern, _ = COUNTERS[counter]
    done = subprocess.run([*prefix.split(), *command], env={**os.environ, **SETTINGS}, capture_output=True, text=True)
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if done.returncode:
        raise DataError(f"{counter} ended with exit code {done.returncode}: {last}")
    counts = [int(number.replace(",", "")) for number in re.findall(pattern, done.stderr, re.MULTILINE)]
    if not counts:
        raise DataError(f"{counter} counts no instructions here: {last}")
    return sum(counts)  # processors with two kinds of cores say two numbers


def count_work(work: str, bundle: Path, counter: str) -> Measurement:
    """Instructions of a sentence: the same sentences twice less once, so that the start of the process goes out."""
    number = COUNTERS[counter][-1] * SENTENCES[work]
    children = [[sys.executable, "-m", MODULE, work, str(bundle), str(n)] for n in (number, 2 * number)]
    with ThreadPoolExecutor(available_cpus()) as pool:  # counts, unlike times, do not mind each other
        once, twice = pool.map(lambda child: count(counter, child), children)
    return Measurement("tracking", {"work": work, "by": counter}, {"instructions": (twice - once) / number})


def time_work(bundle: Path) -> list[Measurement]:
    """The ratio: the median of processes, each of which takes the median of its turns."""
    arguments = [TIME, str(bundle), str(TURNS)]
    turns = [one for _ in range(PROCESSES) for one in answers(MODULE, arguments, environment=SETTINGS)]
    return [Measurement.of_turns("tracking", {"work": "encode", "by": TIME}, turns)]


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


def open_work(name: str, bundle: Path, number: int) -> Callable[[], None]:
    """One of `SENTENCES` on so many sentences."""
    opened, texts = Bundle.open(bundle), sentences(SENTENCES[name])
    system = Tokenizer(opened.tokenizer_path) if name == "tokenise" else SentenceEncoder(bundle, threads=1)
    encode: Callable[[str], object] = system.encode

    def run() -> None:
        for text in texts * (number // len(texts)):
            encode(text)

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


def main(name: str, bundle: Path, number: int) -> None:
    """Work on so many sentences once, or time in so many turns and say the ratio."""
    if name == TIME:
        work = open_work("encode", bundle, SENTENCES["encode"])
        end_with_parent()
        say({"ratio": median_of_turns(work, numpy_work(), number, time.process_time)})
    else:
        open_work(name, bundle, number)()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
