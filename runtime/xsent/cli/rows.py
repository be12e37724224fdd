"""Rows of results: a table for people, TSV for pipes and JSON Lines for programs; printed, or written as one file."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

from xsent.cli.terminal import align_cells, plain
from xsent.errors import counted
from xsent.files.atomic import atomic_file, check_output
from xsent.files.json_lines import to_json_line

WriteRow = Callable[[Sequence[object]], None]
Columns = Mapping[str, type]  # names, and types of the values: str, int or float; a value may also be None

_ENDINGS = (".tsv", ".jsonl")
_SCREEN = 100  # rows aligned at once in a table, so that memory does not grow
_WIDEST = 40  # characters that a column of texts is padded to in a table
# What ends a line or a field for some program; a line break with the white space around it, which is tried only at the
# beginning of the white space, for linear time.
_BREAKS = re.compile(r"(?<!\s)\s*[\n\r]\s*|[\t\v\f\x1c-\x1e\x85\u2028\u2029]")


def asks_json(path: Path | None, as_json: bool) -> bool:
    """Whether rows become JSON Lines: with `--json`, or in a file whose name ends in .jsonl."""
    return as_json or (path is not None and path.suffix == ".jsonl")


def row_output(
    path: Path | None, columns: Columns, *, as_json: bool = False, force: bool = False
) -> AbstractContextManager[WriteRow]:
    """Where the rows of a result go; entering it gives a function that writes one row.

    On a terminal they are a table, elsewhere tab-separated lines. A file has the same lines as a pipe,
    appears once it is complete, and is readable only by its owner, because it holds texts. Call this before the work:
    it refuses what cannot be written.

    Args:
        path: A .tsv or .jsonl file; None for standard output.
        columns: The columns of the rows.
        as_json: Write one JSON object per row.
        force: Replace an existing file.

    Raises:
        ValueError: The file cannot have this name.
        FileExistsError: The file exists, and `force` is not given.
        FileNotFoundError: Its folder is missing.
    """
    as_json = asks_json(path, as_json)
    if path is None:
        return _rows(sys.stdout, columns, as_json=as_json)
    if path.suffix not in _ENDINGS:
        advice = "DuckDB and pandas turn .jsonl into other tables"
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(_ENDINGS)}; {advice}")
    if as_json and path.suffix != ".jsonl":
        raise ValueError(f"{path}: --json writes JSON Lines; use a name that ends in .jsonl")
    check_output(path, force=force)
    return _written_rows(path, columns, as_json)


@contextmanager
def _written_rows(path: Path, columns: Columns, as_json: bool) -> Iterator[WriteRow]:
    count = 0
    with atomic_file(path, private=True) as file:
        text = TextIOWrapper(cast(Any, file), "utf-8", newline="")
        try:
            with _rows(text, columns, as_json=as_json) as write:

                def write_row(row: Sequence[object]) -> None:
                    nonlocal count
                    write(row)
                    count += 1

                yield write_row
        finally:
            text.detach()  # flushes the text and leaves the file open
    sys.stderr.write(f"{path}: {counted(count, 'row')}\n")


@contextmanager
def _rows(stream: TextIO, columns: Columns, *, as_json: bool) -> Iterator[WriteRow]:
    if as_json:
        yield lambda row: _write(stream, to_json_line(_named(columns, row)))
    elif stream.isatty():
        with _table(stream, columns) as write:
            yield write
    else:
        yield lambda row: _write(stream, "\t".join(_BREAKS.sub(" ", _shown(value)) for value in row))


@contextmanager
def _table(stream: TextIO, columns: Columns) -> Iterator[WriteRow]:
    lines: list[list[str]] = [[*columns]]
    right = {place for place, kind in enumerate(columns.values()) if kind is not str}

    def flush() -> None:
        _write(stream, align_cells(lines, right, widest=_WIDEST))
        lines.clear()

    def write(row: Sequence[object]) -> None:
        lines.append([plain(_shown(value)) for value in _named(columns, row).values()])
        if len(lines) > _SCREEN:
            flush()

    try:
        yield write
    finally:
        if lines != [[*columns]]:
            flush()


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")


def _named(columns: Columns, row: Sequence[object]) -> dict[str, object]:
    """The values of a row by the names of their columns, in the types of the columns."""
    named = zip(columns.items(), row, strict=True)
    return {name: None if value is None else kind(value) for (name, kind), value in named}


def _shown(value: object) -> str:
    """A value as text. A NumPy float32 has all its digits, so that a score in a pipe or a file is a threshold."""
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
