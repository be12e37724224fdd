"""Files of sentence vectors: read as memory maps, written front to back.

Beside every file lies `NAME.json` with the fingerprint of the encoder, so that vectors of different encoders
are never compared by mistake. What was cut short is resumed, see `xsent.vector_output`.
"""

import json
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import same_space
from xsent.errors import DataError, FingerprintError, needing
from xsent.files import naming_damage, plain_size, read_json
from xsent.options import Vectors, stored_as

_REMEDY = "encode the text again"


@dataclass(frozen=True)
class VectorNote:
    """What lies beside a file of vectors."""

    fingerprint: str  # identity of the encoder's vector space
    dim: int  # length of a vector (D)
    precision: str  # form of the numbers, see `xsent.SentenceEncoder.encode`
    normalized: bool  # whether vectors have length 1


@dataclass(frozen=True)
class VectorFile:
    """A file of vectors, opened."""

    path: Path
    note: VectorNote
    rows: NDArray[Any]  # [n, D], binary ones [n, D / 8], mapped into memory: only what is looked at is read


def open_vectors(path: str | Path) -> VectorFile:
    """Open a `.npy` or `.f32` file that `xsent encode` wrote; its note must lie beside it."""
    path = Path(path)
    if path.suffix not in (".npy", ".f32"):
        raise DataError(f"{path}: expected vectors in a .npy or .f32 file")
    note = _read_note(path)
    dtype, width = stored_as(note.precision, note.dim)
    with naming_damage(path, _REMEDY):
        size = plain_size(path)
        rows = np.lib.format.open_memmap(path, mode="r") if path.suffix == ".npy" else _map_raw(path, size, note.dim)
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype != dtype:
        raise DataError(
            f"{path}: {rows.dtype} of shape {list(rows.shape)}, its note says {note.precision} of {note.dim} "
            f"dimensions; {_REMEDY}"
        )
    return VectorFile(path, note, rows)


def check_same_space(a: VectorFile, b: VectorFile) -> None:
    """See whether two files can be compared: a FingerprintError or a DataError says in what they differ."""
    if not same_space(a.note.fingerprint, b.note.fingerprint):
        raise FingerprintError(
            f"{a.path} has vectors of {a.note.fingerprint}, {b.path} of {b.note.fingerprint}: use one model"
        )
    if (a.note.dim, a.note.precision) != (b.note.dim, b.note.precision):
        raise DataError(
            f"{a.path} holds {a.note.precision} of {a.note.dim} dimensions, {b.path} {b.note.precision} of "
            f"{b.note.dim}: encode both alike"
        )


def note_file(path: Path) -> Path:
    """The note beside a file of vectors."""
    return path.with_name(f"{path.name}.json")


def _read_note(path: Path) -> VectorNote:
    file = note_file(path)
    if not file.exists():
        raise DataError(f"{file}: missing; it says which model made {path.name}, copy it too")
    with naming_damage(file, _REMEDY):
        note = VectorNote(**read_json(file, _REMEDY))
        if type(note.dim) is not int or note.dim < 1:
            raise ValueError(f"dim = {note.dim!r} must be a number")
        if type(note.fingerprint) is not str:
            raise ValueError(f"fingerprint = {note.fingerprint!r:.80} must be text")
        stored_as(note.precision, note.dim)
    return note


def _map_raw(path: Path, size: int, dim: int) -> NDArray[Any]:
    row = 4 * dim
    if size % row:
        raise ValueError(f"{size:,} bytes are no whole number of vectors of {row:,}")
    return np.memmap(path, "<f4", "r", shape=(size // row, dim)) if size else np.empty((0, dim), "<f4")


class RawWriter:
    """Numbers and nothing else, row after row, little-endian: with float32 the layout of LASER.

    The file is at its end: empty, or cut after a flush; seekable for the formats that fill in something in the end.
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
    if Path(name).suffix not in FORMATS:  # a name of nothing but an ending has none
        raise ValueError(f"{name or '.'}: expected a name that ends in {' or '.join(FORMATS)}")
    if name.endswith(".f32") and precision != "float32":
        raise ValueError(f"{name}: .f32 holds float32, not {precision}; give a name that ends in .npy")
    if name.endswith(".parquet"):
        _pyarrow()


def arrow_to_parquet(stream: Path, file: IO[bytes], note: VectorNote) -> None:
    """Turn what an `ArrowWriter` has written into a Parquet file, one batch at a time; its metadata has the note."""
    arrow = _pyarrow()
    with stream.open("rb") as source:
        batches = arrow.ipc.open_stream(source)
        schema = batches.schema.with_metadata({"xsent": json.dumps(asdict(note))})
        with arrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer:
            for batch in batches:
                writer.write_batch(batch)


def _pyarrow() -> ModuleType:
    with needing("parquet"):
        arrow = import_module("pyarrow")
        import_module("pyarrow.parquet")
    return arrow
