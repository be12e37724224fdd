"""Files of sentence vectors: written as a stream, read as memory maps.

Beside every file lies `NAME.json` with the fingerprint of the encoder, so that vectors of different encoders
are never compared by mistake.
"""

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_file
from xsent.options import Vectors


class VectorWriter(Protocol):
    """Writes sentences with their vectors to an open file, in order."""

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence and its vector [D]."""
        ...

    def finish(self) -> None:
        """Complete the file."""
        ...


class NpyWriter:
    """A NumPy file [n, D]; n is filled in at the end.

    Args:
        file: A seekable file.
        dim: Length of a vector (D).
        dtype: Type of the numbers.
    """

    def __init__(self, file: IO[bytes], dim: int, dtype: np.dtype[Any]) -> None:
        self._file = file
        self._dim = dim
        self._dtype = dtype.newbyteorder("<")
        self._rows = 0
        self._write_header()

    def write(self, sentence: str, vector: Vectors) -> None:
        """See `VectorWriter.write`; the sentence is not kept."""
        self._file.write(vector.astype(self._dtype, copy=False).data)
        self._rows += 1

    def finish(self) -> None:
        """See `VectorWriter.finish`."""
        self._file.seek(0)
        self._write_header()  # of the same length: NumPy leaves room for the first dimension to grow

    def _write_header(self) -> None:
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._rows, self._dim)}
        np.lib.format.write_array_header_1_0(self._file, header)


class JsonLinesWriter:
    """One JSON object a line: `{"sentence": ..., "vector": [...]}`.

    Args:
        file: Any file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, sentence: str, vector: Vectors) -> None:
        """See `VectorWriter.write`; nine digits bring a float32 back exactly."""
        numbers = ",".join(map("%.9g".__mod__, vector.tolist()))
        self._file.write(
            f'{{"sentence": {json.dumps(sentence, ensure_ascii=False)}, "vector": [{numbers}]}}\n'.encode()
        )

    def finish(self) -> None:
        """See `VectorWriter.finish`."""


@dataclass(frozen=True)
class VectorNote:
    """What lies beside a file of vectors.

    Attributes:
        fingerprint: Identity of the encoder's vector space.
        dim: Length of a vector (D).
        precision: Type of the numbers.
        normalized: Whether vectors have length 1.
    """

    fingerprint: str
    dim: int
    precision: str
    normalized: bool


@dataclass(frozen=True)
class VectorFile:
    """A file of vectors, opened.

    Attributes:
        path: The file.
        note: What lies beside it.
        rows: The vectors [n, D], mapped into memory: only what is looked at is read.
    """

    path: Path
    note: VectorNote
    rows: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)


def open_vectors(path: str | Path) -> VectorFile:
    """Open vectors that `vector_file` or `xsent encode` wrote.

    Args:
        path: A `.npy` file, or raw numbers (`.f32`, the layout of LASER); its note lies beside it.

    Raises:
        DataError: The file or its note is missing or damaged.
    """
    path = Path(path)
    note = _read_note(path)
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False) if path.suffix == ".npy" else _map_raw(path, note)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; expected vectors written by xsent encode") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no readable vectors ({error}); encode the text again") from error
    if rows.ndim != 2 or rows.shape[1] != note.dim or rows.dtype != np.dtype(note.precision):
        raise DataError(
            f"{path}: {rows.dtype} of shape {list(rows.shape)}, its note says {note.precision} of {note.dim} "
            "dimensions; encode the text again"
        )
    return VectorFile(path, note, rows)


def check_same_space(a: VectorFile, b: VectorFile) -> None:
    """See whether two files can be compared.

    Raises:
        FingerprintError: Different encoders made them; names both.
        DataError: They differ in dimension or in the type of the numbers.
    """
    if a.note.fingerprint != b.note.fingerprint:
        raise FingerprintError(
            f"{a.path} has vectors of {a.note.fingerprint}, {b.path} of {b.note.fingerprint}: use one model"
        )
    if (a.note.dim, a.note.precision) != (b.note.dim, b.note.precision):
        raise DataError(
            f"{a.path} holds {a.note.precision} of {a.note.dim} dimensions, {b.path} {b.note.precision} of "
            f"{b.note.dim}: encode both alike"
        )


def _read_note(path: Path) -> VectorNote:
    file = path.with_name(f"{path.name}.json")
    try:
        return VectorNote(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise DataError(f"{file}: missing; it says which model made {path.name}, copy it too") from error
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file}: damaged ({error}); encode the text again") from error


def _map_raw(path: Path, note: VectorNote) -> NDArray[Any]:
    dtype = np.dtype(note.precision).newbyteorder("<")
    row = note.dim * dtype.itemsize
    if (size := path.stat().st_size) % row:
        raise DataError(f"{path}: {size:,} bytes are no whole number of vectors of {row:,}; encode the text again")
    return np.memmap(path, dtype, "r", shape=(size // row, note.dim)) if size else np.empty((0, note.dim), dtype)


FORMATS = (".npy", ".jsonl")


@contextmanager
def vector_file(path: Path, note: VectorNote, *, force: bool = False) -> Iterator[VectorWriter]:
    """Write vectors to a file that appears, with its note, once it is complete.

    Args:
        path: The file; its ending, one of `FORMATS`, says what it holds.
        note: What to write beside it.
        force: Replace an existing file.

    Yields:
        The writer.

    Raises:
        FileExistsError: The file exists and `force` is not set.
        OSError: It cannot be written.
        ValueError: There is no such format; says which there are.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(FORMATS)}")
    beside = path.with_name(f"{path.name}.json")
    for existing in (path, beside):
        if existing.exists() and not force:
            raise FileExistsError(errno.EEXIST, "exists; --force replaces it", str(existing))
    with atomic_file(beside) as description, atomic_file(path) as file:
        writer = NpyWriter(file, note.dim, np.dtype(note.precision)) if path.suffix == ".npy" else JsonLinesWriter(file)
        yield writer
        writer.finish()
        description.write(json.dumps(asdict(note), indent=1).encode() + b"\n")
