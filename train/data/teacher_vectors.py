"""What a teacher says about pairs of a store, kept on disk as it is made.

A cache is a folder: `about.json` (which teacher, which store) and folders `segment-000000` and on, each with
`pairs.u32` (sorted pair numbers) and `vectors.f16` (their vectors, row by row). A segment appears whole or not at all,
so that an interrupted run goes on after the last one, and a training that draws other pairs adds segments for those.
"""

import json
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files import atomic_folder, sweep

ABOUT, PAIRS, VECTORS = "about.json", "pairs.u32", "vectors.f16"

N = TypeVar("N", bound=np.generic)


class TeacherVectors:
    """A teacher's vectors of some pairs, read where they lie.

    They are kept as float16: a unit vector is off by less than 2^-11 + sqrt(dim) 2^-25, its cosines by as much.

    Attributes:
        dim: Length of a vector.
    """

    def __init__(self, path: Path, *, dim: int, about: Mapping[str, str | int]) -> None:
        """Open a cache, or make an empty one.

        Args:
            path: Its folder.
            dim: Length of a vector.
            about: What the vectors depend on: teacher, store, side.

        Raises:
            DataError: The cache is damaged, or was made for something else.
        """
        self.path, self.dim = path, dim
        about = {**about, "dim": dim}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(path) as folder:
                (folder / ABOUT).write_text(json.dumps(about, indent=1))
        sweep(path)
        try:
            saved = dict(json.loads((path / ABOUT).read_text()))
            segments = sorted(path.glob("segment-*"))
            self._segments = [Segment(segment, dim) for segment in segments]
            self._next = int(segments[-1].name.removeprefix("segment-")) + 1 if segments else 0
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path}: damaged teacher vectors ({error}); delete it and it is made again") from error
        if saved != about:
            other = ", ".join(name for name, value in about.items() if saved.get(name) != value) or "kind"
            raise DataError(f"{path}: teacher vectors of another {other}; delete it and it is made again")

    def __len__(self) -> int:
        return sum(len(segment.pairs) for segment in self._segments)

    def rows(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some pairs [n, dim], in their order.

        Raises:
            DataError: There is none of one of them.
        """
        vectors = np.empty((len(pairs), self.dim), np.float16)
        unknown = np.ones(len(pairs), np.bool_)
        for segment, found, rows in self._find(pairs):
            vectors[found] = segment.vectors[rows]
            unknown[found] = False
            segment.forget()
        if unknown.any():
            raise DataError(f"{self.path}: no vector of pair {pairs[unknown][0]}; run the training again to make it")
        wide: NDArray[np.float32] = torch.from_numpy(vectors).float().numpy()  # NumPy takes several times as long
        return wide

    def missing(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some pairs that have no vector yet, in their order."""
        unknown = np.ones(len(pairs), np.bool_)
        for segment, found, _ in self._find(pairs):
            unknown[found] = False
            segment.forget()
        return pairs[unknown]

    def add(self, pairs: NDArray[np.int64], vectors: NDArray[np.float16]) -> None:
        """Write a segment.

        Args:
            pairs: Sorted pair numbers that have no vectors yet [n].
            vectors: Their vectors [n, dim].

        Raises:
            DataError: It cannot be written, say because the disk is full; the segments before are kept.
        """
        path = self.path / f"segment-{self._next:06d}"
        try:
            with atomic_folder(path) as folder:
                (folder / PAIRS).write_bytes(pairs.astype(np.uint32).data)
                (folder / VECTORS).write_bytes(np.ascontiguousarray(vectors, np.float16).data)
            self._segments.append(Segment(path, self.dim))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise DataError(
                f"{path}: cannot be written: {reason}; make room and run the same command again, it goes on from here"
            ) from error
        self._next += 1

    def _find(self, pairs: NDArray[np.int64]) -> Iterator[tuple["Segment", NDArray[np.int64], NDArray[np.int64]]]:
        """For each segment that holds some of the pairs: which of them, and in which of its rows."""
        order = np.argsort(pairs, kind="stable")
        # In the type of the files: NumPy would copy a whole segment to search it for another one.
        wanted = pairs[order].astype(np.uint32)
        starts = np.searchsorted(wanted, np.array([segment.first for segment in self._segments], np.uint32))
        stops = np.searchsorted(wanted, np.array([segment.last for segment in self._segments], np.uint32), "right")
        for number in np.flatnonzero(starts < stops):
            segment, here = self._segments[number], slice(starts[number], stops[number])
            rows = np.searchsorted(segment.pairs, wanted[here])
            hit = segment.pairs[rows] == wanted[here]
            yield segment, order[here][hit], rows[hit]


class Segment:
    """Vectors of sorted pairs, mapped into memory.

    Attributes:
        pairs: Pair numbers [n].
        vectors: Their vectors [n, dim].
        first: The smallest pair number.
        last: The largest.
    """

    def __init__(self, path: Path, dim: int) -> None:
        """Open a segment.

        Raises:
            ValueError: Its files do not fit together.
            OSError: They cannot be read.
        """
        pairs, self.pairs = _map(path / PAIRS, np.uint32)
        pages, vectors = _map(path / VECTORS, np.float16)
        self._maps = (pairs, pages)
        if len(vectors) != len(self.pairs) * dim or (self.pairs[1:] <= self.pairs[:-1]).any():
            raise ValueError(f"the files of {path.name} do not fit together")
        self.vectors = vectors.reshape(-1, dim)
        self.first, self.last = int(self.pairs[0]), int(self.pairs[-1])
        self.forget()

    def forget(self) -> None:
        """Let go of the pages that were read: in memory they would add up to the whole segment."""
        for pages in self._maps:
            pages.madvise(mmap.MADV_DONTNEED)


def _map(path: Path, kind: type[N]) -> tuple[mmap.mmap, NDArray[N]]:
    with open(path, "rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pages, np.frombuffer(pages, kind)
