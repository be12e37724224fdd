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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

from xsent.bench.machine import Watch, environment
from xsent.bench.peers.texts import sentences
from xsent.bench.results import Measurement, Results
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.threads import available_cpus
from xsent.tokenizer import Tokenizer

Work = Callable[[], None]

WORKS = ("tokenise", "encode")
TIMED = ("encode",)  # what other programs slow down as much as numpy's work: searching pieces they do not
SENTENCES = {"tokenise": 1000, "encode": 20}  # at once: some ten milliseconds, or 100 million instructions
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
    """Measure the stable set.

    Args:
        bundle: What to encode with.
        command: The command line, for the results.
        by: "perf" or "valgrind" count instructions; "time" takes ratios; "auto" the first of them that works here.

    Returns:
        Measurements of group tracking with axes work and by, so that only figures of one kind are compared. Figures:
        instructions (of a sentence) or ratio (of the time of a block of sentences to that of numpy's work) with one
        turn for each process.

    Raises:
        DataError: There is no such way to measure, it does not work here, or a child failed.
        BundleError: The bundle is missing or damaged.
    """
    if by not in (AUTO, TIME, *COUNTERS):
        raise DataError(f"no way to measure by {by!r}; there are {', '.join([AUTO, *COUNTERS, TIME])}")
    chosen = available() if by == AUTO else by
    results = Results(command, {**environment(), "bundles": {"tracked": Bundle.open(bundle).fingerprint}})
    with Watch() as watch:
        results.measurements += time_works(bundle) if chosen == TIME else count_works(bundle, chosen)
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
    number = {work: REPEATED[counter] * SENTENCES[work] for work in WORKS}
    children = [_child(work, bundle, times * number[work]) for work in WORKS for times in (1, 2)]
    with ThreadPoolExecutor(available_cpus()) as pool:  # counts, unlike times, do not mind each other
        counts = list(pool.map(lambda child: count(counter, child), children))
    return [
        Measurement("tracking", {"work": work, "by": counter}, {"instructions": (twice - once) / number[work]})
        for work, once, twice in zip(WORKS, counts[::2], counts[1::2], strict=True)
    ]


def time_works(bundle: Path) -> list[Measurement]:
    """Ratios to numpy's work: the median of processes that themselves take the median of their turns."""
    return merged([json.loads(_run(_child(TIME, bundle, TURNS)).stdout) for _ in range(PROCESSES)])


def merged(processes: Sequence[Mapping[str, float]]) -> list[Measurement]:
    """What several processes found, as `ratios` gives it."""
    turns = {work: [found[work] for found in processes] for work in processes[0]}
    return [
        Measurement("tracking", {"work": work, "by": TIME}, {"ratio": median(values)}, {"ratio": values})
        for work, values in turns.items()
    ]


def ratios(works: Mapping[str, Work], reference: Work, turns: int, clock: Callable[[], float]) -> dict[str, float]:
    """The time of each work in times of the reference right before and after it, the median of all turns.

    Args:
        works: What is measured.
        reference: What it is measured by.
        turns: Of each; one more warms up.
        clock: Seconds of this process; other programs do not let it run.
    """

    def seconds(work: Work) -> float:
        began = clock()
        work()
        return clock() - began

    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(turns + 1):
        before = seconds(reference)
        for name, work in works.items():
            took, after = seconds(work), seconds(reference)
            found[name].append(2 * took / (before + after))
            before = after
    return {name: median(values[1:]) for name, values in found.items()}


def open_work(name: str, bundle: Path, texts: Sequence[str]) -> Work:
    """One of `WORKS` on some sentences."""
    if name == "tokenise":
        encode: Callable[[str], object] = Tokenizer(Bundle.open(bundle).tokenizer_path).encode
    else:
        encode = SentenceEncoder(bundle, threads=1).encode

    def run() -> None:
        for text in texts:
            encode(text)

    return run


def numpy_work() -> Work:
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


def main() -> None:
    """Work on so many sentences once, or time what can be timed in so many turns and print their ratios as JSON."""
    name, bundle, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if name == TIME:
        works = {work: open_work(work, bundle, sentences(SENTENCES[work])) for work in TIMED}
        sys.stdout.write(json.dumps(ratios(works, numpy_work(), number, time.process_time)))
    else:
        texts = sentences(SENTENCES[name])
        open_work(name, bundle, texts * (number // len(texts)))()


if __name__ == "__main__":
    main()
