"""Tables of texts, read row by row: CSV with commas, semicolons or tabs, JSON Lines, and Parquet."""

import csv
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any

from xsent.errors import DataError, find_extra, lone_surrogate, require_extra
from xsent.files.atomic import as_data_error
from xsent.files.text import (
    LONGEST,
    decoded_lines,
    file_state,
    raw_lines,
    read_fields,
    read_lines,
    source_name,
    unpacked_name,
)

_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
_HEAD = 100  # lines that decide the form of a CSV
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # the first line of a CSV for Excel
_JSON_LIST = re.compile(r"\s*\[\s*([{\[\"]|\])")
_BATCH = 1024  # rows of Parquet that are held at once


class Text(str):
    """A text of a table that has ids, with the id of its row."""

    __slots__ = ("id",)
    id: str


def place_of(text: str, number: int) -> str | int:
    """The id of a text, or its number where the table has no ids."""
    return text.id if isinstance(text, Text) else number


@dataclass(frozen=True)
class TextSource:
    """Re-iterable texts of a file, its lines or a column, in constant memory.

    Raises MissingExtraError if the package that reads it is not installed.

    Iterating raises DataError if the file cannot be read or changes meanwhile, or is a table and no column is named.
    """

    path: str  #: `-` is standard input
    column: str | None = None  #: column with the texts, where the file is a table
    id: str | None = None  #: column with the ids of the rows

    def __post_init__(self) -> None:
        if self.column is not None and _is_parquet(self.path):
            find_extra("parquet", "pyarrow")

    @property
    def unit(self) -> str:
        """What the texts are in messages."""
        return "lines" if self.column is None else "rows"

    def __iter__(self) -> Iterator[str]:
        before = file_state(self.path)
        if self.column is None:
            refuse_table(self.path)
            if self.id is not None:
                raise ValueError(f"--id {self.id} names a column of a table; name that of the texts too: --column NAME")
            yield from read_lines(self.path)
        else:
            columns = [self.column] if self.id is None else [self.column, self.id]
            yield from (_with_id(*fields) for fields in read_rows(self.path, columns))
        if file_state(self.path) != before:
            raise DataError(f"{self.path}: changed while it was read; run it again once the file is complete")

    def __length_hint__(self) -> int:
        return NotImplemented if file_state(self.path) is None else sum(1 for _ in self)

    def read(self) -> list[str]:
        """All texts. Raises DataError if there are none."""
        if not (texts := [*iter(self)]):  # [*self] would count them first, which reads the file twice
            raise self.empty()
        return texts

    def empty(self) -> DataError:
        """The error to raise where there are no texts."""
        what = "one text per line" if self.column is None else "rows of texts"
        return DataError(f"{source_name(self.path)}: empty; expected {what}")


def read_pairs(source: str, columns: str | None, id: str | None, layout: str) -> Iterator[list[str]]:
    """Yield two texts per row: fields with a tab between, or two columns of a table, as "first,second".

    With `id` the first text has the id of the row. `layout` names the fields in messages.
    """
    if columns is None:
        refuse_table(source, "--column NAME,NAME", tabs=True)
        if id is not None:
            raise ValueError(f"--id {id} names a column of a table; name those of the texts too: --column NAME,NAME")
        yield from read_fields(source, 2, layout)
        return
    names = columns.split(",")
    if len(names) != 2:
        raise ValueError(f"--column {columns}: expected two comma-separated columns: {layout}")
    for first, second, *name in read_rows(source, names if id is None else [*names, id]):
        yield [_with_id(first, *name), second]


def _with_id(content: str, *id: str) -> str:
    """A text; with the id of its row, if there is one."""
    if not id:
        return content
    text = Text(content)
    text.id = id[0]
    return text


def refuse_table(source: str | Path, option: str = "--column NAME", *, tabs: bool = False) -> None:
    """Raises DataError that names the columns if a file that is read as plain lines is a table by its name.

    One of tabs must have a tab in its first line, and is none where `tabs` are read. Standard input has no name.
    """
    ending = Path(unpacked_name(source)).suffix.lower()
    if str(source) == "-" or ending not in _TABLES:
        return
    kind = {".csv": "CSV", ".tsv": "a table with tabs", ".parquet": "Parquet"}.get(ending, "JSON Lines")
    if ending == ".tsv" and (tabs or "\t" not in next(read_lines(source), "")):
        return
    names = ", ".join(column_names(source))
    raise DataError(f"{source}: this looks like {kind}; name the column: {option} (columns: {names})")


def column_names(source: str | Path) -> list[str]:
    """The columns of a table: its first row, or the names in its first object."""
    return next(read_rows(source, None))


def read_rows(source: str | Path, columns: Sequence[str] | None, *, quotes: bool = True) -> Iterator[list[str]]:
    """Yield the fields of these columns of every row, empty where there are none; for None only the names of all.

    The content decides what the file is, plain or compressed: JSON objects, Parquet, or a CSV whose first row names its
    columns, perhaps after Excel's `sep=;`; `-` is standard input. Without `quotes`, those between tabs are part of the
    text. Raises DataError with the file and the line, or the row.
    """
    if _is_parquet(source):
        yield from _parquet_rows(Path(source), columns)
        return
    lines = decoded_lines(source)
    head = list(islice(lines, _HEAD))
    if not head:
        raise _no_rows(source)
    if _JSON_LIST.match("".join(head[:5])):
        advice = "turn it into JSON Lines, one object per line, for example with jq -c '.[]' FILE > FILE.jsonl"
        raise DataError(f"{source_name(source)}: a JSON list, which is not read; {advice}")
    if head[0].startswith("{"):
        yield from _json_rows(source, chain(head, lines), columns)
    else:
        yield from _csv_rows(source, head, lines, columns, quotes)


def read_vectors(path: Path) -> Iterator[Any]:
    """Yield the numbers in the column `vector` of a file that `xsent encode` wrote, `.jsonl` or `.parquet`."""
    if path.suffix == ".jsonl":
        yield from (json.loads(line)["vector"] for line in raw_lines(path))
        return
    with import_pyarrow().parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH, columns=["vector"]):
            numbers = batch.column(0)
            yield from numbers.flatten().to_numpy(zero_copy_only=False).reshape(len(numbers), -1)


def _csv_rows(
    source: str | Path, head: list[str], lines: Iterator[str], columns: Sequence[str] | None, quotes: bool
) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST)
    named, form = 1, {}  # the line that names the columns
    if separator := _SEPARATOR.fullmatch(head[0]):
        named, form = 2, {"delimiter": separator[1]}
        if not (head := head[1:]):
            raise _no_rows(source)
    reader = csv.reader(chain(head, lines), strict=True, **{**_csv_form(source, head, quotes), **form})
    start = named
    try:
        names = [name.strip() for name in next(reader)]
        if columns is None:
            yield names
            return
        places = [_place(source, names, column) for column in columns]
        start = reader.line_num + named
        for row in reader:
            if row and len(row) != len(names):
                expected = f"expected {len(names)} as in line {named}"
                raise DataError(f"{source_name(source)}:{start}: {len(row)} fields, {expected}")
            if row:
                yield [row[place] for place in places]
            start = reader.line_num + named
    except csv.Error as error:
        advice = "quote fields that contain quotes, and double the inner quotes"
        raise DataError(f"{source_name(source)}:{start}: not CSV ({error}); {advice}") from error


def _csv_form(source: str | Path, head: list[str], quotes: bool) -> dict[str, Any]:
    """Arguments of `csv.reader`: the delimiter that makes most columns; whether quotes are signs of the form."""

    def fit(sign: str) -> tuple[bool, int]:
        try:
            widths = [len(row) for row in csv.reader(head, delimiter=sign) if row] or [0]
        except csv.Error:  # such as a carriage return that is in no quotes of this form
            return False, 0
        same = set(widths[:-1] or widths)  # the head may end within a row
        return len(same) == 1 and widths[0] > 1, widths[0]

    delimiter = max(",;\t", key=fit)
    if unpacked_name(source).lower().endswith(".tsv"):
        delimiter = "\t"
    raw = {"delimiter": delimiter, "quoting": csv.QUOTE_NONE}
    if delimiter == "\t" and not quotes:
        return raw
    reader = csv.reader(head, delimiter=delimiter, strict=True)
    try:
        list(reader)
    except csv.Error:  # written without quoting, when no text has a tab
        if delimiter == "\t" and not (reader.line_num == len(head) == _HEAD):  # else the last field may continue
            return raw
    return {"delimiter": delimiter}


def _no_rows(source: str | Path) -> DataError:
    return DataError(f"{source_name(source)}: empty; expected a table whose first row names its columns")


def _json_rows(source: str | Path, lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[list[str]]:
    for number, line in enumerate(lines, 1):
        where = f"{source_name(source)}:{number}"
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not JSON Lines ({error}); expected one object per line") from error
        if not isinstance(content, dict):
            raise DataError(f'{where}: {type(content).__name__}, expected an object such as {{"text": "..."}}')
        if columns is None:
            yield list(content)
            return
        if number == 1:
            names = [*content]
            columns = [names[_place(source, names, column)] for column in columns]
        yield [_field(where, column, content.get(column)) for column in columns]


def _parquet_rows(source: Path, columns: Sequence[str] | None) -> Iterator[list[str]]:
    with as_data_error(source, "write it again"), import_pyarrow().parquet.ParquetFile(source) as file:
        names = file.schema_arrow.names
        if columns is None:
            yield names
            return
        columns = [names[_place(source, names, column)] for column in columns]
        batches = file.iter_batches(_BATCH, columns=list(dict.fromkeys(columns)))
        rows = (zip(*(batch.column(column).to_pylist() for column in columns), strict=True) for batch in batches)
        for number, row in enumerate(chain.from_iterable(rows), 1):
            where = f"{source}: row {number:,}"
            yield [_field(where, column, value) for column, value in zip(columns, row, strict=True)]


def _place(source: str | Path, names: list[str], column: str) -> int:
    """The place of a column. Raises DataError if it is missing or there twice.

    White space counts as one space, and Unicode's normal form does not count, because nobody sees them in a message.
    """
    tidy = " ".join(column.split())
    forms = {tidy, unicodedata.normalize("NFC", tidy), unicodedata.normalize("NFD", tidy)}
    places = [place for place, name in enumerate(names) if " ".join(name.split()) in forms]
    if len(places) != 1:
        found = "no column" if not places else f"{len(places)} columns"
        advice = "; only one column is read" if "," in column else ""
        raise DataError(f"{source_name(source)}: {found} {column!r}; its columns: {', '.join(names)}{advice}")
    return places[0]


def _field(where: str, column: str, value: object) -> str:
    """A value as text; nothing and NaN are the empty text."""
    if isinstance(value, list | dict | bytes):
        kind = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "binary"
        raise DataError(f"{where}: {column!r} is {kind}, expected text; name another column")
    text = "" if value is None or value != value else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = lone_surrogate(error, text)
        raise DataError(f"{where}: {column!r} has {half}, which is not valid text") from error
    return text


def _is_parquet(source: str | Path) -> bool:
    if str(source).endswith(".parquet"):
        return True
    if file_state(source) is None:
        return False
    with Path(source).open("rb") as file:
        return file.read(4) == b"PAR1"


def import_pyarrow() -> ModuleType:
    """The package that reads and writes Parquet. Raises MissingExtraError without it."""
    with require_extra("parquet"):
        arrow = import_module("pyarrow")
        import_module("pyarrow.parquet")
    return arrow
