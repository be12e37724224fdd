"""The formats of files of vectors, written one row at a time."""

from pathlib import Path
from typing import IO

import numpy as np

from xsent.errors import listed
from xsent.files.json_lines import to_json_line
from xsent.files.tables import Text, import_pyarrow
from xsent.precision import Vectors, stored_as


class RowWriter:
    """Appends rows to a file as raw little-endian numbers (float32 is LASER's layout); subclasses write other formats.

    The file is positioned at its end, empty or truncated after a flush; formats that complete a header at the end need
    it seekable.
    """

    def __init__(self, file: IO[bytes], precision: str, dim: int) -> None:
        dtype, self._width = stored_as(precision, dim)
        self._dtype = dtype.newbyteorder("<")
        self._file = file

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence, if the format stores it, and its vector, [D] or [D / 8]."""
        self._file.write(vector.astype(self._dtype, copy=False).data)

    def flush(self) -> None:
        """Write buffered rows; most formats buffer none."""

    def finish(self, rows: int) -> None:
        """Complete a file of `rows` rows."""
        self.flush()


class NpyWriter(RowWriter):
    """A NumPy file [n, width]; n is written into its header at the end."""

    def __init__(self, file: IO[bytes], precision: str, dim: int) -> None:
        super().__init__(file, precision, dim)
        if not file.tell():
            self._write_header(0)

    def finish(self, rows: int) -> None:
        """Write the number of rows into the header."""
        self._file.seek(0)
        self._write_header(rows)  # as long as before: NumPy leaves room for the first dimension to grow

    def _write_header(self, rows: int) -> None:
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, self._width)}
        np.lib.format.write_array_header_1_0(self._file, header)


class JsonLinesWriter(RowWriter):
    """One JSON object per line: `{"sentence": ..., "vector": [...]}`; if texts have ids, `id` comes first."""

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append an object; nine digits restore a float32 exactly."""
        numbers = ("%.9g," * len(vector) % tuple(vector.tolist()))[:-1]  # a third faster than one number at a time
        text = to_json_line(sentence)
        name = f'"id": {to_json_line(sentence.id)}, ' if isinstance(sentence, Text) else ""
        self._file.write(f'{{{name}"sentence": {text}, "vector": [{numbers}]}}\n'.encode())


class ArrowWriter(RowWriter):
    """An Arrow stream of columns `sentence` (text) and `vector` (lists of equal length), see `arrow_to_parquet`.

    If texts have ids, the column `id` comes first. Unlike a Parquet file, a stream can be truncated between two batches
    and continued.
    """

    def __init__(self, file: IO[bytes], precision: str, dim: int) -> None:
        super().__init__(file, precision, dim)
        self._arrow = import_pyarrow()
        self._sentences: list[str] = []
        self._vectors: list[Vectors] = []

    def write(self, sentence: str, vector: Vectors) -> None:
        """Buffer the row until the next flush."""
        self._sentences.append(sentence)
        self._vectors.append(vector)

    def flush(self) -> None:
        """Write the buffered rows as one batch; the first flush also writes the schema, even without rows."""
        if not self._sentences and self._file.tell():
            return
        text = self._arrow.string()
        numbers = self._arrow.array(np.concatenate(self._vectors or [np.empty(0, self._dtype)]))
        columns = {"sentence": self._arrow.array(self._sentences, text)}
        columns["vector"] = self._arrow.FixedSizeListArray.from_arrays(numbers, self._width)
        if ids := [sentence.id for sentence in self._sentences if isinstance(sentence, Text)]:
            columns = {"id": self._arrow.array(ids, text), **columns}
        batch = self._arrow.record_batch(columns)
        if not self._file.tell():
            self._file.write(batch.schema.serialize())
        self._file.write(batch.serialize())
        self._sentences, self._vectors = [], []


FORMATS: dict[str, type[RowWriter]] = {
    ".npy": NpyWriter,
    ".jsonl": JsonLinesWriter,
    ".parquet": ArrowWriter,
    ".f32": RowWriter,
}
ENDINGS = listed(FORMATS, "or")
TABLES = (".jsonl", ".parquet")  # files that also hold texts


def check_format(name: str, precision: str) -> None:
    """Raise ValueError if a file of this name cannot hold such vectors, MissingExtraError without pyarrow."""
    if Path(name).suffix not in FORMATS:  # a name that is only a suffix has none
        raise ValueError(f"{name or '.'}: expected a name that ends in {ENDINGS}")
    if name.endswith(".f32") and precision != "float32":
        raise ValueError(f"{name}: .f32 holds float32, not {precision}; use a name that ends in .npy")
    if name.endswith(".parquet"):
        import_pyarrow()
