"""What a teacher says about the English sides of a store's pairs, kept on disk as it is made.

A cache is a folder: `about.json` (which teacher, which store), `vectors.f16` (vectors in the order in which they were
made) and `pairs.u32` (the pair of each). Both only grow. A pair is written after its vector is on the disk, so that
what an interruption leaves of a batch does not count, and the next one is written over it.
"""

import logging
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress, islice
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from xsent.errors import DataError
from xsent.files import atomic_folder, naming_damage, naming_failed_write, read_json, sync, to_json
from xsent.train.data.corpus import Pair

logger = logging.getLogger(__name__)

ABOUT, PAIRS, VECTORS = "about.json", "pairs.u32", "vectors.f16"
BATCH = 65_536  # vectors written at a time: what an interruption costs at most
CHUNK = 4096  # sentences encoded at a time
REMEDY = "delete the folder and it is made again"


class Teaches(Protocol):
    """What gives vectors to learn from; `identity` changes when they do."""

    identity: str
    dim: int

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """Vectors of sentences [n, dim]."""
        ...


class TeacherVectors:
    """A teacher's vectors of some pairs, read where they lie.

    They are kept as float16: a unit vector is off by less than 2^-11 + sqrt(dim) 2^-25, its cosines by as much.
    """

    def __init__(self, path: Path, *, dim: int, about: Mapping[str, str | int]) -> None:
        """Open or begin a cache of vectors that depend on `about`; a DataError where it is damaged or another's."""
        self.path, self.dim = path, dim
        about = {**about, "dim": dim, "layout": 2}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(path) as folder:
                (folder / ABOUT).write_bytes(to_json(about))
                (folder / PAIRS).touch()
                (folder / VECTORS).touch()
        saved = read_json(path / ABOUT, REMEDY)
        if saved != about:
            other = ", ".join(name for name, value in about.items() if saved.get(name) != value) or "kind"
            raise DataError(f"{path}: teacher vectors of another {other}; delete it and it is made again")
        self._open()

    def __len__(self) -> int:
        return self._count

    def rows(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some pairs [n, dim], in their order; a DataError where one has none."""
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
        """Keep the vectors [n, dim] of pairs that have none yet [n]; a DataError where that fails or others add too."""
        if (self.path / PAIRS).stat().st_size // 4 != self._count:
            raise DataError(f"{self.path}: another training adds to it; run this one again when that has its vectors")
        with naming_failed_write(self.path, "make room and run the same command again, it goes on from here"):
            self._append(VECTORS, 2 * self.dim, vectors)
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
        with naming_damage(self.path, REMEDY), open(self.path / VECTORS, "rb") as file:
            pairs = np.fromfile(self.path / PAIRS, np.uint32)
            self._count = len(pairs)
            if os.fstat(file.fileno()).st_size < 2 * self.dim * self._count:
                raise ValueError("fewer vectors than pairs")
            if self._count:
                self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._row = np.full(int(pairs.max(initial=0)) + 1, -1, np.int32)  # the row of each pair, -1 where there is none
        self._row[pairs] = np.arange(self._count, dtype=np.int32)


def teacher_vectors(
    teacher: Teaches, pairs: Iterable[Pair], needed: NDArray[np.int64], folder: Path, *, key: str
) -> TeacherVectors:
    """A teacher's vectors of pairs of a store: those on disk, and what is missing is made, in constant memory.

    The pairs, see `kept_pairs`, are read as far as needed, if at all; `needed` are the numbers of those that will be
    drawn, each once [n]. Each teacher has a cache of its own in the folder, for the store that has this `key`. A
    DataError where that is damaged or of another store, or there are fewer pairs than the store has.
    """
    about = {"teacher": teacher.identity, "store": key, "side": "english"}
    vectors = TeacherVectors(folder / f"teacher-{teacher.identity}", dim=teacher.dim, about=about)
    missing = vectors.missing(np.unique(needed))
    if not len(missing):
        return vectors
    there, encoded = len(needed) - len(missing), 0
    logger.info("%s: %d vectors are there, teacher encodes %d more", vectors.path, there, len(missing))
    texts = _english_sides(pairs, missing)
    with tqdm(total=len(needed), initial=there, desc="teacher", unit="pair", disable=None) as bar:
        for start in range(0, len(missing), BATCH):
            numbers = missing[start : start + BATCH]
            batch = list(islice(texts, len(numbers)))
            if len(batch) < len(numbers):
                raise DataError(f"pair {numbers[len(batch)]} of the store is not in the corpus; prepare it again")
            places = {text: place for place, text in enumerate(dict.fromkeys(batch))}  # equal sentences once
            where = np.array([places[text] for text in batch])
            vectors.add(numbers, _encode(teacher, list(places), np.bincount(where), bar)[where])
            encoded += len(places)
    logger.info("%s: %d different sentences encoded", vectors.path, encoded)
    return vectors


def _encode(teacher: Teaches, texts: list[str], counts: NDArray[np.int64], bar: tqdm) -> NDArray[np.float16]:
    """Vectors of texts [n, dim], in chunks; `counts` says how many pairs each stands for on the progress bar."""
    vectors = np.empty((len(texts), teacher.dim), np.float16)
    for start in range(0, len(texts), CHUNK):
        here = slice(start, start + CHUNK)
        vectors[here] = teacher.encode(texts[here])
        bar.update(int(counts[here].sum()))
    return vectors


def _english_sides(pairs: Iterable[Pair], numbers: NDArray[np.int64]) -> Iterator[str]:
    """Those of the pairs of a stream that have the given numbers, which are sorted; reads no further."""
    wanted = np.zeros(numbers[-1] + 1, np.bool_)
    wanted[numbers] = True
    return (pair.english for pair in compress(islice(pairs, len(wanted)), wanted))
