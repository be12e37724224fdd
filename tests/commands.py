"""Running the `xsent` command from tests."""

import io
import json
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO
from unittest import mock

import pytest

from xsent.cli.terminal import main

# For a process of its own: an attempt to open a connection ends it.
OFFLINE = "import os, sys; sys.addaudithook(lambda event, _: event == 'socket.connect' and os._exit(99))"


class Runner:
    """Runs commands in this process, where `capture` catches their output."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: object, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one command."""
        system = {"argv": ["xsent", *map(str, arguments)], "stdin": io.TextIOWrapper(io.BytesIO(stdin.encode()))}
        started = mock.patch.object(sys.modules["__main__"], "__package__", None)  # not by python -m pytest
        with (
            mock.patch.multiple(sys, **system),
            started,
            warnings.catch_warnings(),
            pytest.raises(SystemExit) as caught,
        ):
            warnings.simplefilter("default")  # pytest makes them errors
            main()
        out, err = self._capture.readouterr()
        return int(caught.value.code or 0), out, err


def hear_ctrl_c() -> None:
    """Let Ctrl-C end a process also where whoever started the tests has it ignored, as a shell's `&` does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(
    *arguments: object,
    stdin: int | None = None,
    stdout: int | IO[bytes] | None = None,
    preexec_fn: Callable[[], object] | None = None,
    before: str = OFFLINE,
) -> "subprocess.Popen[bytes]":
    """Run a command in a process of its own, after a statement there."""
    command = [sys.executable, "-c", f"{before}; from xsent.cli.terminal import main; main()", *map(str, arguments)]
    return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=preexec_fn)


def interrupt(
    *arguments: object, lines: bytes, once: Callable[[], object], by: int = signal.SIGINT, before: str = OFFLINE
) -> tuple[int, bytes]:
    """Exit code and messages of a command that gets a signal while it waits for more than these lines."""
    process = start(*arguments, stdin=subprocess.PIPE, preexec_fn=hear_ctrl_c, before=before)
    assert process.stdin is not None
    process.stdin.write(lines)
    process.stdin.flush()
    for _ in range(1200):
        if once():
            break
        time.sleep(0.05)
    process.send_signal(by)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:  # Python loses a signal that arrives while it releases the lock of an import
        process.send_signal(by)
    _, err = process.communicate()
    return process.returncode, err


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Files by their paths, in folders that are made."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def edit_json(file: Path, **fields: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_bytes()) | fields))


def flip_byte(file: Path, place: int = -1) -> None:
    """Change one bit of a file."""
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def file_names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def is_one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n")


def raises(
    error: type[Exception], message: str, call: Callable[..., object], *arguments: object, **options: object
) -> None:
    with pytest.raises(error, match=message):
        call(*arguments, **options)


def assert_refused(outcome: tuple[int, str, str], message: str) -> None:
    """See that a command printed nothing but one line that says this, and failed."""
    code, out, err = outcome
    assert (code, out, is_one_line(err), err[:7]) == (1, "", True, "Error: "), err
    assert re.search(message, err) or message in err, err
