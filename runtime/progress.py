"""Progress on standard error: how far, how fast, how long to go."""

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

_INTERVAL = 0.5  # seconds between two reports


class Progress:
    """One line that is written over and over; a context manager.

    Args:
        unit: What is counted, plural.
        total: How many there are, if known.
        enabled: Whether to write anything; None writes if standard error is a terminal.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
