"""Is one xsent slower than another? By figures that stay the same on a noisy machine as long as the code does.

Where instructions can be counted (`perf`, `valgrind`) they are: neither other programs nor heat change them. Elsewhere
encoding is timed in turns with a fixed work of numpy's, each turn right between two of the other's: what slows down one
slows down both, and only their ratio is kept; under load 3 it was found 5 % higher, under load 5 10 %.
In a child, with whatever code PYTHONPATH names: python -P slower.py WORK BUNDLE NUMBER
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.tokenizer import Tokenizer
from xsent_bench.texts import sentences

# At once: some ten milliseconds, or 100 million instructions. Only the second is timed: other programs slow down
# searching pieces less than numpy's work.
SENTENCES = {"tokenise": 1000, "encode": 20}
# Processes, because how one lies in memory makes a difference of its own; turns of every process.
PROCESSES, TURNS = 11, 10
TIME, AUTO = "time", "auto"
# What stands before a command, where the count is in the messages, and how many times SENTENCES are counted: the start
# of a process varies by a few million instructions; valgrind is too slow for more.
CACHEGRIND = "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null"
COUNTERS = {
    "perf": ("perf stat -x, -e instructions:u --", r"^(\d+),.*instructions", 10),
    "valgrind": (CACHEGRIND, r"I\s+refs:\s+([\d,]+)", 2),
}
# One thread; without chance in the order of sets.
SETTINGS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def slower_than(old: Path, new: Path, bundle: Path, *, by: str, threshold: float) -> tuple[str, bool]:
    """A Markdown table of the code in two folders, and whether the new one is worse anywhere by more than a share."""
    chosen = available() if by == AUTO else by
    before, after = (costs(folder, bundle, chosen) for folder in (old, new))
    lines, worse = ["| figure | old | new | ratio |", "| --- | ---: | ---: | ---: |"], list[str]()
    for name in before:
        was, now = median(before[name]), median(after[name])
        lines.append(f"| {name} | {was:,.4g} | {now:,.4g} | {now / was:.3f} |")
        worse += [name] * is_worse(before[name], after[name], threshold)
    verdict = f"SLOWER: {', '.join(worse)}" if worse else "Not slower"
    lines += ["", f"{verdict} (by more than {threshold:.0%}, and beyond the spread of turns)."]
    return "\n".join(lines), bool(worse)


def is_worse(old: Sequence[float], new: Sequence[float], threshold: float) -> bool:
    """Whether the medians differ by more than a share, and four of five pairs of turns at all."""
    pairs = sorted(now / was for was in old for now in new)
    return median(new) / median(old) > 1 + threshold and pairs[len(pairs) // 5] > 1


def costs(code: Path, bundle: Path, by: str) -> dict[str, list[float]]:
    """Instructions of a sentence with the code in a folder, or the ratios of its time, by what was done."""
    if by == TIME:
        ratios = [float(run_child(child(TIME, bundle, TURNS), code).stdout) for _ in range(PROCESSES)]
        return {"encode, times numpy's work": ratios}
    return {f"{work}, instructions by {by}": [instructions(work, bundle, by, code)] for work in SENTENCES}


def instructions(work: str, bundle: Path, counter: str, code: Path) -> float:
    """Of a sentence: the same sentences twice less once, so that the start of the process goes out."""
    number = COUNTERS[counter][-1] * SENTENCES[work]
    commands = [child(work, bundle, n) for n in (number, 2 * number)]
    with ThreadPoolExecutor() as pool:  # counts, unlike times, do not mind each other
        once, twice = pool.map(lambda command: count(counter, command, code), commands)
    return (twice - once) / number


def available() -> str:
    """The best way to measure that works here: a counter may be there without the right to count."""
    for counter in COUNTERS:
        with suppress(OSError, DataError):
            count(counter, ["true"])
            return counter
    return TIME


def count(counter: str, command: Sequence[str], code: Path | None = None) -> int:
    """Instructions of a command; that it failed, or that nothing was counted, is a DataError."""
    prefix, pattern, _ = COUNTERS[counter]
    said = run_child([*prefix.split(), *command], code).stderr
    if not (counts := re.findall(pattern, said, re.MULTILINE)):
        raise DataError(f"{counter} counts no instructions here: {said.strip()[-200:]}")
    return sum(int(number.replace(",", "")) for number in counts)  # processors with two kinds of cores say two numbers


def child(work: str, bundle: Path, number: int) -> list[str]:
    """The command of a child: this file and not its module, which old code may not have."""
    return [sys.executable, "-P", __file__, work, str(bundle), str(number)]


def run_child(command: Sequence[str], code: Path | None) -> "subprocess.CompletedProcess[str]":
    """Run a command with the code of a folder, or this; that it fails is a DataError with its last line."""
    settings = SETTINGS if code is None else {**SETTINGS, "PYTHONPATH": str(code)}
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise DataError(f"{command[0]} ended with exit code {done.returncode}: {last}")
    return done


def median_of_turns(
    work: Callable[[], object], reference: Callable[[], object], turns: int, clock: Callable[[], float]
) -> float:
    """The time of work in times of the reference right before and after it, the median of all turns but the first.

    The clock says seconds of this process: other programs do not let it run.
    """
    found = []
    for _ in range(turns + 1):
        marks = [clock()]
        for run in (reference, work, reference):
            run()
            marks.append(clock())
        before, took, after = np.diff(marks)
        found.append(2 * took / (before + after))
    return median(found[1:])  # the first warms up


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


def work_on(work: str, bundle: Path, number: int) -> None:
    """Work on so many sentences, or time in so many turns and say the ratio."""
    encoder, texts = SentenceEncoder(bundle, threads=1), sentences(SENTENCES.get(work, SENTENCES["encode"]))
    cut: Callable[[str], object] = Tokenizer(encoder.bundle.tokenizer_path).encode
    encode = cut if work == "tokenise" else encoder.encode

    def run(times: int = 1) -> None:
        for text in texts * times:
            encode(text)

    if work == TIME:
        sys.stdout.write(str(median_of_turns(run, numpy_work(), number, time.process_time)))
    else:
        run(number // len(texts))


if __name__ == "__main__":
    work_on(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
