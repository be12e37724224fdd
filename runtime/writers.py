"""Formats of files of vectors, written front to back: what was cut short can be gone on with."""

import json
from collections.abc import Callable, Mapping
from typing import IO, Any, Protocol

import numpy as np

from xsent.options import Vectors, stored_as
from xsent.parquet import ArrowWriter


class VectorWriter(Protocol):
    """Writes sentences with their vectors to an open file, in order."""

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence and its vector, [D] or [D / 8]."""
        ...

    def flush(self) -> None:
        """Hand what is still held back to the file."""
        ...

    def finish(self, rows: int) -> None:
        """Complete the file, which has so many rows."""
        ...


class RawWriter:
    """Numbers and nothing else, row after row: with float32 the layout of LASER.

    Args:
        file: Any file.
        dtype: Type of the numbers; they are written little-endian.
    """

    def __init__(self, file: IO[bytes], dtype: np.dtype[Any]) -> None:
        self._file = file
        self._dtype = dtype.newbyteorder("<")

    def write(self, sentence: str, vector: Vectors) -> None:
        """See `VectorWriter.write`; the sentence is not kept."""
        self._file.write(vector.astype(self._dtype, copy=False).data)

    def flush(self) -> None:
        """See `VectorWriter.flush`."""

    def finish(self, rows: int) -> None:
        """See `VectorWriter.finish`."""


class NpyWriter(RawWriter):
    """A NumPy file [n, width]; n is filled in at the end.

    Args:
        file: A seekable file, at its end.
        dtype: Type of the numbers.
        width: How many a row has.
    """

    def __init__(self, file: IO[bytes], dtype: np.dtype[Any], width: int) -> None:
        super().__init__(file, dtype)
        self._width = width
        if not file.tell():
            self._write_header(0)

    def finish(self, rows: int) -> None:
        """See `VectorWriter.finish`."""
        self._file.seek(0)
        self._write_header(rows)  # of the same length: NumPy leaves room for the first dimension to grow

    def _write_header(self, rows: int) -> None:
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, self._width)}
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
        numbers = ("%.9g," * len(vector) % tuple(vector.tolist()))[:-1]  # at once: a third faster than one by one
        self._file.write(
            f'{{"sentence": {json.dumps(sentence, ensure_ascii=False)}, "vector": [{numbers}]}}\n'.encode()
        )

    def flush(self) -> None:
        """See `VectorWriter.flush`."""

    def finish(self, rows: int) -> None:
        """See `VectorWriter.finish`."""


_WRITERS: Mapping[str, Callable[[IO[bytes], np.dtype[Any], int], VectorWriter]] = {
    ".npy": NpyWriter,
    ".jsonl": lambda file, dtype, width: JsonLinesWriter(file),
    ".parquet": ArrowWriter,
    ".f32": lambda file, dtype, width: RawWriter(file, dtype),
}


def check_format(name: str, precision: str) -> None:
    """See whether a file can hold vectors.

    Args:
        name: Its name; the ending says what it holds.
        precision: Form of the numbers.

    Raises:
        ValueError: There is no such format, or it cannot hold such numbers; says which can.
    """
    if not name.endswith(tuple(_WRITERS)):
        raise ValueError(f"{name}: expected a name that ends in {' or '.join(_WRITERS)}")
    if name.endswith(".f32") and precision != "float32":
        raise ValueError(f"{name}: .f32 holds float32, not {precision}; give a name that ends in .npy")


def open_writer(suffix: str, file: IO[bytes], precision: str, dim: int) -> VectorWriter:
    """Write vectors to a file.

    Args:
        suffix: Ending of its name, see `check_format`.
        file: Seekable and at its end: empty, or cut after a flush.
        precision: Form of the numbers.
        dim: Length of a vector (D).

    Raises:
        MissingExtraError: The format's package is not installed.
    """
    return _WRITERS[suffix](file, *stored_as(precision, dim))
