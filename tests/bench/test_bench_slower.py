"""Old code beside new: a slowdown is seen on a machine that is never the same, and nothing else is."""

import os
import shutil
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

from xsent_bench import slower
from xsent_bench.cli import app
from xsent_bench.slower import COUNTERS, SENTENCES, available, count, instructions, is_worse, median_of_turns, work_on


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        ([100], [111], True),
        ([100], [109], False),
        ([111], [100], False),
        ([0.9, 1.0, 1.05], [1.1, 1.2, 1.4], True),
        ([0.9, 1.0, 1.3], [1.0, 1.2, 1.4], False),  # beyond the threshold, and three of nine pairs are not above 1
        ([*[1.0] * 8, 9.0], [1.11] * 9, True),  # a turn that went wrong hides nothing
        ([1.0] * 9, [*[1.11] * 8, 0.1], True),
        ([1.0] * 9, [*[1.0] * 5, *[2.0] * 4], False),
    ],
)
def test_what_is_slower(old: list[float], new: list[float], worse: bool) -> None:
    assert is_worse(old, new, 0.1) == worse


def test_ratios_to_work_around_it_by_hand() -> None:
    # The clock around each: the first turn warms up; in the second the reference takes 6 and 8 s, the work 5.
    clock = iter([0, 2, 7, 11, 11, 17, 22, 30])
    assert median_of_turns(lambda: None, lambda: None, 1, lambda: next(clock)) == 5 / 7


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
def test_instructions_of_a_sentence_leave_the_start_out(monkeypatch: pytest.MonkeyPatch, mini_bundle: Path) -> None:
    monkeypatch.setattr(slower, "count", lambda counter, command, code: 1_000_000 + 7 * int(command[-1]))
    found = [instructions(work, mini_bundle, counter, Path()) for work in SENTENCES for counter in COUNTERS]
    assert found == [7.0] * 4
    for work in SENTENCES:
        work_on(work, mini_bundle, SENTENCES[work])


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


def test_the_code_of_two_folders_is_run_and_compared(mini_bundle: Path, tmp_path: Path) -> None:
    runtime = Path(slower.__file__).resolve().parents[1] / "runtime"
    for name, wasted in (
        ("old", ""),
        ("new", "\nSentenceEncoder.encode = lambda *_, _f=SentenceEncoder.encode: [_f(*_) for n in 'abc']\n"),
    ):
        shutil.copytree(runtime, tmp_path / name / "xsent")
        shutil.copytree(runtime.parent / "bench", tmp_path / name / "xsent" / "bench")
        with (tmp_path / name / "xsent" / "encoder.py").open("a") as file:
            file.write(wasted)
    command = ["slower", str(tmp_path / "old"), str(tmp_path / "new"), "--model", str(mini_bundle), "--by"]
    with mock.patch.object(slower, "PROCESSES", 1), mock.patch.object(slower, "TURNS", 3):
        found = CliRunner().invoke(app, [*command, "time"])
        assert found.exit_code == 1 and "SLOWER: encode" in found.stdout, found.output
        turned = CliRunner().invoke(app, ["slower", command[2], command[1], *command[3:], "time"])
    assert turned.exit_code == 0 and "Not slower" in turned.stdout
    for options, message in (
        (["slower", str(tmp_path), command[2]], "no folder xsent in it"),
        ([*command[:4], str(tmp_path / "nowhere"), "--by", "time"], "nowhere: no such folder"),
    ):
        refused = CliRunner().invoke(app, options)
        assert refused.exit_code == 1 and message in refused.stderr
