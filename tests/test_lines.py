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


def test_standard_input_marks_and_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert list(read_lines("-")) == LINES
    for content, lines in ((b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]), (b"", [])):
        (tmp_path / "a").write_bytes(content)
        assert list(read_lines(tmp_path / "a")) == lines


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nothing.txt", None, "nothing.txt: cannot be read"),
        (".", None, "cannot be read"),
        ("a.txt", b"one\ncaf\xe9\nthree\n", r"a\.txt:2: not UTF-8 \(byte 0xe9 at 4\)"),
        ("a.gz", b"plain", "a.gz: damaged"),
        ("a.xz", b"plain", "a.xz: damaged"),
        ("b.gz", gzip.compress(TEXT, mtime=0)[:-12], "b.gz: damaged"),
        ("b.xz", lzma.compress(TEXT)[:-12], "b.xz: damaged"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_lines(tmp_path / name))


def test_fields(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\tb\nc\t\nonly\n")
    rows = read_fields(tmp_path / "a", 2, "English, translation")
    assert [next(rows), next(rows)] == [["a", "b"], ["c", ""]]
    with pytest.raises(DataError, match=r"a:3: 1 fields, expected 2.*English, translation"):
        next(rows)
