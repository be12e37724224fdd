"""The stable set: what it counts and times, and that a slowdown is seen on a machine that is never the same."""

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from xsent.bench import tracking
from xsent.bench.compare import compare
from xsent.bench.results import Measurement, Results
from xsent.bench.tracking import COUNTERS, TIME, WORKS, available, count, count_works, merged, open_work, ratios, track
from xsent.errors import BundleError, DataError


class NoisyMachine:
    """Its clock runs as work is done on it: at another speed every time, that drifts, with interruptions."""

    def __init__(self, random_: random.Random) -> None:
        self._random, self._now, self._slowness = random_, 0.0, random_.uniform(0.5, 2)

    def clock(self) -> float:
        """Seconds."""
        return self._now

    def work(self, seconds: float) -> Callable[[], None]:
        """Work of so many seconds when nothing disturbs it."""
        seconds *= self._random.lognormvariate(0, 0.02)  # how it lies in memory, another way in every process

        def run() -> None:
            self._slowness *= self._random.lognormvariate(0, 0.03)
            interrupted = self._random.choice([1.0] * 9 + [self._random.uniform(1, 3)])
            self._now += seconds * self._slowness * interrupted

        return run


def run_on(random_: random.Random, factor: float = 1.0) -> Results:
    """A whole run in made-up processes; factor times slower in encoding than usual."""
    processes = []
    for _ in range(tracking.PROCESSES):
        machine = NoisyMachine(random_)
        works = {"tokenise": machine.work(0.01), "encode": machine.work(factor * 0.02)}
        processes.append(ratios(works, machine.work(0.02), tracking.TURNS, machine.clock))
    return Results("xsent-bench tracking", {}, merged(processes))


def test_a_planted_tenth_is_caught_and_ten_runs_of_the_same_code_stay_quiet() -> None:
    random_ = random.Random(3)
    first = run_on(random_)
    for _ in range(10):
        assert not compare(first, run_on(random_)).of("slower")
        assert [change.name for change in compare(first, run_on(random_, 1.1)).of("slower")] == [
            "tracking work=encode by=time"
        ]


def test_ratios_by_hand() -> None:
    times = {"warm-up": 9.0, "reference": 2.0, "fast": 1.0, "slow": 5.0}
    now = 0.0
    turn = 0

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            nonlocal now, turn
            # The reference takes 2 s and then, each time it runs, as long again: 2, 4, 6, …
            turn += name == "reference"
            now += turn * times["reference"] if name == "reference" else times[name]

        return run

    found = ratios({"fast": work("fast"), "slow": work("slow")}, work("reference"), 1, lambda: now)
    # The first turn warms up (2, 4, 6); in the second the reference takes 8, 10 and 12 s.
    assert found == {"fast": 1 / 9, "slow": 5 / 11}


def test_instructions_of_a_sentence_leave_the_start_out(monkeypatch: pytest.MonkeyPatch, mini_bundle: Path) -> None:
    each = {"tokenise": 50, "encode": 7000}

    def counted(counter: str, command: Sequence[str]) -> int:
        work, bundle, number = command[-3:]
        assert bundle == str(mini_bundle)
        return 1_000_000 + each[work] * int(number)

    monkeypatch.setattr(tracking, "count", counted)
    for counter in COUNTERS:
        assert count_works(mini_bundle, counter) == [
            Measurement("tracking", {"work": work, "by": counter}, {"instructions": each[work]}) for work in WORKS
        ]


def test_a_real_slowdown_is_counted() -> None:
    counter = available()
    if counter == TIME:
        pytest.skip("nothing counts instructions here")

    def run(number: int) -> Results:
        loop = f"i=0; while [ $i -lt {number} ]; do i=$((i+1)); done"
        figures = {"instructions": count(counter, ["sh", "-c", loop])}
        return Results("", {}, [Measurement("tracking", {"by": counter}, figures)])

    old = run(2_000)
    assert not compare(old, run(2_000)).of("slower")
    assert compare(old, run(2_200)).of("slower")


def tool(folder: Path, name: str, says: str) -> None:
    """A program that says something on standard error."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    (folder / name).chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the tools are shell scripts")
@pytest.mark.parametrize(
    ("name", "says", "chosen"),
    [
        ("perf", "1234567,,instructions:u,9,100.00,,", "perf"),
        ("perf", "<not supported>,,instructions:u,0,100.00,,", "time"),
        ("perf", "1234,,cpu_core/instructions:u/,9,50.00,,", "perf"),
        ("valgrind", "==9== I   refs:      1,280,645", "valgrind"),
        ("other", "", "time"),
    ],
)
def test_the_best_counter_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str, chosen: str
) -> None:
    tool(tmp_path / "bin", name, says)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert available() == chosen


@pytest.mark.skipif(os.name != "posix", reason="the tools are shell scripts")
def test_counts_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    tool(tmp_path / "bin", "valgrind", "==9== I   refs:      1,280,645")
    assert count("valgrind", ["x"]) == 1_280_645
    tool(tmp_path / "bin", "perf", "12,,cpu_atom/instructions:u/,9,50,,\n30,,cpu_core/instructions:u/,9,50,,")
    assert count("perf", ["x"]) == 42
    tool(tmp_path / "bin", "perf", "<not counted>,,instructions:u,0,100.00,,")
    with pytest.raises(DataError, match=r"^perf counts no instructions here: <not counted>"):
        count("perf", ["x"])


def test_the_set_is_timed_in_processes(mini_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "PROCESSES", 2)
    monkeypatch.setattr(tracking, "TURNS", 1)
    results = track(mini_bundle, command="xsent-bench tracking", by="time")
    assert [m.axes for m in results.measurements] == [{"work": "encode", "by": "time"}]
    assert all(len(m.turns["ratio"]) == 2 and m.figures["ratio"] > 0 for m in results.measurements)
    assert results.command == "xsent-bench tracking" and results.environment["processor"]
    assert "meanwhile" in results.environment
    assert len(compare(results, results).changes) == 1


@pytest.mark.parametrize("work", WORKS)
def test_every_work_runs(mini_bundle: Path, work: str) -> None:
    open_work(work, mini_bundle, ["Anna", ""])()


def test_bad_input_is_one_clear_line(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no way to measure by 'guess'; there are auto, perf, valgrind, time"):
        track(mini_bundle, command="", by="guess")
    with pytest.raises(BundleError, match="nowhere: no such folder"):
        track(tmp_path / "nowhere", command="", by="time")
