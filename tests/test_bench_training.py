"""The training benchmarks: what the clock counts, made-up corpora, tables; and the measured processes as a whole."""

import mmap
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from xsent.bench import processes
from xsent.bench.clock import Clock
from xsent.bench.options import numbers
from xsent.bench.training.corpus_memory import report
from xsent.bench.training.spec import Spec
from xsent.bench.training.speed import Race, Turn, answer, layers_table, race, throughput_table
from xsent.bench.training.synthetic import made_up_lines, made_up_words
from xsent.bench.training.work import measure
from xsent.errors import DataError, XsentError
from xsent.train.data.batching import Batch


def test_the_clock_leaves_out_the_last_step() -> None:
    times = iter([0.0, 0.25, 1.0, 2.0, 2.25, 4.0, 5.0, 9.0])  # asked, got, done; asked, got, done; asked, none
    batch: Any = None
    clock, turns = Clock(), []
    clock.before = turns.append
    with mock.patch("time.perf_counter", lambda: next(times)):
        batches: Iterator[Batch] = iter([mock.Mock(), mock.Mock()])
        for batch in clock.measured(batches):
            assert batch is not None
    assert clock.steps == [1.0] and clock.waits == [0.25] and turns == [0, 1, 2]
    assert clock.step == 1.0 and clock.waiting == 0.25


def test_made_up_pairs_are_different_words_of_the_wanted_length() -> None:
    words = made_up_words(1000)
    assert len(set(words)) == 1000
    lines = [line.decode().rstrip("\n").split("\t") for line in made_up_lines(2000, words=500, length=12, seed=1)]
    assert {(line[0], line[1]) for line in lines} == {("made-up", "xx")}
    lengths = [len(line[2].split()) for line in lines]
    assert 10 < sum(lengths) / len(lengths) < 14 and min(lengths) >= 2
    assert all([word + "x" for word in reversed(line[2].split())] == line[3].split() for line in lines)
    assert list(made_up_lines(5, words=500, length=12, seed=1)) == list(made_up_lines(5, words=500, length=12, seed=1))


def test_the_ratio_of_a_race_is_the_median_over_its_turns() -> None:
    ours, plain = ([Turn(step, 2 * step) for step in steps] for steps in ([1.0, 2.0, 1.0], [4.0, 10.0, 3.0]))
    found = Race(ours, plain, batch_size=8)
    assert found.ratio == 4.0
    text = found.markdown()
    assert "| ours | 1.000 | 8.0 | 2.000 |" in text and "| plain | 4.000 | 2.0 | 8.000 |" in text
    assert "**4.00 times** faster (turns: 4.00, 5.00, 3.00; bar: 4)" in text


@pytest.mark.parametrize(("device", "kind"), [("cpu", "processor"), ("GPU", "step")])
def test_layers_stand_beside_the_papers(device: str, kind: str) -> None:
    costs = {"step": 99.0, "processor": 99.0, "device": device}
    results = {1: {**costs, kind: 0.6, "peak": 1000.0}, 6: {**costs, kind: 1.2, "peak": 1500.0}}
    text = layers_table(results, 128)
    assert "| 1 | 100.0 | 1.00 | 19 | 1.00 | 1,000 | 1.00 | 7,135 | 1.00 |" in text
    assert "| 6 | 200.0 | 2.00 | 44 | 2.32 | 1,500 | 1.50 | 28,024 | 3.93 |" in text
    assert ("processor min" in text) == (device == "cpu")


def test_throughput() -> None:
    text = throughput_table({"ours": (Spec("."), {"step": 0.064, "waiting": 0.0123, "peak": 2048.0})})
    assert "| ours | 128 | 2,000 | 1.23 | 2,048 |" in text


def test_memory_is_compared_with_the_smallest_corpus() -> None:
    one = {"prepare": {"anonymous": 100.0, "peak": 150.0}, "train": {"anonymous": 200.0, "peak": 300.0}}
    ten = {"prepare": {"anonymous": 105.0, "peak": 170.0}, "train": {"anonymous": 250.0, "peak": 900.0}}
    text = report(Spec(".", steps=5, batch_size=7), {10: one, 100: ten}, "xsent-bench corpus-memory")
    assert "| 100 | train | 250 | 900 |" in text and "5 steps of 7 pairs" in text
    assert "- prepare: 100 pairs take 1.050 times what 10 take (bar: 1.10)" in text
    assert "- train: 100 pairs take 1.250 times" in text


@pytest.mark.parametrize("text", ["1,x", "", ","])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(DataError, match="expected whole numbers"):
        numbers(text)


def test_numbers_that_are_too_small() -> None:
    assert numbers("2,4", least=2) == [2, 4]
    with pytest.raises(DataError, match="'4,1': 1 must be at least 2"):
        numbers("4,1", least=2)


def test_memory_is_measured() -> None:
    with processes.AnonymousPeak() as peak:
        before = peak.mib
        # Pages of its own: the heap may have as much to spare from earlier tests.
        block = mmap.mmap(-1, 40 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(b"1" * len(block))
    assert peak.mib - before > 35
    assert processes.peak_memory() > peak.mib
    with pytest.raises(OSError, match="no VmNothing"):
        processes.status("VmNothing")


def test_a_child_ends_with_its_parent() -> None:
    program = (
        "import time; from xsent.bench.processes import end_with_parent; end_with_parent(); print(1, flush=True); "
    )
    with subprocess.Popen([sys.executable, "-c", program + "time.sleep(60)"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        child.stdin.close()
        assert child.wait(timeout=20) == 1


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    folder = tmp_path_factory.mktemp("made-up")
    return Spec(
        str(folder), num_layers=1, batch_size=8, steps=6, pairs=3000, words=200, length=5, vocabulary=500, dim=16
    )


@pytest.mark.parametrize("system", ["ours", "plain", "table"])
def test_every_system_is_measured(spec: Spec, system: str) -> None:
    result = measure(replace(spec, system=system))
    assert 0 < float(result["step"]) < 10 and 0 <= float(result["waiting"]) < 1 and float(result["peak"]) > 50
    assert [path.name for path in Path(spec.folder).glob("run-*")] == []


def test_systems_take_turns(spec: Spec) -> None:
    found = race(replace(spec, steps=8), {}, turns=3)
    assert len(found.ours) == len(found.plain) == 2 and found.ratio > 0


def test_a_failed_measurement_says_why() -> None:
    program = "import sys; sys.exit('noise\\nError: no room')"
    with subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1) as child:
        with pytest.raises(XsentError, match=r"^a measured training failed: Error: no room$"):
            answer(child)
