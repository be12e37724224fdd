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


def answers(
    arguments: Sequence[str],  # of Python
    *,
    threads: int = 1,  # of numerical libraries
    messages: IO[bytes] | None = None,  # for its standard error, which holds the reason of a failure
) -> Iterator[dict[str, Any]]:
    """The figures that a Python process writes with `say`, as lines of JSON; it ends with this process.

    Its standard input is a pipe that only this process holds; see `serve_parent`. Raises DataError with the last
    message of a process that fails.
    """
    limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    limits |= {"HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": "1"}  # no files from the network, no threads of a tokenizer
    messages = messages or TemporaryFile()
    child = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **limits},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=messages,
        start_new_session=True,  # Ctrl-C reaches only the parent, which then ends its children
    )
    assert child.stdout is not None
    try:
        while line := child.stdout.readline():
            try:
                figures = dict(json.loads(line))
            except ValueError as error:
                raise DataError(f"printed {line[:80]!r} instead of its figures") from error
            yield figures
        if code := child.wait():
            messages.seek(0)
            said = "".join(messages.read().decode(errors="replace").strip().splitlines()[-1:]).removeprefix("Error: ")
            if code < 0:  # often for lack of memory; its last message was then about something else
                said = f"killed by {signal.Signals(-code).name}; its last message: {said or 'none'}"
            raise DataError(said or f"exit code {code}")
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)  # lets it save its state
        child.wait()
        raise
    finally:
        child.kill()
        child.communicate()
        messages.close()


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
