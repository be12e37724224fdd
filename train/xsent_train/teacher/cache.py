"""Teachers' vectors on disk.

A cache of vectors is a folder: `about.json` (which teacher, which store), `vectors.f16` (vectors in the order in which
they were computed) and the key of each, `pairs.u32` (number of the pair) or `sentences.u64` (hash of the sentence). The
files only grow. A key is written after its vector is on disk, so the rest of an interrupted batch does not count and is
overwritten.
"""

import logging
import mmap
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files.atomic import as_data_error, as_write_error, atomic_folder, open_to_write, read_json, sync, to_json
from xsent.progress import Progress
from xsent.similarity import Floats, release_pages
from xsent_train.data.corpus import Pair
from xsent_train.data.store import chosen_pairs
from xsent_train.teacher.open import TargetSource

logger = logging.getLogger(__name__)

PAIRS, SENTENCES, VECTORS = "pairs.u32", "sentences.u64", "vectors.f16"
BATCH = 65_536  # vectors written at a time, the most that an interruption can cost
CHUNK = 4096  # pairs encoded at a time
CACHE_REMEDY = "delete the folder, and it is rebuilt"

K = TypeVar("K", bound=np.integer)


class TeacherVectors:
    """A teacher's vectors on disk, by the key of the pair or the sentence.

    They are kept as float16: unit vectors and their cosines are off by less than 2^-11 + sqrt(dim) 2^-25.
    """

    def __init__(self, path: Path, *, dim: int, about: Mapping[str, str | int], keys: str = PAIRS) -> None:
        """Open or create a cache of vectors for `about`. Raises DataError if it is damaged or of another kind."""
        self.path = path
        self.dim = dim
        self._keys = keys
        self._kind = np.dtype(np.uint64 if keys == SENTENCES else np.uint32)
        about = {**about, "dim": dim, "layout": 2}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(path, private=True) as folder:
                (folder / "about.json").write_bytes(to_json(about))
                (folder / keys).touch()
                (folder / VECTORS).touch()
        saved = read_json(path / "about.json", CACHE_REMEDY)
        if saved != about:
            other = ", ".join(name for name, value in about.items() if saved.get(name) != value) or "kind"
            raise DataError(f"{path}: teacher vectors of another {other}; delete it, and it is rebuilt")
        self._open()

    def __len__(self) -> int:
        return self._count

    def rows(self, keys: NDArray[K]) -> Floats:
        """The vectors of keys [n, dim], in their order. Raises DataError if one is missing."""
        if len(unknown := self.missing(keys)):
            what = "pair" if self._keys == PAIRS else "sentence"
            raise DataError(f"{self.path}: no vector of {what} {unknown[0]}; run the training again to compute it")
        if not len(keys):
            return np.empty((0, self.dim), np.float32)
        all_vectors = np.frombuffer(self._pages, np.float16, self._count * self.dim).reshape(-1, self.dim)
        vectors = all_vectors[self._order[self._places(keys)]]
        release_pages(all_vectors)  # the whole file would end up in memory otherwise
        wide: Floats = torch.from_numpy(vectors).float().numpy()  # NumPy takes several times as long
        return wide

    def missing(self, keys: NDArray[K]) -> NDArray[K]:
        """The keys without a vector, in their order."""
        if not self._count:
            return keys
        missing: NDArray[K] = keys[self._sorted[self._places(keys)] != keys]
        return missing

    def _places(self, keys: NDArray[K]) -> NDArray[np.int64]:
        """The places of keys among the sorted ones; any place for missing keys."""
        return np.searchsorted(self._sorted, keys.astype(self._kind)).clip(max=self._count - 1)

    def add(self, keys: NDArray[K], vectors: NDArray[np.float16]) -> None:
        """Append the vectors [n, dim] of new keys [n]. Raises DataError if that fails or another process adds too."""
        if (self.path / self._keys).stat().st_size // self._kind.itemsize != self._count:
            raise DataError(f"{self.path}: another training adds vectors to it; run this one again after that")
        with as_write_error(self.path, "make room and run the same command again; it resumes here"):
            grown = (VECTORS, 2 * self.dim, vectors), (self._keys, self._kind.itemsize, keys.astype(self._kind))
            for name, size, rows in grown:
                with open_to_write(self.path / name) as file:
                    file.seek(self._count * size)
                    file.write(np.ascontiguousarray(rows).data)
                    file.truncate()
                    sync(file)
        self._open()

    def _open(self) -> None:
        with as_data_error(self.path, CACHE_REMEDY), open(self.path / VECTORS, "rb") as file:
            keys = np.fromfile(self.path / self._keys, self._kind)
            self._count = len(keys)
            if os.fstat(file.fileno()).st_size < 2 * self.dim * self._count:
                raise ValueError("fewer vectors than pairs")
            if self._count:
                self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]


def teacher_vectors(
    teacher: TargetSource, pairs: Iterable[Pair], needed: NDArray[np.int64], folder: Path, *, key: str
) -> TeacherVectors:
    """A teacher's vectors of pairs of a store: read from disk, or computed if missing, in constant memory.

    `pairs`, see `kept_pairs`, are read as far as needed, if at all; `needed` are the numbers of those that will be
    drawn [n]. Each teacher has its own cache in the folder, for the store with this `key`. Raises DataError
    if the cache is damaged or of another store, or if there are fewer pairs than the store has.
    """
    about = {"teacher": teacher.identity, "store": key, "side": "english"}
    vectors = TeacherVectors(folder / f"teacher-{teacher.identity}", dim=teacher.dim, about=about)
    needed = np.unique(needed)
    missing = vectors.missing(needed)
    if not len(missing):
        return vectors
    known = len(needed) - len(missing)
    logger.info("%s: has %d vectors; the teacher encodes %d more", vectors.path, known, len(missing))
    chosen = chosen_pairs(pairs, missing)
    with Progress("pairs encoded by the teacher", len(needed)) as progress:
        progress.start_at(known)
        for start in range(0, len(missing), BATCH):
            numbers = missing[start : start + BATCH]
            batch = list(islice(chosen, len(numbers)))
            if len(batch) < len(numbers):
                number = numbers[len(batch)]
                raise DataError(f"pair {number} of the store is not in the corpus; delete the store to rebuild it")
            computed = np.empty((len(batch), teacher.dim), np.float16)
            for first in range(0, len(batch), CHUNK):
                here = slice(first, first + CHUNK)
                computed[here] = teacher.targets(batch[here])
                progress.advance(len(batch[here]))
            vectors.add(numbers, computed)
    return vectors
