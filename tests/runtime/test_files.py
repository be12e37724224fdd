"""Files that appear whole or not at all, and the lines that are read from others."""

import errno
import fcntl
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from commands import file_names, raises

from xsent.errors import DataError
from xsent.files.atomic import (
    atomic_file,
    atomic_folder,
    open_to_write,
    read_json,
    remove_folder,
    replace_folder,
    sweep,
    to_json,
)
from xsent.files.text import read_fields, read_lines


def test_json_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for content, reason in [
        (None, "missing"),
        *((content, "damaged") for content in (b"{", b"[]", b"\xff", b"[" * 10**5, b" " * 2**24 + b"{}")),
    ]:
        file = tmp_path / "a.json"
        if content is not None:
            file.write_bytes(content)
        raises(DataError, rf"a\.json: {reason}.*; fit it again", read_json, file, "fit it again")
        file.write_bytes(to_json({"name": "é"}))
        assert read_json(file, "fit it again") == {"name": "é"}


def test_a_folder_is_never_seen_with_files_missing(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "a").touch()
    with mock.patch("shutil.rmtree", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        remove_folder(folder)
    assert not folder.exists()
    (tmp_path / ".half.01234567.part").touch()
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_a_kill_left_is_put_back_or_cleared_away(tmp_path: Path) -> None:
    out, other, half = (tmp_path / name for name in ("out", "other", ".out.01234567.part"))
    for folder in (out, half):
        folder.mkdir()
    (out / "a").write_text("old")
    out.rename(tmp_path / ".out.89abcdef.old")  # between the two renames of a replacement
    with atomic_file(other) as file, pytest.raises(ValueError, match="stop"), atomic_folder(out):
        assert not half.exists() and (out / "a").read_text() == "old"
        sweep(tmp_path)  # what is being written stays
        file.write(b"whole")
        raise ValueError("stop")
    assert other.read_bytes() == b"whole"
    (tmp_path / ".out.89abcdef.old").mkdir()  # before the old one was deleted
    sweep(tmp_path)
    assert file_names(tmp_path) == {"out", "other"} and (out / "a").read_text() == "old"


def test_a_file_or_folder_appears_whole_as_the_umask_says_or_not_at_all(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with atomic_folder(tmp_path / "out") as folder:
            (folder / "a").write_text(content)
    with pytest.raises(ValueError, match="stop"), atomic_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("half")
        raise ValueError("stop")
    assert (tmp_path / "out/a").read_text() == "new" and file_names(tmp_path) == {"out"}
    target, old = tmp_path / "a", os.umask(0o022)
    try:
        with atomic_file(target) as file:
            file.write(b"x")
            assert not target.exists()
    finally:
        os.umask(old)
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"x", 0o644)
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), atomic_file(target) as file:
            file.write(b"new")
            raise error
    assert target.read_bytes() == b"x" and file_names(tmp_path) == {"a", "out"}
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "nothing" / "a"):
        pass


def test_a_full_disk_is_told_once_with_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "half"))
    with pytest.raises(OSError) as nested, atomic_file(tmp_path / "a"), atomic_file(tmp_path / "inner"):
        raise full
    with pytest.raises(OSError) as folder, atomic_folder(tmp_path / "a"):
        raise full
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=full))
    with pytest.raises(OSError) as file, atomic_file(tmp_path / "a"):
        pass
    assert str(nested.value).count("nothing was kept") == 1
    for found in (folder.value, file.value):
        assert "No space left on device; nothing was kept" in str(found) and found.filename == str(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_what_is_no_regular_file_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        raises(DataError, f"{name}: not a regular file", open_to_write, tmp_path / name)


def test_a_folder_that_another_process_made_meanwhile_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(DataError, match="out: another process"), atomic_folder(out):
        out.mkdir()
        (out / "a").write_text("theirs")
    assert (out / "a").read_text() == "theirs" and file_names(tmp_path) == {"out"}


def test_what_another_process_clears_away_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, made = fcntl.flock, list[Path]()

    def cleared(handle: int, how: int) -> None:
        """Until it is locked, what was made looks as if a killed process had left it."""
        made.extend(tmp_path.glob(".a.*.part"))
        if len(made) == 1:
            made[0].unlink()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", cleared)
    with atomic_file(tmp_path / "a") as file:
        file.write(b"x")
    assert (tmp_path / "a").read_bytes() == b"x" and len(made) == 2 and file_names(tmp_path) == {"a"}


def test_a_folder_that_cannot_be_replaced_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, out = tmp_path / "made", tmp_path / "out"
    for content in ("old", "new"):  # at first, nothing is replaced
        made.mkdir()
        (made / "a").write_text(content)
        if content == "old":
            replace_folder(made, out)
    monkeypatch.setattr("xsent.files.atomic.put_in_place", mock.Mock(side_effect=OSError(errno.EIO, "broken")))
    for path in (out, tmp_path / "none"):
        raises(OSError, "broken", replace_folder, made, path)
    with pytest.raises(OSError, match="broken"), atomic_folder(tmp_path / "none"):
        pass
    assert (out / "a").read_text() == "old" and file_names(tmp_path) == {"made", "out"}


TEXT = "one\ntwo\u2028still two\r\n\nÜbung\x85x\nlast".encode()
LINES = ["one", "two\u2028still two", "", "Übung\x85x", "last"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_only_line_feeds_end_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[..., bytes]) -> None:
    """Compression is known by the first bytes."""
    for name in ("mails", "mails.txt", "mails.gz.part", *(["a.gz"] if pack is gzip.compress else [])):
        (tmp_path / name).write_bytes(pack(TEXT))
        assert list(read_lines(tmp_path / name)) == LINES
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(pack(TEXT)))))
    assert list(read_lines("-")) == LINES


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_lines_in_unicode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    content = TEXT.decode().encode(encoding)
    (tmp_path / "a").write_bytes(content)
    assert list(read_lines(tmp_path / "a")) == LINES
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    assert list(read_lines("-")) == LINES
    assert not sys.stdin.buffer.closed


def test_carriage_returns_marks_and_fields(tmp_path: Path) -> None:
    file = tmp_path / "a"
    for content, lines in [
        (b"one\r", ["one"]),
        (b"10%\r20%\rdone\nnext\r", ["10%\r20%\rdone", "next"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        (b"", []),
    ]:
        file.write_bytes(content)
        assert list(read_lines(file)) == lines
    for content in (b"one\rtwo\r\rfour\r", b"\xef\xbb\xbfone\rtwo"):  # an old file of Macintosh
        file.write_bytes(content)
        assert list(read_lines(file)) == content.removeprefix(b"\xef\xbb\xbf").decode().rstrip("\r").split("\r")
    file.write_text("a\tb\nc\t\nonly\n")
    rows = read_fields(file, 2, "English, translation")
    assert [next(rows), next(rows)] == [["a", "b"], ["c", ""]]
    raises(DataError, r"a:3: 1 fields, expected 2.*English, translation", next, rows)


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content, message in [
        ("nothing.txt", None, "nothing.txt: cannot be read"),
        (".", None, "a folder; expected a text file, or search the folder with xsent notes"),
        ("a.txt", b"on\xc3\xa9\ncaf\xe9\nthree\n", r"a\.txt:2: not UTF-8 \(byte 0xe9 at 4\)"),
        ("a.gz", b"plain", "a.gz: damaged"),
        ("a.xz", b"plain", "a.xz: damaged"),
        ("b.gz", gzip.compress(TEXT, mtime=0)[:-12], "b.gz: damaged"),
        ("b.xz", lzma.compress(TEXT)[:-12], "b.xz: damaged"),
        ("long.txt", b"a\n" + b"x" * 101, "long.txt:2: over 100 bytes"),
        ("x" * 5000, None, "cannot be read .File name too long"),
    ]:
        monkeypatch.setattr("xsent.files.text.LONGEST", 100)
        if content is not None:
            (tmp_path / name).write_bytes(content)
        raises(DataError, message, list, read_lines(tmp_path / name))
