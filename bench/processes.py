"""Measuring processes: how much memory one takes, and children that end with their parent."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from xsent.errors import DataError

MIB = 2**20


def status(field: str) -> float:
    """A field of /proc/self/status in MiB, such as VmHWM (peak resident memory) or RssAnon (not backed by a file).

    Not `getrusage`: its peak starts with what the parent held when it started this process.

    Raises:
        OSError: The system has no such file or field.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / MIB
    raise OSError(f"/proc/self/status has no {field}")


def peak_memory() -> float:
    """The most memory that this process ever held, in MiB, mapped files included."""
    return status("VmHWM")


def resident() -> float:
    """Memory of this process in MiB, mapped files included."""
    try:
        return status("VmRSS")
    except OSError:  # not Linux
        import psutil  # type: ignore[import-untyped]  # it has no types

        return float(psutil.Process().memory_info().rss) / MIB


def peak(least: float) -> float:
    """The most memory in MiB that this process ever held; where the system does not say, the most that was seen."""
    try:
        return peak_memory()
    except OSError:
        return least


class AnonymousPeak:
    """The most memory beside mapped files that this process holds while the block runs, looked at every 50 ms.

    Attributes:
        mib: The peak in MiB, once the block has ended.
    """

    def __init__(self) -> None:
        self.mib = status("RssAnon")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "AnonymousPeak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.mib = max(self.mib, status("RssAnon"))

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            self.mib = max(self.mib, status("RssAnon"))


def start_child(
    module: str,
    arguments: Sequence[str],
    *,
    threads: int,
    environment: Mapping[str, str] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
) -> "subprocess.Popen[bytes]":
    """Run a module of ours in a process of its own, so that its memory and its allocator are its own.

    Its standard input is a pipe that nobody but us holds: see `end_with_parent`.

    Args:
        module: Its dotted name.
        arguments: Its command line.
        threads: Threads of numerical libraries.
        environment: Variables to set beside those of this process.
        stdout: Where its output goes.
        stderr: Where its messages go.
    """
    limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, **limits, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
    )


def end_with_parent() -> None:
    """In a child: stop at once when the parent is gone, however it went."""

    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)  # no one writes: it returns when the pipe closes
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def answer_alone() -> None:
    """In a child: what libraries write to standard output goes to its messages; `sys.stdout` answers the parent."""
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Stop a child if it still runs, and close its pipes."""
    process.kill()
    process.communicate()


def answers(
    module: str, arguments: Sequence[str], *, threads: int = 1, environment: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of JSON that a module of ours says in a process of its own, as it says them.

    Args:
        module: Its dotted name.
        arguments: Its command line.
        threads: Threads of numerical libraries.
        environment: Variables to set beside those of this process.

    Raises:
        DataError: It failed; has the last line of what it wrote.
    """
    with TemporaryFile() as messages:
        child = start_child(
            module, arguments, threads=threads, environment=environment, stdout=subprocess.PIPE, stderr=messages
        )
        try:
            assert child.stdout is not None
            for line in child.stdout:
                yield _facts(line)
            if child.wait() != 0:
                messages.seek(0)
                last = messages.read().decode(errors="replace").strip().splitlines()[-1:]
                raise DataError(last[0] if last else f"the process ended with {child.returncode}")
        finally:
            end(child)


def _facts(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except ValueError as error:
        raise DataError(f"said {line[:80]!r} instead of its figures") from error


def wait_for_one(running: Sequence["subprocess.Popen[bytes]"]) -> list["subprocess.Popen[bytes]"]:
    """The children that have ended, as soon as there are any."""
    while not (ended := [process for process in running if process.poll() is not None]):
        time.sleep(0.1)
    return ended
