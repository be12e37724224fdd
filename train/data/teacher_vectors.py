"""What a teacher says about pairs of a store, kept on disk as it is made.

A cache is a folder: `about.json` (which teacher, which store), `vectors.f16` (vectors in the order in which they were
made) and `pairs.u32` (the pair of each). Both only grow. A pair is written after its vector is on the disk, so that
what an interruption leaves of a batch does not count, and the next one is written over it.
"""

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files import atomic_folder, naming_failed_write, sync

ABOUT, PAIRS, VECTORS = "about.json", "pairs.u32", "vectors.f16"


class TeacherVectors:
    """A teacher's vectors of some pairs, read where they lie.

    They are kept as float16: a unit vector is off by less than 2^-11 + sqrt(dim) 2^-25, its cosines by as much.
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
        about = {**about, "dim": dim, "layout": 2}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(path) as folder:
                (folder / ABOUT).write_text(json.dumps(about, indent=1))
                (folder / PAIRS).touch()
                (folder / VECTORS).touch()
        try:
            saved = dict(json.loads((path / ABOUT).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(error) from error
        if saved != about:
            other = ", ".join(name for name, value in about.items() if saved.get(name) != value) or "kind"
            raise DataError(f"{path}: teacher vectors of another {other}; delete it and it is made again")
        self._open()

    def __len__(self) -> int:
        return self._count

    def rows(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some pairs [n, dim], in their order.

        Raises:
            DataError: There is none of one of them.
        """
        if len(unknown := self.missing(pairs)):
            raise DataError(f"{self.path}: no vector of pair {unknown[0]}; run the training again to make it")
        if not len(pairs):
            return np.empty((0, self.dim), np.float32)
        vectors = np.frombuffer(self._pages, np.float16, self._count * self.dim).reshape(-1, self.dim)[self._row[pairs]]
        self._pages.madvise(mmap.MADV_DONTNEED)  # in memory the pages would add up to the whole file
        wide: NDArray[np.float32] = torch.from_numpy(vectors).float().numpy()  # NumPy takes several times as long
        return wide

    def missing(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some pairs that have no vector yet, in their order."""
        known = pairs < len(self._row)
        known[known] = self._row[pairs[known]] >= 0
        return pairs[~known]

    def add(self, pairs: NDArray[np.int64], vectors: NDArray[np.float16]) -> None:
        """Keep the vectors [n, dim] of pairs that have none yet [n].

        Raises:
            DataError: They cannot be written, say because the disk is full; those before are kept. Or another training
                adds vectors too.
        """
        if (self.path / PAIRS).stat().st_size // 4 != self._count:
            raise DataError(f"{self.path}: another training adds to it; run this one again when that has its vectors")
        with naming_failed_write(self.path, "make room and run the same command again, it goes on from here"):
            self._append(VECTORS, 2 * self.dim, vectors.astype(np.float16, copy=False))
            self._append(PAIRS, 4, pairs.astype(np.uint32))
        self._open()

    def _append(self, name: str, size: int, rows: NDArray[np.generic]) -> None:
        """Write after the rows that count, each of so many bytes."""
        with open(self.path / name, "r+b") as file:
            file.seek(self._count * size)
            file.write(np.ascontiguousarray(rows).data)
            file.truncate()
            sync(file)

    def _open(self) -> None:
        """Look at what there is now."""
        try:
            pairs = np.fromfile(self.path / PAIRS, np.uint32)
            self._count = len(pairs)
            with open(self.path / VECTORS, "rb") as file:
                if os.fstat(file.fileno()).st_size < 2 * self.dim * self._count:
                    raise ValueError("fewer vectors than pairs")
                if self._count:
                    self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise self._damaged(error) from error
        self._row = np.full(int(pairs.max(initial=0)) + 1, -1, np.int32)  # the row of each pair, -1 where there is none
        self._row[pairs] = np.arange(self._count, dtype=np.int32)

    def _damaged(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: damaged teacher vectors ({error}); delete it and it is made again")
