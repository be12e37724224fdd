"""A few figures that stay the same on a noisy machine as long as the code does, for `xsent-bench compare` in CI.

Where instructions can be counted (`perf`, `valgrind`) they are: neither other programs nor heat change them. Elsewhere
work is timed in turns with a fixed one of numpy's, each turn right between two of the other's: what slows down one
slows down both, and only their ratio is kept. Alone in a child: python -m xsent.bench.tracking WORK BUNDLE NUMBER
"""

import json
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
from xsent.bench.results import Measurement, Results
from xsent.bench.texts import sentences
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.probe import time_call
from xsent.threads import available_cpus
from xsent.tokenizer import Tokenizer

SENTENCES = {"tokenise": 1000, "encode": 20}  # at once: some ten milliseconds, or 100 million instructions
TIMED = "encode"  # what other programs slow down as much as numpy's work: searching pieces they do not
# Processes, because how one lies in memory makes a difference of its own; turns of every process.
PROCESSES, TURNS = 11, 10
TIME, AUTO = "time", "auto"
# What stands before a command, and where the count is in the messages.
COUNTERS = {
    "perf": ("perf stat -x, -e instructions:u --", r"^(\d+),.*instructions"),
    "valgrind": ("valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null", r"I\s+refs:\s+([\d,]+)"),
}
# Times SENTENCES: the start of a process varies by a few million instructions; valgrind is too slow for more.
REPEATED = {"perf": 10, "valgrind": 2}
# One thread; without chance in the order of sets.
SETTINGS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def track(bundle: Path, *, command: str, by: str = AUTO) -> Results:
    """Measure the stable set: instructions of a sentence, or ratios with one turn for each process.

    Its axes are the work and what it was measured by: "perf", "valgrind", "time" or, by "auto", the first of them that
    works here. So only figures of one kind are compared.

    Raises:
        DataError: There is no such way to measure, it does not work here, or a child failed.
        BundleError: The bundle is missing or damaged.
    """
    if by not in (AUTO, TIME, *COUNTERS):
        raise DataError(f"no way to measure by {by!r}; there are {', '.join([AUTO, *COUNTERS, TIME])}")
    chosen = available() if by == AUTO else by
    results = Results(command, {**environment(), "bundles": {"tracked": Bundle.open(bundle).fingerprint}})
    with Watch() as watch:
        results.measurements += time_work(bundle) if chosen == TIME else count_works(bundle, chosen)
    results.environment = {**results.environment, "meanwhile": watch.figures()}
    if chosen == TIME:  # others do not change counts
        results.notes += watch.warnings()
    return results


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
    """Instructions of a command.

    Raises:
        DataError: It failed, or nothing was counted.
        OSError: The counter is not installed.
    """
    prefix, pattern = COUNTERS[counter]
    messages = _run([*prefix.split(), *command]).stderr
    counts = [int(number.replace(",", "")) for number in re.findall(pattern, messages, re.MULTILINE)]
    if not counts:
        raise DataError(f"{counter} counts no instructions here: {_last_line(messages)}")
    return sum(counts)  # processors with two kinds of cores say two numbers


def count_works(bundle: Path, counter: str) -> list[Measurement]:
    """Instructions of a sentence: the same sentences twice less once, so that the start of the process goes out."""
    number = {work: REPEATED[counter] * at_once for work, at_once in SENTENCES.items()}
    children = [_child(work, bundle, times * number[work]) for work in number for times in (1, 2)]
    with ThreadPoolExecutor(available_cpus()) as pool:  # counts, unlike times, do not mind each other
        counts = list(pool.map(lambda child: count(counter, child), children))
    each = zip(number, counts[::2], counts[1::2], strict=True)
    return [
        Measurement("tracking", {"work": work, "by": counter}, {"instructions": (twice - once) / number[work]})
        for work, once, twice in each
    ]


def time_work(bundle: Path) -> list[Measurement]:
    """Ratios to numpy's work: the median of processes that themselves take the median of their turns."""
    turns = [{"ratio": json.loads(_run(_child(TIME, bundle, TURNS)).stdout)} for _ in range(PROCESSES)]
    return [Measurement.of_turns("tracking", {"work": TIMED, "by": TIME}, turns)]


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
    """What everything is compared with, arithmetic and memory: products with 4 MiB of weights, rows of a table."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((32, 512), np.float32), rng.standard_normal((512, 2048), np.float32)
    table, picks = rng.integers(-127, 128, (48_000, 512), np.int8), rng.integers(0, 48_000, (10, 20))

    def run() -> None:
        for ids in picks:
            np.tanh(x @ weight)
            table[ids].astype(np.float32).mean(axis=0)

    return run


def _child(work: str, bundle: Path, number: int) -> list[str]:
    return [sys.executable, "-m", "xsent.bench.tracking", work, str(bundle), str(number)]


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command, env={**os.environ, **SETTINGS}, capture_output=True, text=True)
    if done.returncode:
        raise DataError(f"{Path(command[0]).name} ended with exit code {done.returncode}: {_last_line(done.stderr)}")
    return done


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def main(name: str, bundle: Path, number: int) -> None:
    """Work on so many sentences once, or time what can be timed in so many turns and print the ratio as JSON."""
    if name == TIME:
        work = open_work(TIMED, bundle, SENTENCES[TIMED])
        sys.stdout.write(json.dumps(median_of_turns(work, numpy_work(), number, time.process_time)))
    else:
        open_work(name, bundle, number)()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
