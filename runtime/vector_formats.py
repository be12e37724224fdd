"""Formats of files of vectors, written front to back, so that what was cut short can be gone on with."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO

import numpy as np

from xsent.errors import MissingExtraError
from xsent.options import Vectors, stored_as


class RawWriter:
    """Numbers and nothing else, row after row: with float32 the layout of LASER. The other formats say what they add.

    Args:
        file: At its end: empty, or cut after a flush; seekable for the formats that fill in something in the end.
        precision: Form of the numbers; they are written little-endian.
        dim: Length of a vector (D).
    """

    def __init__(self, file: IO[bytes], precision: str, dim: int) -> None:
        dtype, self._width = stored_as(precision, dim)
        self._dtype = dtype.newbyteorder("<")
        self._file = file

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence, if the format keeps it, and its vector, [D] or [D / 8]."""
        self._file.write(vector.astype(self._dtype, copy=False).data)

    def flush(self) -> None:
        """Hand what is still held back to the file."""

    def finish(self, rows: int) -> None:
        """Complete the file, which has so many rows."""
        self.flush()


class NpyWriter(RawWriter):
    """A NumPy file [n, width]; n is filled in in the end."""

    def __init__(self, file: IO[bytes], precision: str, dim: int) -> None:
        super().__init__(file, precision, dim)
        if not file.tell():
            self._write_header(0)

    def finish(self, rows: int) -> None:
        """Say how many rows there are."""
        self._file.seek(0)
        self._write_header(rows)  # of the same length: NumPy leaves room for the first dimension to grow

    def _write_header(self, rows: int) -> None:
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, self._width)}
        np.lib.format.write_array_header_1_0(self._file, header)


class JsonLinesWriter(RawWriter):
    """One JSON object a line: `{"sentence": ..., "vector": [...]}`."""

    def write(self, sentence: str, vector: Vectors) -> None:
        """Nine digits bring a float32 back exactly."""
        numbers = ("%.9g," * len(vector) % tuple(vector.tolist()))[:-1]  # at once: a third faster than one by one
        text = json.dumps(sentence, ensure_ascii=False)
        self._file.write(f'{{"sentence": {text}, "vector": [{numbers}]}}\n'.encode())


class ArrowWriter(RawWriter):
    """What becomes a Parquet file: an Arrow stream of columns `sentence` (text) and `vector` (lists of equal length).

    A Parquet file is readable only once its end is written; this one can be cut anywhere between two batches. In the
    end each batch becomes a row group.
    """

    def __init__(self, file: IO[bytes], precision: str, dim: int) -> None:
        super().__init__(file, precision, dim)
        self._arrow = _pyarrow()
        vectors = self._arrow.list_(self._arrow.from_numpy_dtype(self._dtype), self._width)
        self._schema = self._arrow.schema([("sentence", self._arrow.string()), ("vector", vectors)])
        self._sentences: list[str] = []
        self._vectors: list[Vectors] = []
        if not file.tell():
            file.write(self._schema.serialize())

    def write(self, sentence: str, vector: Vectors) -> None:
        """Hold both back until there are enough for a batch."""
        self._sentences.append(sentence)
        self._vectors.append(vector)

    def flush(self) -> None:
        """Write what was held back as one batch."""
        if not self._sentences:
            return
        numbers = self._arrow.array(np.concatenate(self._vectors))
        vectors = self._arrow.FixedSizeListArray.from_arrays(numbers, self._width)
        columns = [self._arrow.array(self._sentences, self._arrow.string()), vectors]
        self._file.write(self._arrow.record_batch(columns, schema=self._schema).serialize())
        self._sentences, self._vectors = [], []


FORMATS: dict[str, type[RawWriter]] = {
    ".npy": NpyWriter,
    ".jsonl": JsonLinesWriter,
    ".parquet": ArrowWriter,
    ".f32": RawWriter,
}


def check_format(name: str, precision: str) -> None:
    """See whether a file of this name can be written and hold such vectors; complains if not."""
    if not name.endswith(tuple(FORMATS)):
        raise ValueError(f"{name}: expected a name that ends in {' or '.join(FORMATS)}")
    if name.endswith(".f32") and precision != "float32":
        raise ValueError(f"{name}: .f32 holds float32, not {precision}; give a name that ends in .npy")
    if name.endswith(".parquet"):
        _pyarrow()


def arrow_to_parquet(stream: Path, file: IO[bytes]) -> None:
    """Turn what an `ArrowWriter` has written into a Parquet file, one batch at a time."""
    arrow = _pyarrow()
    with stream.open("rb") as source:
        batches = arrow.ipc.open_stream(source)
        with arrow.parquet.ParquetWriter(file, batches.schema, compression="zstd", use_dictionary=False) as writer:
            for batch in batches:
                writer.write_batch(batch)


def _pyarrow() -> ModuleType:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("pyarrow is not installed; pip install 'xsent[parquet]'") from error
