"""Reading lines."""

import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xsent.errors import DataError
from xsent.lines import read_fields, read_lines

TEXT = "one\ntwo\u2028still two\r\n\nÜbung\x85x\nlast".encode()
LINES = ["one", "two\u2028still two", "", "Übung\x85x", "last"]


@pytest.mark.parametrize(("name", "pack"), [("a.txt", bytes), ("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)])
def test_only_line_feeds_end_lines(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(pack(TEXT))
    assert list(read_lines(tmp_path / name)) == LINES


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert list(read_lines("-")) == LINES


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")
    assert list(read_lines(tmp_path / "a")) == ["one", "\ufefftwo"]


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert list(read_lines(tmp_path / "a")) == []


def test_not_utf8_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ncaf\xe9\nthree\n")
    lines = read_lines(tmp_path / "a.txt")
    assert next(lines) == "one"
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8 \(byte 0xe9 at 4\)"):
        next(lines)


@pytest.mark.parametrize("name", ["nothing.txt", "."])
def test_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(read_lines(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", b"plain"),
        ("a.xz", b"plain"),
        ("b.gz", gzip.compress(TEXT)[:-12]),
        ("b.xz", lzma.compress(TEXT)[:-12]),
    ],
)
def test_damaged_archive(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: damaged"):
        list(read_lines(tmp_path / name))


def test_fields(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\tb\nc\t\nonly\n")
    rows = read_fields(tmp_path / "a", 2, "English, translation")
    assert [next(rows), next(rows)] == [["a", "b"], ["c", ""]]
    with pytest.raises(DataError, match=r"a:3: 1 fields, expected 2.*English, translation"):
        next(rows)
