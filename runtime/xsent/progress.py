"""Progress of long work, on standard error."""

import sys
import time
from collections.abc import Iterable, Iterator
from operator import length_hint
from typing import Self, TypeVar

T = TypeVar("T")

_INTERVAL = 0.5  # seconds between two reports of progress


def known_total(items: Iterable[object]) -> int | None:
    """The number of items for a progress bar, if known; None if standard error is not a terminal."""
    return (length_hint(items) or None) if sys.stderr.isatty() else None


class Progress:
    """A progress bar: a line on standard error with count, speed and time left; a context manager.

    `unit` is the plural of what is counted. `enabled` turns the bar on or off; None means on if standard error is a
    terminal.
    """

    def __init__(self, unit: str, total: int | None = None, *, enabled: bool | None = None) -> None:
        self._unit = unit
        self._total = total
        self._enabled = sys.stderr.isatty() if enabled is None else enabled
        self._done = self._before = 0
        self._start = time.monotonic()
        self._next = self._start + _INTERVAL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._enabled:
            self._write("\n")

    def start_at(self, count: int) -> None:
        """Start the count after work done earlier, which does not count toward the speed."""
        self._done = self._before = count

    def advance(self, count: int = 1) -> None:
        """Add to the count."""
        self._done += count
        if self._enabled and time.monotonic() >= self._next:
            self._write("")
            self._next = time.monotonic() + _INTERVAL

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items and count them."""
        for item in items:
            yield item
            self.advance()

    def _write(self, end: str) -> None:
        rate = (self._done - self._before) / max(time.monotonic() - self._start, 1e-9)
        of = f" of {self._total:,}" if self._total is not None else ""
        left = ""
        if self._total is not None and rate:
            seconds = round((self._total - self._done) / rate)
            left = f", {seconds // 60}:{seconds % 60:02d} left"
        sys.stderr.write(f"\r\x1b[K{self._done:,}{of} {self._unit}, {rate:,.{0 if rate >= 1 else 2}f}/s{left}{end}")
        sys.stderr.flush()
