"""Two runs side by side, and the stable set: a slowdown is seen on a machine that is never the same."""

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from xsent.bench import tracking
from xsent.bench.compare import compare, compare_files, median_ratio
from xsent.bench.results import Measurement, Results
from xsent.bench.tracking import COUNTERS, SENTENCES, available, count, median_of_turns, open_work, track
from xsent.errors import BundleError, DataError

ENVIRONMENT = {
    "processor": "A53",
    "instructions": "arm64",
    "cpus": 4,
    "versions": {"numpy": "2.0", "xsent": "0.1.0"},
    "threads": {"OMP_NUM_THREADS": "1"},
    "bundles": {"tracked": "a"},
    "system": "Linux 6.1",
}


def run(*measurements: Measurement) -> Results:
    return Results("xsent-bench", ENVIRONMENT, list(measurements))


def cell(ms: float, turns: Sequence[float] = ()) -> Measurement:
    return Measurement("latency", {"layers": 2}, {"p50_ms": ms}, {"p50_ms": turns} if turns else {})


def verdicts(old: Measurement, new: Measurement, threshold: float = 0.05) -> dict[str, str]:
    return {change.figure: change.verdict for change in compare(run(old), run(new), threshold).changes}


def test_ratios_by_hand() -> None:
    old = Measurement("latency", {"layers": 2}, {"p50_ms": 2.0, "sentences_per_second": 500.0})
    new = Measurement("latency", {"layers": 2}, {"p50_ms": 2.5, "sentences_per_second": 400.0})
    slower = compare(run(old), run(new)).changes
    assert [(c.figure, c.ratio, c.verdict) for c in slower] == [
        ("p50_ms", 1.25, "slower"),
        ("sentences_per_second", 1.25, "slower"),
    ]
    faster = compare(run(new), run(old)).changes
    assert [(c.ratio, c.verdict) for c in faster] == [(pytest.approx(0.8), "faster")] * 2
    assert verdicts(old, new, threshold=0.3) == {"p50_ms": "same", "sentences_per_second": "same"}


def test_the_spread_is_of_the_ratios_of_turns() -> None:
    # Ratios 3/2, 4/2, 3/1, 4/1: so few that nothing is left out.
    (change,) = compare(run(cell(1.5, [1, 2])), run(cell(3.5, [3, 4]))).changes
    assert (change.least, change.most) == (1.5, 4.0)
    assert median_ratio([2.0], [5.0]) == (2.5, 2.5)
    # Of 81 ratios 40.5 - 2.58 × sqrt(81 × 19 / 12) = 11.3 go at each end: all nine of a turn and two of the next.
    assert median_ratio([1.0] * 9, [*range(2, 11)]) == (3.0, 9.0)


def test_a_change_within_the_spread_of_the_turns_is_none() -> None:
    assert verdicts(cell(1.0, [0.8, 1.0, 1.3]), cell(1.2, [1.1, 1.2, 1.4])) == {"p50_ms": "same"}
    assert verdicts(cell(1.0, [0.9, 1.0, 1.05]), cell(1.2, [1.1, 1.2, 1.4])) == {"p50_ms": "same"}  # 1.1 / 1.05
    assert verdicts(cell(1.0, [0.9, 1.0, 1.04]), cell(1.2, [1.1, 1.2, 1.4])) == {"p50_ms": "slower"}
    five = [0.9, 1.0, 1.0, 1.0, 1.05], [1.1, 1.2, 1.2, 1.2, 1.4]
    assert verdicts(cell(1.0, five[0]), cell(1.2, five[1])) == {"p50_ms": "slower"}
    assert verdicts(cell(1.0), cell(1.09)) == {"p50_ms": "same"}  # taken once
    assert verdicts(cell(1.0, [1.0, 1.0, 1.0]), cell(1.04, [1.04, 1.04, 1.04])) == {"p50_ms": "same"}


def test_one_turn_that_went_wrong_hides_nothing() -> None:
    steady = [1.0 + i / 1000 for i in range(9)]
    slower = [1.1 * value for value in steady]
    assert verdicts(cell(1.0, [*steady[:8], 9.0]), cell(1.1, slower)) == {"p50_ms": "slower"}
    assert verdicts(cell(1.0, steady), cell(1.1, [*slower[:8], 0.1])) == {"p50_ms": "slower"}


def noisy(random_: random.Random, ms: float) -> Measurement:
    """Eleven turns that scatter by 3 %, and one in ten that something else disturbed."""
    turns = [ms * random_.lognormvariate(0, 0.03) * random_.choice([1.0] * 9 + [1.5]) for _ in range(11)]
    return cell(sorted(turns)[5], turns)


def test_a_planted_tenth_is_caught_and_the_same_code_stays_quiet() -> None:
    random_ = random.Random(7)
    first = noisy(random_, 1.0)
    assert [verdicts(first, noisy(random_, 1.0))["p50_ms"] for _ in range(10)] == ["same"] * 10
    assert [verdicts(first, noisy(random_, 1.1))["p50_ms"] for _ in range(10)] == ["slower"] * 10


@pytest.mark.parametrize("turns", [2, 3])
def test_few_turns_of_many_figures_stay_quiet(turns: int) -> None:
    random_ = random.Random(turns)

    def scattered() -> Results:
        every = [[random_.lognormvariate(0, 0.03) for _ in range(turns)] for _ in range(200)]
        cells = [Measurement("latency", {"cell": n}, {"p50_ms": median(t)}, {"p50_ms": t}) for n, t in enumerate(every)]
        return run(*cells)

    assert sum(change.verdict == "slower" for change in compare(scattered(), scattered()).changes) <= 200 // 25
    twice = [
        replace(cell, turns={"p50_ms": [2 * ms for ms in cell.turns["p50_ms"]]}) for cell in scattered().measurements
    ]
    twice = [replace(cell, figures={"p50_ms": 2 * cell.figures["p50_ms"]}) for cell in twice]
    assert not compare(scattered(), run(*twice)).of("same")


def test_a_score_that_collapsed_is_seen_and_one_that_is_gone_is_said() -> None:
    old = Measurement("quality", {"bundle": "a"}, {"tatoeba": 90.0, "sts": 70.0})
    comparison = compare(run(old), run(replace(old, figures={"sts": 0.0})))
    assert [(change.figure, change.verdict) for change in comparison.changes] == [("sts", "slower")]
    assert "SLOWER" in comparison.text() and "- only in the old run: tatoeba of quality bundle=a" in comparison.text()


def test_what_is_not_judged() -> None:
    unsteady = {"p95_ms": 1.0, "p99_ms": 1.0, "slope_mib": 0.01, "peak_mib": 0.0}
    old = Measurement("memory", {"layers": 2}, {**unsteady, "mib_1": 70.0})
    assert verdicts(old, replace(old, figures={**dict.fromkeys(unsteady, 5.0), "mib_1": 70.0})) == {"mib_1": "same"}
    for group, axes in (("peers", {"system": "other"}), ("share", {}), ("modules", {})):
        assert not verdicts(replace(old, group=group, axes=axes), replace(old, group=group, axes=axes))


def test_quality_falls_when_its_number_does() -> None:
    old = Measurement("quality", {"bundle": "a"}, {"tatoeba": 90.0, "p50_ms": 1.0, "bytes": 100})
    new = Measurement("quality", {"bundle": "a"}, {"tatoeba": 80.0, "p50_ms": 0.9, "bytes": 120})
    assert verdicts(old, new) == {"tatoeba": "slower", "p50_ms": "faster", "bytes": "slower"}


def write(folder: Path, name: str, results: Results) -> Path:
    results.write(folder / name)
    return folder / name


def test_the_text_has_what_changed_and_the_verdict(tmp_path: Path) -> None:
    size = Measurement("size", {"layers": 2}, {"bytes": 1000})
    gone = Measurement("size", {"layers": 6}, {"bytes": 1})
    old = write(tmp_path, "old.json", run(cell(1.0, [0.9, 1.0]), size, gone))
    new = write(tmp_path, "new.json", run(cell(2.0, [1.8, 2.2]), size, replace(gone, axes={"layers": 4})))
    comparison = compare_files(old, new)
    assert [change.name for change in comparison.of("slower")] == ["latency layers=2"]
    lines = comparison.text().splitlines()
    assert "| latency layers=2 | p50_ms | 1 | 2 | 2.00 (1.80–2.44) |" in lines
    assert "| size | 1 | 1.00 | 1.00 | 1.00 |" in lines
    assert "- only in the old run: size layers=6" in lines
    assert "- only in the new run: size layers=4" in lines
    assert lines[-1].startswith("SLOWER: 2 figures, 1 worse and 0 better by more than 5% and beyond")
    assert compare_files(old, old).text().splitlines()[-1].startswith("Not slower: 3 figures, 0 worse")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"processor": "A72"}, "processor A53 and A72"),
        ({"versions": {"numpy": "2.1", "xsent": "0.1.0"}}, r"numpy 2\.0 and 2\.1"),
        ({"versions": {"numpy": "2.0", "xsent": "0.1.0", "torch": "2"}}, "torch not there and 2"),
        ({"threads": {}}, "OMP_NUM_THREADS 1 and not there"),
        ({"bundles": {"tracked": "b"}}, "tracked a and b"),
    ],
)
def test_other_machines_and_versions_are_refused(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    old = write(tmp_path, "old.json", run(cell(1.0)))
    new = write(tmp_path, "new.json", replace(run(cell(1.0)), environment={**ENVIRONMENT, **changed}))
    with pytest.raises(DataError, match=rf"old\.json and .*new\.json .*--force.*: {message}$"):
        compare_files(old, new)
    assert "- differs: " in compare_files(old, new, force=True).text()


def test_what_an_older_xsent_did_not_say_is_a_remark(tmp_path: Path) -> None:
    silent = {name: value for name, value in ENVIRONMENT.items() if name != "bundles"}
    old = write(tmp_path, "old.json", replace(run(cell(1.0)), environment=silent))
    new = write(tmp_path, "new.json", run(cell(2.0)))
    comparison = compare_files(old, new)
    assert comparison.remarks == ["only one of the runs says its bundles"] and comparison.of("slower")


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    old = write(tmp_path, "old.json", run(cell(1.0)))
    with pytest.raises(DataError, match="no figure in common"):
        compare_files(old, write(tmp_path, "new.json", run()))
    with pytest.raises(DataError, match="nowhere: no results"):
        compare_files(old, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="threshold 0: expected a share above 0"):
        compare_files(old, old, threshold=0)


def test_ratios_to_work_around_it_by_hand() -> None:
    now, turn = 0.0, 0

    def reference() -> None:
        nonlocal now, turn
        turn += 1
        now += 2.0 * turn  # the reference takes 2 s and then, each time it runs, as long again: 2, 4, 6, …

    def work() -> None:
        nonlocal now
        now += 5.0

    # The first turn warms up (2, 4); in the second the reference takes 6 and 8 s.
    assert median_of_turns(work, reference, 1, lambda: now) == 5 / 7


def test_encoding_is_timed_in_processes(mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "PROCESSES", 2)
    monkeypatch.setattr(tracking, "TURNS", 1)
    results = track(mini_bundle, command="xsent-bench tracking", by="time")
    (found,) = results.measurements
    assert (
        found.name == "tracking work=encode by=time" and len(found.turns["ratio"]) == 2 and found.figures["ratio"] > 0
    )
    assert results.command == "xsent-bench tracking" and results.environment["processor"]
    assert "meanwhile" in results.environment and len(compare(results, results).changes) == 1
    with pytest.raises(BundleError, match="nowhere: no such folder"):
        track(tmp_path / "nowhere", command="", by="time")
    with pytest.raises(DataError, match="no way to measure by 'guess'; there are auto, perf, valgrind, time"):
        track(mini_bundle, command="", by="guess")


@pytest.mark.filterwarnings("ignore::xsent.options.LongSentenceWarning")
def test_instructions_of_a_sentence_leave_the_start_out(monkeypatch: pytest.MonkeyPatch, mini_bundle: Path) -> None:
    monkeypatch.setattr(tracking, "count", lambda counter, command: 1_000_000 + 7 * int(command[-1]))
    for counter in COUNTERS:
        assert track(mini_bundle, command="", by=counter).measurements == [
            Measurement("tracking", {"work": work, "by": counter}, {"instructions": 7}) for work in SENTENCES
        ]
    for work in SENTENCES:
        open_work(work, mini_bundle, SENTENCES[work])()


@pytest.mark.skipif(os.name != "posix", reason="the tools are shell scripts")
@pytest.mark.parametrize(
    ("name", "says", "found"),
    [
        ("perf", "1234567,,instructions:u,9,100.00,,", 1234567),
        ("perf", "<not supported>,,instructions:u,0,100.00,,", None),
        ("perf", "12,,cpu_atom/instructions:u/,9,50,,\n30,,cpu_core/instructions:u/,9,50,,", 42),
        ("valgrind", "==9== I   refs:      1,280,645", 1280645),
        ("other", "", None),
    ],
)
def test_the_best_counter_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str, found: int | None
) -> None:
    (tmp_path / name).write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert available() == (name if found else "time")
    if found:
        assert count(name, ["x"]) == found
