"""What people see of a command: how it ends, progress, tables."""

import errno
import io
import os
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from unittest import mock

import pytest

from xsent.cli import terminal
from xsent.cli.terminal import format_table, markdown_table, one_line_errors
from xsent.errors import BundleError, DataError
from xsent.progress import Progress, clear_line, known_total


@pytest.mark.parametrize(
    ("error", "code", "line"), [("KeyboardInterrupt", 130, "interrupted"), ("ValueError('x')", 1, "x")]
)
def test_one_line_also_when_the_reader_is_gone(error: str, code: int, line: str) -> None:
    script = "from xsent.cli.terminal import one_line_errors\nwith one_line_errors():\n    print('row')\n    raise "
    read, write = os.pipe()
    os.close(read)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", script + error]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, f"Error: {line}\n")


def test_expected(capsys: pytest.CaptureFixture[str]) -> None:
    for error, code, line in [
        (BundleError("x: missing;\n copy it"), 1, "Error: x: missing; copy it\n"),
        (DataError("\x1b]0;a\x07.npy:\x9b2J\u202eb"), 1, "Error: \\x1b]0;a\\x07.npy:\\x9b2J\\u202eb\n"),
        (ValueError("a" * 2000 + "b" * 2000), 1, f"Error: {'a' * 1000} … {'b' * 1000}\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "Error: No space left on device\n"),
        (TypeError("expected str"), 1, "Error: expected str\n"),
        (
            ImportError("Error loading shared library\nlibstdc++.so.6"),  # as on musl
            1,
            "Error: a package cannot be imported (Error loading shared library libstdc++.so.6); install it again; some "
            "packages have no wheels for musl (Alpine) and 32-bit systems\n",
        ),
        (BrokenPipeError(), 1, ""),
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
    ]:
        with pytest.raises(SystemExit) as caught, one_line_errors():
            raise error
        assert (caught.value.code, capsys.readouterr().err) == (code, line)
    for bug in (ZeroDivisionError(), ImportError("cannot import name 'x'", name="xsent.words")):
        with pytest.raises(type(bug)), one_line_errors():  # bugs keep their traceback
            raise bug


@pytest.mark.parametrize("script", ["xsent", "xsent-train", "xsent-export", "xsent-bench"])
def test_ctrl_c_while_importing(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "import_module", mock.Mock(side_effect=KeyboardInterrupt))
    [point] = entry_points(group="console_scripts", name=script)
    with pytest.raises(SystemExit) as caught:
        point.load()()
    assert (caught.value.code, capsys.readouterr().err) == (130, "Error: interrupted\n")


def test_results_are_utf_8_in_any_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out := io.BytesIO(), "latin-1"))
    monkeypatch.setattr(terminal, "import_module", lambda _: mock.Mock(main=lambda: sys.stdout.write("für Поезд\n")))
    terminal.main()
    assert out.getvalue().decode() == "für Поезд\n"


@pytest.mark.parametrize("package", ["numpy", "sentencepiece", "typer"])
def test_a_package_that_is_missing_is_one_line(package: str) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from xsent.cli.terminal import main; main()"
    command = [sys.executable, "-c", script, "similarity", "a cat", "un chat"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"Error: a package cannot be imported (import of {package} halted")


def test_tables_of_results() -> None:
    for rows, table in [
        (
            [{"language": "fr", "n": 1000, "p": 95.04}, {"language": "mean", "p": 100.0}],
            "language      n      p\nfr        1,000   95.0\nmean             100.0",
        ),
        ([{"cosine": 0.99871}, {"cosine": 1.0}], "cosine\n0.9987\n1.0000"),  # shares keep four decimals
        ([{"a\x1b[2J": "b\x1b[31m\nc"}], "a\\x1b[2J\nb\\x1b[31m c"),  # what files say is not obeyed
        ([{"name": "請求", "n": 1}, {"name": "bill", "n": 2}], "name  n\n請求  1\nbill  2"),  # as wide as they look
        ([], ""),
    ]:
        assert format_table(rows) == table
    assert markdown_table(["", "a|b"], [["x", "1"]]) == "|  | a\\|b |\n| --- | ---: |\n| x | 1 |"


def test_standard_streams_may_be_closed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    command = f"'{sys.executable}' -c 'from xsent.cli.terminal import main; main()' encode a.txt --output a.npy"
    assert subprocess.run(["sh", "-c", f"{command} 0<&- 1>&- 2>&-"], cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.npy").exists()


def test_a_process_may_have_no_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    called = mock.Mock()
    monkeypatch.setattr(terminal, "import_module", called)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    terminal.main()
    called().main.assert_called_once_with()
    assert (sys.stdin.read(), sys.stdout.write("x"), sys.stderr.write("x")) == ("", 1, 1)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


def test_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for start, told in ((0, "500 of 2,000 sentences, 50/s, 0:30"), (1000, "1,500 of 2,000 sentences, 50/s, 0:10")):
        with Progress("sentences", 2000, enabled=True) as progress:
            progress.start_at(start)
            clock[0] += 10.0
            progress.advance(500)
            assert f"{told} left" in capsys.readouterr().err
    with Progress("lines", enabled=True) as progress:
        assert list(progress.count("abc")) == ["a", "b", "c"]
        clock[0] += 1.0
    assert capsys.readouterr().err.endswith("3 lines, 3/s\n")
    with Progress("lines", known_total(["a"] * 10_000)) as progress:  # no terminal: a line a minute
        for told in (
            "",
            "",
            "30 of 10,000 lines, 0.50/s, 5:32:20 left\n",
            "",
            "",
            "60 of 10,000 lines, 0.50/s, 5:31:20 left\n",
        ):
            clock[0] += 20.0
            progress.advance(10)
            assert capsys.readouterr().err == told
    assert not capsys.readouterr().err
    with Progress("lines", known_total(iter("ab")), enabled=False) as progress:
        clock[0] += 99.0
        progress.advance()
    assert not capsys.readouterr().err
    assert (known_total(iter("ab"))(), known_total(range(7))()) == (2, 7)
    assert clear_line() == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert clear_line() == "\r\x1b[K"  # a line of a log replaces the bar
