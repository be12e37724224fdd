"""Measuring processes: how much memory one takes, and children that say figures and end with their parent."""

import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

from xsent.cpu import process_memory
from xsent.errors import DataError


def peak_memory() -> float:
    """The most memory that this process ever held, in MiB, mapped files included; outside Linux what it holds now."""
    return process_memory("VmHWM") or resident()


def resident() -> float:
    """Memory of this process in MiB, mapped files included."""
    if held := process_memory("VmRSS"):
        return held
    import psutil  # type: ignore[import-untyped]  # it has no types; here, not above: it takes memory itself

    return float(psutil.Process().memory_info().rss) / 2**20


class Child:
    """A module of ours in a process of its own, so that its memory and its allocator are its own; ends with the block.

    It says lines of JSON. Its standard input is a pipe that nobody but us holds; see `serve_parent`.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        threads: int = 1,  # of numerical libraries
        environment: Mapping[str, str] | None = None,
        messages: IO[bytes] | None = None,  # where its standard error goes; kept for the reason of a failure
    ) -> None:
        limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        self._messages = messages or TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **limits, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._messages.close()

    @property
    def has_ended(self) -> bool:
        """Whether it does not run any more."""
        return self._process.poll() is not None

    def answer(self) -> dict[str, Any] | None:
        """The next line that it says, None once it has ended well; else a DataError has its last message."""
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            try:
                return dict(json.loads(line))
            except ValueError as error:
                raise DataError(f"said {line[:80]!r} instead of its figures") from error
        if self._process.wait() != 0:
            self._messages.seek(0)
            last = self._messages.read().decode(errors="replace").strip().splitlines()[-1:]
            reason = last[0].removeprefix("Error: ") if last else f"the process ended with {self._process.returncode}"
            raise DataError(reason)
        return None

    def interrupt(self) -> None:
        """Let it save what it has, as on Ctrl-C, and wait until it has."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()


def answers(module: str, arguments: Sequence[str], **settings: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """All that a `Child` says, as it says it."""
    with Child(module, arguments, **settings) as child:
        while (said := child.answer()) is not None:
            yield said


def serve_parent() -> None:
    """In a child: stop at once when the parent is gone, however it went; `sys.stdout` answers it, see `say`.

    What libraries write to standard output goes to the messages.
    """

    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)  # no one writes: it returns when the pipe closes
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


def say(facts: Mapping[str, object]) -> None:
    """In a child: one line for the parent."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


@contextmanager
def silent() -> Iterator[None]:
    """Keep advice, warnings and progress bars of other tools off the screen, those in C++ too."""
    before = [os.dup(1), os.dup(2)]
    try:
        with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for place in (1, 2):
                os.dup2(nowhere.fileno(), place)
            yield
    finally:
        for place, kept in enumerate(before, 1):
            os.dup2(kept, place)
            os.close(kept)
