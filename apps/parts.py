"""Parts of an output: a folder of Parquet files, one a partition, each of which appears whole or not at all.

A part has the columns `row` (number in the whole input, from 0), `sentence` and `vector`. Under the key `xsent` its
metadata says what `xsent encode` notes of vectors, fingerprint first, and which rows of which source it has.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from xsent.apps.partitions import Partition
from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_file, existing, sweep

GROUP = 4096  # rows of a row group, all that is held in memory

Note = Mapping[str, object]
Pairs = Iterable[tuple[str, NDArray[Any]]]  # sentences with their vectors


def part_path(folder: Path, partition: Partition) -> Path:
    """Where a partition goes: the order of names is that of rows."""
    return folder / f"part-{partition.number:06}.parquet"


def missing_parts(folder: Path, partitions: Sequence[Partition], note: Note) -> list[Partition]:
    """Those that have no part yet, or a damaged one.

    A FingerprintError or a DataError says that a part is of another job.
    """
    names = {part_path(folder, partition).name for partition in partitions}
    for path in whole_parts(folder):
        if path.name not in names:
            raise DataError(f"{path}: of another input; give the same, or --force to start over")
    return [partition for partition in partitions if not _is_done(part_path(folder, partition), partition, note)]


def whole_parts(folder: Path) -> list[Path]:
    """Parts that a folder has, of whatever job."""
    return sorted(folder.glob("part-*.parquet"))


def prepare_folder(folder: Path, *, resume: bool, force: bool) -> None:
    """Make the folder, and take away what killed workers left half-written, and with `force` whole parts.

    A FileExistsError says that there are parts, and that neither `resume` nor `force` tells what to do with them.
    """
    if whole_parts(folder) and not (resume or force):
        raise existing(folder, "has parts; --resume goes on, --force starts over")
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    for path in whole_parts(folder) if force else []:
        path.unlink(missing_ok=True)


def write_part(folder: Path, partition: Partition, note: Note, pairs: Pairs, schema: "pyarrow.Schema") -> None:
    """Write a part, which appears once it is complete and on the disk."""
    facts = {**note, "source": Path(partition.source).name, "digest": partition.digest}
    schema = schema.with_metadata({"xsent": json.dumps(facts)})
    with (
        atomic_file(part_path(folder, partition)) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        for batch in _batches(partition.row, iter(pairs), schema):
            writer.write_batch(batch)


def part_schema(vectors: NDArray[Any]) -> "pyarrow.Schema":
    """Columns of a part, with vectors like these [n, D]."""
    vector = pyarrow.list_(pyarrow.from_numpy_dtype(vectors.dtype), vectors.shape[1])
    return pyarrow.schema([("row", pyarrow.int64()), ("sentence", pyarrow.string()), ("vector", vector)])


def _batches(row: int, pairs: Iterator[tuple[str, NDArray[Any]]], schema: "pyarrow.Schema") -> Iterator[Any]:
    while group := list(islice(pairs, GROUP)):
        rows = np.arange(row, row + len(group))
        sentences = pyarrow.array([sentence for sentence, _ in group], pyarrow.string())
        numbers = pyarrow.array(np.concatenate([vector for _, vector in group]))
        vectors = pyarrow.FixedSizeListArray.from_arrays(numbers, schema.field("vector").type.list_size)
        yield pyarrow.record_batch([pyarrow.array(rows), sentences, vectors], schema=schema)
        row += len(group)


def _is_done(path: Path, partition: Partition, note: Note) -> bool:
    """Whether a part is there; complains if it is of another job."""
    try:
        known = dict(json.loads((pyarrow.parquet.read_schema(path).metadata or {})[b"xsent"]))
    except Exception:  # it is missing, or damaged, which brings a parser to raise anything
        return False
    for key, value in {**note, "digest": partition.digest}.items():  # the fingerprint first
        if known.get(key) != value:
            change = f"{key} was {known.get(key)}, is now {value}" if key != "digest" else "the input is another"
            raise (FingerprintError if key == "fingerprint" else DataError)(
                f"{path}: of another job: {change}; give the same, or --force to start over"
            )
    return True
