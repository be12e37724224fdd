"""Measuring in separate processes: how much memory a process takes, and children that print their figures."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import IO, Any

from xsent.cpu import process_memory
from xsent.errors import DataError


def peak_memory() -> float:
    """The peak memory of this process in MiB, mapped files included; outside Linux, its current memory."""
    return process_memory("VmHWM") or resident()


def resident() -> float:
    """The current memory of this process in MiB, mapped files included."""
    if held := process_memory("VmRSS"):
        return held
    import psutil  # type: ignore[import-untyped]  # it has no types; imported here because it takes memory, too

    return float(psutil.Process().memory_info().rss) / 2**20


class Child:
    """A Python process that ends with the block or with this process.

    The child writes its figures as lines of JSON with `say`. Its standard input is a pipe that only this process holds;
    see `serve_parent`.
    """

    def __init__(
        self,
        arguments: Sequence[str],  # of Python
        *,
        threads: int = 1,  # of numerical libraries
        environment: Mapping[str, str] | None = None,
        messages: IO[bytes] | None = None,  # for its standard error, which holds the reason of a failure
    ) -> None:
        limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        self._messages = messages or TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **limits, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,  # Ctrl-C reaches only the parent, which then ends its children
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._process.send_signal(signal.SIGINT)  # lets it save its state
            self._process.wait()
        self._process.kill()
        self._process.communicate()
        self._messages.close()

    def answer(self) -> dict[str, Any] | None:
        """The next line of the child, or None when it has succeeded. Raises DataError with its last message if not."""
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            try:
                return dict(json.loads(line))
            except ValueError as error:
                raise DataError(f"printed {line[:80]!r} instead of its figures") from error
        if self._process.wait() != 0:
            self._messages.seek(0)
            last = self._messages.read().decode(errors="replace").strip().splitlines()[-1:]
            reason = last[0].removeprefix("Error: ") if last else f"exit code {self._process.returncode}"
            raise DataError(reason)
        return None


def answers(arguments: Sequence[str], **settings: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """All lines of a `Child` as it writes them."""
    with Child(arguments, **settings) as child:
        while (line := child.answer()) is not None:
            yield line


def serve_parent() -> None:
    """In a child: end as soon as the parent has ended for any reason, and keep standard output for `say`.

    What libraries write to standard output goes to standard error.
    """

    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)  # nothing is ever written, so this returns when the pipe closes
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


def say(facts: Mapping[str, object]) -> None:
    """In a child: write one line for the parent."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
