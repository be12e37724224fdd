"""What an index holds, and how it grows. SQLite has its state, and its passages, each with source, line and digest.

Beside it lies one raw file, `vectors.f16`: float16 [rows, D] of length 1, little-endian. Row n belongs to passage n,
and the state says how many rows count: what a killed process has left behind them is no part of the index.
"""

import errno
import hashlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

from xsent.errors import DataError, FingerprintError
from xsent.files import existing, sync
from xsent.lines import LineDigest
from xsent.options import Vectors
from xsent.search.vectors import STORED, check_length

VERSION = 2  # 1 had its state in index.json and its texts in plain files
VECTORS = "vectors.f16"
SAVE_EVERY = 10_000  # lines: about a minute's work on a Raspberry Pi
INDEX, UNFINISHED = "index", "unfinished"  # names of states

_MOST_TEXT = 1 << 22  # characters that wait to be saved
_NAMES = "passages-*.db"  # each index another: SQLite would take a journal of that name for one of its own

# All that an index may have, the last four of version 1.
_FILES = (f"{_NAMES}*", VECTORS, "graph-*.usearch", "index.json", "unfinished.json", "rows.u64", "texts.txt")


@dataclass(frozen=True)
class IndexState:
    """What an index says about itself, or a job that was stopped about what it has saved."""

    fingerprint: str  # identity of the vector space
    dim: int  # length of a vector (D)
    lines: int = 0  # read, the empty ones too
    rows: int = 0  # lines that have a vector
    start: int = 0  # lines that were there before the last addition
    digest: str = ""  # of the lines that the last addition has read
    graph: int = 0  # rows that the graph holds; 0 without one
    graph_digest: str = ""  # SHA-256 of its file

    @property
    def graph_file(self) -> str:
        """Name of the graph's file."""
        return f"graph-{self.graph}.usearch"

    def check_fingerprint(self, fingerprint: str, path: Path) -> None:
        """See whether an encoder fits the index; a FingerprintError names both fingerprints."""
        if fingerprint != self.fingerprint:
            raise FingerprintError(
                f"{path} has vectors of {self.fingerprint}, the model makes {fingerprint}: use the model of the index, "
                "or build the index again"
            )


class Passage(NamedTuple):
    """A text and where it comes from."""

    source: str  # such as a file; empty if it is not known
    line: int  # from 1; of sources that were added one after the other, numbers go on
    text: str
    digest: bytes  # of all that, and of the vector

    @classmethod
    def of(cls, source: str, line: int, text: str, vector: bytes) -> "Passage":
        """A passage with its digest."""
        content = f"{line}\n{source}\n{text}".encode() + vector
        return cls(source, line, text, hashlib.blake2b(content, digest_size=16).digest())


_TABLES = f"""BEGIN;
CREATE TABLE states (name TEXT PRIMARY KEY, {", ".join(field.name for field in fields(IndexState))});
CREATE TABLE passages (row INTEGER PRIMARY KEY, {", ".join(Passage._fields)});
PRAGMA user_version = {VERSION};
COMMIT"""


class IndexDatabase:
    """An open database; threads may share it. A DataError says that there is none, or that it is damaged."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        found = sorted(folder.glob(_NAMES))
        if not found and not create:
            raise _no_index(folder)
        self.path = found[0] if found else folder / _NAMES.replace("*", os.urandom(4).hex())
        self._lock = threading.Lock()
        address = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"  # rw reads where it cannot write
        with self._naming_errors():
            self._connection = sqlite3.connect(address, uri=True, timeout=60, check_same_thread=False)
            self.close = weakref.finalize(self, self._connection.close)
            ((version,),) = self._connection.execute("PRAGMA user_version")
            if create and not version:
                self._connection.executescript(_TABLES)
                version = VERSION
        if version != VERSION:
            reason = f"version {version} is unknown, this xsent reads {VERSION}"
            raise DataError(f"{self.path}: {reason}; upgrade xsent or build the index again")

    def state(self, name: str = INDEX) -> IndexState | None:
        """The state of this name, if there is one."""
        with self._naming_errors():
            found = self._connection.execute("SELECT * FROM states WHERE name = ?", (name,)).fetchone()
            return IndexState(*found[1:]) if found else None

    def passages(self, first: int, count: int = 1) -> list[Passage]:
        """Passages from a row on."""
        query = "SELECT * FROM passages WHERE row BETWEEN ? AND ? ORDER BY row"
        with self._naming_errors():
            found = self._connection.execute(query, (first, first + count - 1)).fetchall()
        if [row for row, *_ in found] != list(range(first, first + count)):
            raise self.damaged("passages are missing")
        return [Passage(*columns) for _, *columns in found]

    def save(self, state: IndexState, name: str = INDEX, *, first: int = 0, passages: Sequence[Passage] = ()) -> None:
        """Write a state instead of that of an unfinished job, and passages from a row on: all of it or nothing."""
        values = (name, *astuple(state))
        with self._naming_errors(), self._connection as connection:
            numbered = [(row, *passage) for row, passage in enumerate(passages, first)]
            connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", numbered)
            connection.execute("DELETE FROM states WHERE name IN (?, ?)", (name, UNFINISHED))
            connection.execute(f"INSERT INTO states VALUES ({', '.join('?' * len(values))})", values)

    def forget(self, rows: int) -> None:
        """Drop all but the first rows, and an unfinished job."""
        with self._naming_errors(), self._connection as connection:
            connection.execute("DELETE FROM states WHERE name = ? OR rows > ?", (UNFINISHED, rows))
            connection.execute("DELETE FROM passages WHERE row >= ?", (rows,))

    def damaged(self, reason: str) -> DataError:
        """What to raise if it is not what it was."""
        return DataError(f"{self.path}: damaged ({reason}); build the index again")

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:
        """Let one thread at a time in, and say in our words what SQLite has to say."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR:
                raise self.damaged(str(error)) from error
            full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error), str(self.path)) from error


class IndexWriter:
    """Appends lines from a source to what a folder has as `base`; what was saved outlives errors and kills."""

    def __init__(self, folder: Path, base: IndexState, source: str) -> None:
        self._base, self._source = base, source
        self._file = folder / VECTORS
        self.database = IndexDatabase(folder, create=True)
        self.close = self.database.close
        self.folder = folder
        self.state = base  # what is saved
        self.digest = LineDigest()
        self._passages: list[Passage] = []  # that wait to be saved, with their vectors
        self._vectors = bytearray()
        self._text = 0  # their characters

    def stopped(self) -> IndexState | None:
        """What a job has saved that was stopped; of a new index that has no name yet, all of it."""
        return self.database.state(UNFINISHED) or (None if self._base.rows else self.database.state())

    def begin(self, *, resume: bool, force: bool) -> None:
        """Go on with a job that was stopped, or forget it; complains if neither is wanted."""
        stopped = self.stopped()
        if stopped and not (resume or force):
            done = f"{stopped.lines - stopped.start:,} lines"
            reason = f"holds {done} of a job that was stopped; --resume goes on with it, --force starts again"
            raise existing(self.folder, reason)
        if stopped and resume:
            self.state = stopped
        else:
            self.database.forget(self.state.rows)
        if self.state.rows:
            check_length(self._file, self._saved_bytes)
        self._lines = self.state.lines

    def add(self, text: str, vector: Vectors) -> None:
        """Append a line and its vector [D]; a line whose vector is zero is counted, but never found."""
        self.digest.add(text)
        self._lines += 1
        if vector.any():
            stored = vector.astype(STORED, copy=False).tobytes()
            self._passages.append(Passage.of(self._source, self._lines, text, stored))
            self._vectors += stored
            self._text += len(text)
        if (self._lines - self._base.start) % SAVE_EVERY == 0 or self._text > _MOST_TEXT:
            self._save()

    def finish(self) -> None:
        """Save what is left."""
        if self.state.rows + len(self._passages) == self._base.rows:
            self.database.forget(self._base.rows)  # empty lines are not worth resuming
            raise DataError(f"nothing to index: of {self._lines - self._base.start:,} lines none has text")
        self._save()

    def _save(self) -> None:
        """Bring everything to the disk: first the vectors, then the state that says how many of them count."""
        try:
            with self._file.open("ab") as file:
                file.truncate(self._saved_bytes)  # without what a killed process has left
                file.write(self._vectors)
                sync(file)
        except OSError:
            os.truncate(self._file, self._saved_bytes)
            raise
        rows = self.state.rows + len(self._passages)
        state = replace(self.state, lines=self._lines, rows=rows, digest=self.digest.hex)
        self.database.save(state, UNFINISHED, first=self.state.rows, passages=self._passages)
        self.state = state
        self._passages, self._vectors, self._text = [], bytearray(), 0

    @property
    def _saved_bytes(self) -> int:
        return self.state.rows * self.state.dim * STORED.itemsize


def has_index(folder: Path) -> bool:
    """Whether an index lies in a folder, of whichever version."""
    return any(folder.glob(_NAMES)) or (folder / "index.json").is_file()


def check_replaceable(folder: Path, *, complete: bool = True) -> None:
    """See that nothing but an index would be lost if a folder went."""
    if folder.is_symlink() or not folder.is_dir() or (complete and not has_index(folder)):
        raise DataError(f"{folder}: not an index, so it is not replaced; choose another name")
    for entry in sorted(folder.iterdir()):
        if not (entry.is_file() and any(entry.match(pattern) for pattern in _FILES)):
            raise DataError(f"{folder}: holds {entry.name}, which is of no index; move it, or choose another name")


def _no_index(folder: Path) -> DataError:
    if has_index(folder):
        return DataError(f"{folder}: was made by an older xsent; index the text again, --force replaces this one")
    what = "not an index" if folder.is_dir() else "not an index, but a file" if folder.exists() else "no such folder"
    return DataError(f"{folder}: {what}; make one with xsent index")
