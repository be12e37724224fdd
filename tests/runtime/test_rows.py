"""Rows of results: a table, TSV or JSON Lines, printed or in a file."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from xsent.cli.rows import Columns, row_output
from xsent.files.row_writers import JsonLinesWriter
from xsent.files.tables import read_rows

COLUMNS = {"id": str, "score": float, "line": int, "text": str}
ROWS: list[list[object]] = [
    ["a", 0.25, 1, 'two \r\n lines\tand "tabs"'],
    [None, None, None, "\x1b[31mred\x07 \u200dé\x9b2J"],
    ["b" * 41, np.float32(1.1), 1000, ""],
]
TSV = 'a\t0.2500\t1\ttwo lines and "tabs"\n\t\t\t\x1b[31mred\x07 \u200dé\x9b2J\n' + "b" * 41 + "\t1.1\t1000\t\n"
TABLE = (
    f"id{' ' * 38}   score  line  text\n"
    f'a{" " * 39}  0.2500     1  two lines and "tabs"\n'
    f"{' ' * 56}\\x1b[31mred\\x07 \\u200dé\\x9b2J\n"
    f"{'b' * 41}  1.1000  1000\n"
)


class Terminal(io.StringIO):
    """Standard output on a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def printed(stream: io.StringIO, rows: list[list[object]], columns: Columns, *, as_json: bool = False) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        with row_output(None, columns, as_json=as_json) as write:
            for row in rows:
                write(row)
    return stream.getvalue()


def test_a_table_for_people_and_tsv_for_pipes() -> None:
    assert printed(io.StringIO(), ROWS, COLUMNS) == TSV
    assert printed(Terminal(), ROWS, COLUMNS) == TABLE
    assert printed(Terminal(), [], COLUMNS) == printed(io.StringIO(), [], COLUMNS) == ""
    lines = printed(Terminal(), [[number] for number in range(250)], {"n": int}).splitlines()
    assert [line.strip() for line in lines] == ["n", *map(str, range(250))]  # one heading, however many rows


def test_what_ends_a_line_for_some_program_ends_no_row() -> None:
    ends = "a\rb\u2028c\x0bd\x85e"
    assert printed(io.StringIO(), [[ends]], {"text": str}).splitlines() == ["a b c d e"]
    assert len(printed(io.StringIO(), [[ends]], {"text": str}, as_json=True).splitlines()) == 1
    file = io.BytesIO()
    JsonLinesWriter(file, "float32", 2).write(ends, np.ones(2, np.float32))
    (line,) = file.getvalue().decode().splitlines()
    assert json.loads(line)["sentence"] == ends


def test_json_lines_for_programs_keep_what_was_given() -> None:
    for stream in (io.StringIO(), Terminal()):
        lines = printed(stream, ROWS, COLUMNS, as_json=True).splitlines()
        rows = [json.loads(line) for line in lines]
        assert rows == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    assert "é" in lines[1]


@pytest.mark.parametrize(("name", "as_json"), [("a.tsv", False), ("a.jsonl", False), ("a.jsonl", True)])
def test_a_file_has_what_a_pipe_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, as_json: bool
) -> None:
    file = tmp_path / name
    with row_output(file, COLUMNS, as_json=as_json) as write:
        for row in ROWS:
            write(row)
        assert not file.exists()
    assert file.read_bytes().decode() == printed(io.StringIO(), ROWS, COLUMNS, as_json=name == "a.jsonl")
    assert capsys.readouterr() == ("", f"{file}: 3 rows\n")
    if name == "a.jsonl":
        expected = [["" if value is None else value for value in (row[0], row[3])] for row in ROWS]
        assert list(read_rows(file, ["id", "text"])) == expected


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    for force in (False, True):
        with pytest.raises(KeyError), row_output(file, {"id": str}, force=force) as write:
            write(["lost"])
            raise KeyError
        assert [path.read_text() for path in tmp_path.iterdir()] == ["kept\n"] * force
        file.write_text("kept\n")
    for path, options, error, message in [
        (file, {}, FileExistsError, "exists; --force replaces it"),
        (file, {"as_json": True, "force": True}, ValueError, "use a name that ends in .jsonl"),
        (tmp_path / "a.csv", {}, ValueError, "expected a name that ends in .tsv or .jsonl; DuckDB and pandas"),
        (tmp_path / "a.parquet", {"as_json": True}, ValueError, "expected a name that ends in .tsv or .jsonl"),
    ]:
        with pytest.raises(error, match=message):
            row_output(path, {"id": str}, **options)
