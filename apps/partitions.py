"""Partitions of a text or Parquet file, or of a folder of them: what one worker encodes at a time.

Whoever plans reads text once to count its lines, hundreds of times as fast as they are encoded; of Parquet the footers
suffice. Numbers of rows and lines are counted from 0.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, islice
from pathlib import Path

import pyarrow
import pyarrow.parquet

from xsent.errors import DataError
from xsent.files import naming_damage

ROWS = 16_384  # of a partition at least, but for the last of a file: less than a minute of encoding

_BOM = b"\xef\xbb\xbf"
_ONE = "expected a text or Parquet file, or a folder of them"


@dataclass(frozen=True)
class Partition:
    """Consecutive rows of one file."""

    number: int  # among all partitions
    row: int  # its first, counted over all files
    rows: int
    source: str  # absolute path
    size: int  # of the source, in bytes
    changed: int  # when the source was, in nanoseconds
    line: int  # its first row, counted in the source
    start: int  # in the source: byte of a text, row group of a Parquet file
    stop: int  # the first that is not its own
    column: str  # of a Parquet file, the one with the text; empty for a text file

    @property
    def digest(self) -> str:
        """Of its bounds and of what is known of its source without reading it; the source may move as a whole."""
        facts = {**asdict(self), "source": Path(self.source).name}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def sentences(self) -> Iterator[str]:
        """Its rows, as `xsent encode` reads them; a DataError names the line that cannot be read.

        What is null becomes an empty sentence.
        """
        yield from _parquet_rows(self) if self.column else _text_rows(self)
        if _state(Path(self.source)) != (self.size, self.changed):
            raise DataError(f"{self.source}: changed while it was read; run it again once the file is complete")


def find_partitions(path: Path, column: str) -> list[Partition]:
    """Divide a file, or all files in a folder but for those with names in . or _, in the order of their names.

    A DataError says what cannot be divided, and that there is nothing to encode.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; {_ONE}")
    found: list[Partition] = []
    for source in _sources(path):
        for part in _divide(source.absolute(), column):
            row = found[-1].row + found[-1].rows if found else 0
            found.append(replace(part, number=len(found), row=row))
    if not found:
        raise DataError(f"{path}: empty; {_ONE}")
    return found


def _sources(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    inside = ((file, file.relative_to(path).parts) for file in path.rglob("*") if file.is_file())
    return sorted(file for file, names in inside if not any(name.startswith((".", "_")) for name in names))


def _divide(source: Path, column: str) -> Iterator[Partition]:
    """Partitions of one file, numbered from 0."""
    if source.suffix in (".gz", ".xz"):
        raise DataError(f"{source}: a packed file cannot be divided; unpack it, or leave --engine out")
    size, changed = _state(source)
    parquet = source.suffix == ".parquet"
    line = start = 0
    for rows, stop in _parquet_bounds(source, column) if parquet else _text_bounds(source):
        yield Partition(0, 0, rows, str(source), size, changed, line, start, stop, column if parquet else "")
        line, start = line + rows, stop


def _text_bounds(source: Path) -> Iterator[tuple[int, int]]:
    """Number of lines, and the byte behind them."""
    stop = 0
    with source.open("rb") as file:
        while lengths := [len(line) for line in islice(file, ROWS)]:
            stop += sum(lengths)
            yield len(lengths), stop


def _parquet_bounds(source: Path, column: str) -> Iterator[tuple[int, int]]:
    """Number of rows, and the row group behind them."""
    with _opened(source) as file:
        names = file.schema_arrow.names
        if column not in names:
            raise DataError(f"{source}: no column {column!r}; name one with --column: {', '.join(names)}")
        kind = file.schema_arrow.field(column).type
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise DataError(f"{source}: column {column!r} holds {kind}, expected text; name another with --column")
        groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    done = 0
    for stop, rows in enumerate(accumulate(groups), 1):
        if rows > done and (rows - done >= ROWS or stop == len(groups)):
            yield rows - done, stop
            done = rows


def _text_rows(part: Partition) -> Iterator[str]:
    with Path(part.source).open("rb") as file:
        file.seek(part.start)
        for number, line in enumerate(islice(file, part.rows), part.line + 1):
            try:  # only a line feed ends a line, and a carriage return before it is dropped
                text = (line.removeprefix(_BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                raise DataError(f"{part.source}:{number}: not UTF-8; convert the file to UTF-8") from error
            yield text.removesuffix("\n").removesuffix("\r")


def _parquet_rows(part: Partition) -> Iterator[str]:
    with _opened(Path(part.source)) as file:
        groups = list(range(part.start, part.stop))
        for batch in file.iter_batches(batch_size=1024, row_groups=groups, columns=[part.column]):
            for text in batch.column(0).to_pylist():
                yield "" if text is None else text


@contextmanager
def _opened(source: Path) -> Iterator["pyarrow.parquet.ParquetFile"]:
    with naming_damage(source, "write it again"), pyarrow.parquet.ParquetFile(source) as file:
        yield file


def _state(source: Path) -> tuple[int, int]:
    found = source.stat()
    return found.st_size, found.st_mtime_ns
