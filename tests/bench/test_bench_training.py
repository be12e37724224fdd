"""What a training step costs: its clock, its corpus, its process; and the processes of all measurements."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from xsent.cpu import process_memory
from xsent.errors import DataError
from xsent_bench import training
from xsent_bench.cli import app, numbers
from xsent_bench.processes import Child, peak_memory
from xsent_bench.training import Clock, TrainingSpec, made_up_pairs, made_up_words, measure_training


def test_the_clock_leaves_out_the_last_step() -> None:
    times = iter([1.0, 100.0, 2.0, 101.0, 4.5, 103.0])  # on the wall and of the processor, when each batch was there
    trainer: Any = SimpleNamespace(
        feed=SimpleNamespace(batches=lambda: SimpleNamespace(since=lambda step: iter("abc")))
    )
    clock = Clock(trainer)
    with mock.patch.multiple("time", perf_counter=lambda: next(times), process_time=lambda: next(times)):
        assert [*trainer.feed.batches().since(0)] == ["a", "b", "c"]
    assert clock.steps() == ([1.0, 2.5], [1.0, 2.0])


def test_made_up_pairs_are_different_words_of_the_wanted_length() -> None:
    words = made_up_words(1000)
    assert len(set(words)) == 1000
    lines = [line.decode().rstrip("\n").split("\t") for line in made_up_pairs(2000, 500)]
    assert {(line[0], line[1]) for line in lines} == {("made-up", "xx")}
    lengths = [len(line[2].split()) for line in lines]
    assert 22 < sum(lengths) / len(lengths) < 26 and min(lengths) >= 2 and max(lengths) <= training.LONGEST
    assert all([word + "x" for word in reversed(line[2].split())] == line[3].split() for line in lines)
    assert [*made_up_pairs(5, 500)] == [*made_up_pairs(5, 500)]


@pytest.mark.parametrize(
    ("text", "message"),
    [(text, "expected whole numbers") for text in ("1,x", "", ",")] + [("4,1", "'4,1': 1 must be at least 2")],
)
def test_numbers_that_are_none(text: str, message: str) -> None:
    assert numbers("2,4", least=2) == [2, 4]
    with pytest.raises(DataError, match=message):
        numbers(text, least=2)


def test_every_depth_and_batch_is_measured(tmp_path: Path) -> None:
    small = TrainingSpec(str(tmp_path), steps=6, pairs=3000, words=200, vocabulary=500, dim=16)
    found = list(measure_training(small, [0, 1], [8], "cpu"))
    assert [(m.axes["layers"], m.axes["batch"], m.axes["device"]) for m in found] == [
        (n, 8, "processor") for n in (0, 1)
    ]
    for figures in (m.figures for m in found):
        assert 0 < figures["step_seconds"] < 10 and figures["peak_mib"] > 50
        assert figures["pairs_per_second"] == pytest.approx(8 / figures["step_seconds"])
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.tsv", "prepared"}
    with mock.patch.object(training, "TrainingSpec", lambda folder, **settings: replace(small, **settings)):
        result = CliRunner().invoke(app, ["training", "--out", str(tmp_path), "--layers", "1", "--batches", "8,16"])
    assert result.exit_code == 0 and result.stdout.strip() == str(tmp_path / "report.md"), result.output
    rows = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("| 1 | ")]
    assert [row.split(" | ")[1:3] for row in rows] == [["8", "processor"], ["16", "processor"]]


def test_a_child_ends_with_its_parent() -> None:
    program = "import time; from xsent_bench.processes import say, serve_parent; serve_parent(); say({}); "
    with subprocess.Popen([sys.executable, "-c", program + "time.sleep(60)"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        child.stdin.close()
        assert child.wait(timeout=20) == 1


def test_a_child_that_fails_says_why() -> None:
    with Child("xsent_bench.training", ["{}"]) as child, pytest.raises(DataError, match=r"^(?!Error).*'folder'"):
        child.answer()
    with Child("this", []) as child, pytest.raises(DataError, match=r"^said b'The Zen.*instead of its figures"):
        child.answer()
    assert peak_memory() > 0.9 * process_memory("VmRSS")
    assert process_memory("VmNothing") == 0
