"""How a command ends when something goes wrong: one line on standard error and an exit code."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from xsent.errors import XsentError

FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, what shells expect after Ctrl-C


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn expected failures into one line and an exit code; also a decorator for commands.

    Our own errors, wrong arguments and failures of the system exit with 1, Ctrl-C with 130; anything else is
    a bug and keeps its traceback.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        _exit("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        _drop_stdout()
        sys.exit(FAILED)
    except OSError as error:
        _drop_stdout()
        _exit(_describe(error), FAILED)
    except (XsentError, ValueError, TypeError) as error:
        _exit(str(error), FAILED)


def _describe(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _exit(message: str, code: int) -> None:
    sys.stderr.write(f"Error: {' '.join(message.split())}\n")
    sys.exit(code)


def _drop_stdout() -> None:
    """Forget what standard output still holds if it cannot be written: Python would complain at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
