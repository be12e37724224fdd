"""Progress of long work, on standard error."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import length_hint
from typing import Self, TypeVar

T = TypeVar("T")
Total = int | Callable[[], int | None] | None  # a function is called at the first report: counting may take time

_BAR = 0.5  # seconds between two reports on a terminal
_LINE = 60.0  # seconds between two reports in a log
_CLEAR = "\r\x1b[K"


def clear_line() -> str:
    """What other lines begin with on a terminal, so that they replace a bar; elsewhere an empty string."""
    return _CLEAR if sys.stderr.isatty() else ""


def known_total(items: Iterable[object]) -> Callable[[], int | None]:
    """A function that counts the items for `Progress`; it gives None if their number is not known."""

    def count() -> int | None:
        with suppress(Exception):  # whoever reads the items will report it
            return length_hint(items) or None
        return None

    return count


class Progress:
    """Reports count, total, speed and time left; a context manager.

    On a terminal it is a bar that is rewritten, elsewhere a line each minute. `unit` is the plural of what is counted.
    `enabled` True shows the bar even if standard error is not a terminal, such as in a notebook; False shows nothing.
    """

    def __init__(self, unit: str, total: Total = None, *, enabled: bool | None = None) -> None:
        self._unit = unit
        self._total = total
        self._enabled = enabled is not False
        self._bar = sys.stderr.isatty() if enabled is None else enabled
        self._done = self._before = 0
        self._start = time.monotonic()
        self._next = self._start + self._interval

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._write("\n")

    def start_at(self, count: int) -> None:
        """Start the count after work done earlier, which does not count toward the speed."""
        self._done = self._before = count

    def advance(self, count: int = 1) -> None:
        """Add to the count."""
        self._done += count
        if self._enabled and time.monotonic() >= self._next:
            self._write("" if self._bar else "\n")
            self._next = time.monotonic() + self._interval

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items and count them."""
        for item in items:
            yield item
            self.advance()

    @property
    def _interval(self) -> float:
        return _BAR if self._bar else _LINE

    def _write(self, end: str) -> None:
        if callable(self._total):
            self._total = self._total()
        rate = (self._done - self._before) / max(time.monotonic() - self._start, 1e-9)
        of = f" of {self._total:,}" if self._total is not None else ""
        left = ""
        if self._total is not None and rate:
            left = f", {_clock(max(0, round((self._total - self._done) / rate)))} left"
        again = _CLEAR if self._bar else ""
        sys.stderr.write(f"{again}{self._done:,}{of} {self._unit}, {rate:,.{0 if rate >= 1 else 2}f}/s{left}{end}")
        sys.stderr.flush()


def _clock(seconds: int) -> str:
    """Seconds as minutes:seconds, or hours:minutes:seconds."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
