"""The made-up corpus of a timed training, and the child processes of all measurements."""

import json
import runpy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
import typer
from commands import assert_refused, file_names, raises
from typer.testing import CliRunner

import training
from training import TrainingSpec, made_up_pairs, made_up_words, train_and_time
from xsent.cpu import process_memory
from xsent.errors import DataError
from xsent_bench.cli import numbers
from xsent_bench.processes import answers, peak_memory


def test_made_up_pairs_are_different_words_of_the_wanted_length() -> None:
    assert len(set(made_up_words(1000))) == 1000
    lines = [line.decode().rstrip("\n").split("\t") for line in made_up_pairs(2000, 500)]
    assert {(line[0], line[1]) for line in lines} == {("made-up", "xx")}
    lengths = [len(line[2].split()) for line in lines]
    assert 22 < sum(lengths) / len(lengths) < 26 and min(lengths) >= 2 and max(lengths) <= training.LONGEST
    assert all([word + "x" for word in reversed(line[2].split())] == line[3].split() for line in lines)
    assert [*made_up_pairs(5, 500)] == [*made_up_pairs(5, 500)]


def test_every_depth_and_batch_size_of_a_training_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained in this process, which is quicker than a process each."""
    small = TrainingSpec(str(tmp_path), steps=6, pairs=3000, words=200, vocabulary=500, dim=16)

    def answers(arguments: Sequence[str], **_: object) -> list[dict[str, float | str]]:
        return [train_and_time(replace(small, num_layers=json.loads(arguments[2])["num_layers"], batch_size=8))]

    monkeypatch.setattr(training, "answers", answers)
    app = typer.Typer()
    app.command()(training.training)
    result = CliRunner().invoke(app, ["--out", str(tmp_path), "--layers", "0,1", "--batches", "8"])
    assert result.exit_code == 0, result.stderr
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[-2:]]
    assert [row[:2] for row in found] == [["0", "8"], ["1", "8"]]
    for row in found:
        rate, seconds, memory = (float(row[column].replace(",", "")) for column in (3, 4, 8))
        assert rate == pytest.approx(8 / seconds, rel=0.1) and memory > 50  # MiB
    assert {"corpus.tsv", "prepared"} <= file_names(tmp_path)


def test_numbers_of_an_option() -> None:
    assert numbers("2,4", least=2) == [2, 4]
    for text, message in {"1,x": "expected whole numbers", "": "expected", "4,1": "1 must be at least 2"}.items():
        raises(DataError, message, numbers, text, least=2)


def test_a_child_ends_with_its_parent() -> None:
    program = "import time; from xsent_bench.processes import say, serve_parent; serve_parent(); say({}); "
    with subprocess.Popen([sys.executable, "-c", program + "time.sleep(60)"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        child.stdin.close()
        assert child.wait(timeout=20) == 1


def test_a_child_may_save_its_state_when_its_parent_is_interrupted(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    program = "import signal, time\nfrom xsent_bench.processes import say\n"
    program += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's `&` has it ignored
    program += "try:\n    say({})\n    time.sleep(60)\n"
    program += f"except KeyboardInterrupt:\n    open({str(saved)!r}, 'w').close()"
    child = answers(["-c", program])
    assert next(child) == {}
    with pytest.raises(KeyboardInterrupt):
        child.throw(KeyboardInterrupt)
    assert saved.exists()


def test_a_training_in_a_child_fails_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Run here as in the child, where importing torch would take seconds."""
    serve = mock.patch("xsent_bench.processes.serve_parent")
    with serve as served, mock.patch.object(sys, "argv", [training.__file__, training.CHILD, "{}"]):
        with pytest.raises(SystemExit) as ending:
            runpy.run_path(training.__file__, run_name="__main__")
    served.assert_called_once()
    assert_refused((int(ending.value.code or 0), *capsys.readouterr()), "'folder'")


def test_a_child_that_fails_says_why() -> None:
    program = "import sys; print('warning', file=sys.stderr); sys.exit('Error: no folder')"
    killed = "import os, sys; print('step 40', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    raises(DataError, "^killed by SIGKILL; its last message: step 40$", list, answers(["-c", killed]))
    raises(DataError, r"^no folder$", list, answers(["-c", program]))
    raises(DataError, r"^printed b'The Zen.*instead of its figures", list, answers(["-m", "this"]))
    assert peak_memory() > 0.9 * process_memory("VmRSS")
    assert process_memory("VmNothing") == 0
