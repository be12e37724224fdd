"""What people see of a command: progress, results, and how it ends when something goes wrong."""

import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Self, TypeVar

from xsent.errors import XsentError

T = TypeVar("T")

FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, what shells expect after Ctrl-C

_LONG = 1000  # letters of what is wrong that are shown, and as many of what to do
_INTERVAL = 0.5  # seconds between two reports of progress

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # what a terminal would obey


def main(module: str = "xsent.cli.main") -> None:
    """Run the `main` of a command line; from here on, while it is imported too, Ctrl-C is one line, and a warning."""
    _open_streams()
    with one_line_errors(), warnings.catch_warnings():
        warnings.showwarning = _show_warning
        import_module(module).main()


def _open_streams() -> None:
    """Put the null device where a standard stream was closed: it would be None, and a file would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Warn people, to whom the place in the source says nothing."""
    sys.stderr.write(f"Warning: {plain(message)}\n")


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
        reason = error.strerror or str(error)
        _exit(f"{error.filename}: {reason}" if error.filename else reason, FAILED)
    except (XsentError, ValueError, TypeError) as error:
        _exit(str(error), FAILED)


def plain(text: object) -> str:
    """What may come from a file or a name, on one line; what a terminal would obey is spelt out."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def _exit(message: str, code: int) -> None:
    line = plain(message)
    sys.stderr.write(f"Error: {line if len(line) <= _LONG else f'{line[:_LONG]} … {line[-_LONG:]}'}\n")
    sys.exit(code)


def _drop_stdout() -> None:
    """Forget what standard output still holds if it cannot be written: Python would complain at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_row(*fields: str) -> None:
    """Print fields as they are, with tabs between; on a terminal, what it would obey is spelt out."""
    if sys.stdout.isatty():
        fields = tuple(_CONTROL.sub(lambda found: ascii(found[0])[1:-1], field) for field in fields)
    sys.stdout.write("\t".join(fields) + "\n")


def print_json(content: object) -> None:
    """Print a line of JSON."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")


class Progress:
    """How far, how fast, how long to go: a line on standard error that is written over and over; a context manager.

    The unit is what is counted, plural. None for `enabled` writes if standard error is a terminal.
    """

    def __init__(self, unit: str, total: int | None = None, *, enabled: bool | None = None) -> None:
        self._unit = unit
        self._total = total
        self._enabled = sys.stderr.isatty() if enabled is None else enabled
        self._done = 0
        self._start = time.monotonic()
        self._next = self._start + _INTERVAL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._enabled:
            self._write("\n")

    def advance(self, count: int = 1) -> None:
        """Count `count` more."""
        self._done += count
        if self._enabled and time.monotonic() >= self._next:
            self._write("")
            self._next = time.monotonic() + _INTERVAL

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """Pass items on and count them."""
        for item in items:
            yield item
            self.advance()

    def _write(self, end: str) -> None:
        rate = self._done / max(time.monotonic() - self._start, 1e-9)
        of = f" of {self._total:,}" if self._total is not None else ""
        left = ""
        if self._total is not None and self._done:
            seconds = round((self._total - self._done) / rate)
            left = f", {seconds // 60}:{seconds % 60:02d} left"
        sys.stderr.write(f"\r\x1b[K{self._done:,}{of} {self._unit}, {rate:,.0f}/s{left}{end}")
        sys.stderr.flush()


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows, from column to value, as an aligned table with a heading; numbers stand right, what a row lacks is empty.

    Floats get one decimal, or four in a column that stays within -1 and 1.
    """
    names = dict.fromkeys(name for row in rows for name in row)  # in order of appearance
    columns = [_column(name, [row.get(name, "") for row in rows]) for name in names]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(name: str, values: Sequence[object]) -> list[str]:
    """The heading and the values, all of one width."""
    decimals = 4 if all(abs(value) <= 1 for value in values if isinstance(value, float)) else 1
    cells = [plain(name)]
    for value in values:
        if isinstance(value, float):
            cells.append(f"{value:.{decimals}f}")
        else:
            cells.append(f"{value:,}" if isinstance(value, int) else plain(value))
    side = ">" if any(isinstance(value, int | float) for value in values) else "<"
    return [f"{cell:{side}{max(map(len, cells))}}" for cell in cells]
