"""The vectors of an index: rows of float16 in a memory-mapped file."""

import mmap
import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xsent.backends.threads import ONE_THREAD, available_cpus, ordered_map
from xsent.errors import DataError
from xsent.precision import SHIFTED, shifted, widen
from xsent.similarity import release_pages

VECTORS = "vectors.f16"  # name of the file

STORED = np.dtype("<f2")
_SCORED = 4096  # adjacent rows that one thread scores before their pages are released
_BLOCK = 1024  # of those, rows that are converted at once, and stay in the cache
_TAKEN = 128  # rows read at once that are not adjacent

_TWO = 0x4000  # this bit is set in every float16 that is 2 or more, infinite or NaN; a vector of length 1 has none
_TINY = np.finfo(np.float32).tiny


class Float16Rows:
    """The first rows of `vectors.f16`, memory-mapped; the map stays valid when the file is replaced."""

    def __init__(self, file: Path, rows: int, dim: int) -> None:
        self._file = file
        expected = rows * dim * STORED.itemsize
        check_length(file, expected)
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_size < expected:
                raise DataError(f"{file}: was replaced while it was opened; open the index again")
            self._map = mmap.mmap(opened.fileno() if rows else -1, expected or 1, access=mmap.ACCESS_READ)
        self._rows = np.frombuffer(self._map, STORED, rows * dim).reshape(rows, dim)
        self._lengths = np.zeros(rows, np.float32)  # 0 until the first search, which looks for damage, too

    def cosines(self, queries: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Cosines of unit vectors [q, D] with all rows, as blocks [q, b] with the number of their first row, in order.

        They are rounded as large products are; `take` gives rows for exact ones. All CPUs share the work. Rows are not
        scaled to their exponents and to length 1: queries and cosines are, which are far fewer numbers.
        """
        firsts = range(0, len(self._rows), _SCORED)
        threads = min(available_cpus(), len(firsts) or 1)
        small = [np.empty((_BLOCK, self._rows.shape[1]), np.float32) for _ in range(threads)]
        score = partial(self._score, queries * SHIFTED, small)
        with ONE_THREAD if threads > 1 else nullcontext():
            for first, cosines in zip(firsts, ordered_map(score, firsts, threads), strict=True):
                yield first, cosines
                release_pages(self._rows)

    def _score(self, queries: NDArray[np.float32], free: list[NDArray[np.float32]], first: int) -> NDArray[np.float32]:
        """Cosines of scaled queries [q, D] with a block of rows; `free` has memory for each thread."""
        self._check_length()
        rows = self._rows[first : first + _SCORED]
        lengths = self._lengths[first : first + _SCORED]
        cosines, memory = np.empty((len(queries), len(rows)), np.float32), free.pop()
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            bits = shifted(rows[block], memory)
            if not lengths[start]:
                self._refuse_damage(rows[block])
                lengths[block] = _lengths(bits * SHIFTED)
            np.matmul(queries, bits.T, out=cosines[:, block])
        free.append(memory)
        cosines /= lengths
        return cosines

    def take(self, rows: NDArray[np.int64], first: int = 0) -> NDArray[np.float32]:
        """Some rows [r, D], whose numbers are counted from `first`."""
        self._check_length()
        wide = np.empty((len(rows), self._rows.shape[1]), np.float32)
        for start in range(0, len(rows), _TAKEN):
            if start:  # the system maps some pages around each one that is read
                release_pages(self._rows)
            stored = self._rows[first + rows[start : start + _TAKEN]]
            self._normalized(stored, wide[start : start + len(stored)])
        return wide

    def stored(self, row: int) -> NDArray[np.float16]:
        """One row [D] as stored on disk."""
        self._check_length()
        stored: NDArray[np.float16] = self._rows[row].copy()
        return stored

    def release_pages(self) -> None:
        """Release the pages that were read, see `xsent.similarity.release_pages`."""
        release_pages(self._rows)

    def _check_length(self) -> None:
        """Raise DataError if the file was truncated: the system kills a process that reads past its end."""
        if self._map.size() < len(self._map):
            raise DataError(f"{self._file}: was cut while it was open; replace an index as a whole folder")

    def _refuse_damage(self, stored: NDArray[np.float16]) -> None:
        if np.bitwise_or.reduce(stored.view(np.uint16), axis=None) & _TWO:
            raise DataError(f"{self._file}: damaged (a vector is not of length 1); build the index again")

    def _normalized(self, stored: NDArray[np.float16], wide: NDArray[np.float32]) -> None:
        self._refuse_damage(stored)
        widen(stored, wide)
        wide /= _lengths(wide)[:, None]  # undo the rounding of float16


def _lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The lengths of rows [n, D], none of them 0."""
    lengths: NDArray[np.float32] = np.maximum(np.sqrt(np.einsum("nd,nd->n", rows, rows)), _TINY)
    return lengths


def check_length(file: Path, expected: int) -> None:
    """Raises DataError if a file is missing or has fewer bytes than expected; it may have more."""
    if not file.is_file():
        raise DataError(f"{file}: missing; build the index again")
    if (size := file.stat().st_size) < expected:
        raise DataError(f"{file}: {size:,} bytes, expected {expected:,}; build the index again")
