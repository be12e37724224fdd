"""Parquet, by pyarrow.

A Parquet file is readable only once its end is written, so rows are first written as an Arrow stream, which can be
cut anywhere between two batches and gone on with; in the end each batch becomes a row group.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

from xsent.errors import MissingExtraError
from xsent.options import Vectors


class ArrowWriter:
    """An Arrow stream of columns `sentence` (text) and `vector` (lists of equal length).

    Args:
        file: A seekable file, at its end.
        dtype: Type of the numbers.
        width: How many a row has.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, file: IO[bytes], dtype: np.dtype[Any], width: int) -> None:
        self._arrow = _pyarrow()
        self._file = file
        self._width = width
        numbers = self._arrow.from_numpy_dtype(dtype)
        columns = [("sentence", self._arrow.string()), ("vector", self._arrow.list_(numbers, width))]
        self._schema = self._arrow.schema(columns)
        self._sentences: list[str] = []
        self._vectors: list[Vectors] = []
        if not file.tell():
            file.write(self._schema.serialize())

    def write(self, sentence: str, vector: Vectors) -> None:
        """See `xsent.writers.VectorWriter.write`."""
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

    def finish(self, rows: int) -> None:
        """See `xsent.writers.VectorWriter.finish`."""
        self.flush()


def arrow_to_parquet(stream: Path, file: IO[bytes]) -> None:
    """Turn an Arrow stream into a Parquet file, one batch at a time.

    Args:
        stream: What an `ArrowWriter` has written.
        file: What becomes the Parquet file, open for writing.
    """
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
