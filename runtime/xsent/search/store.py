"""What an index holds on the disk: its state and passages in SQLite, its vectors in float16."""

import errno
import hashlib
import json
import math
import mmap
import os
import re
import sqlite3
import threading
import unicodedata
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import same_space, split_depth
from xsent.errors import DataError, FingerprintError


@dataclass(frozen=True)
class IndexState:
    """What an index says about itself, or a job that was stopped about what it has saved."""

    fingerprint: str  #: identity of the vector space
    dim: int  #: length of a vector (D)
    lines: int = 0  #: read, the empty ones too
    rows: int = 0  #: lines that have a vector
    start: int = 0  #: lines that were there before the last addition
    digest: str = ""  #: of the lines that the last addition has read
    graph: int = 0  #: rows that the graph holds; 0 without one
    graph_digest: str = ""  #: SHA-256 of its file

    @property
    def graph_file(self) -> str:
        """Name of the graph's file."""
        return f"graph-{self.graph}.usearch"

    def check_fingerprint(self, fingerprint: str, path: Path, *, grows: bool = False) -> None:
        """See whether vectors of a fingerprint fit the index; a FingerprintError names both.

        Queries may be of another depth; the vectors of an index that `grows` are all of one.
        """
        if fingerprint == self.fingerprint or (not grows and same_space(fingerprint, self.fingerprint)):
            return
        remedy = f"use the model of the index{' and its --space' * ('@' in self.fingerprint)}, or build the index again"
        if same_space(fingerprint, self.fingerprint):
            layers, others = split_depth(self.fingerprint)[1], split_depth(fingerprint)[1]
            same = f"give --layers {layers}" if layers else f"leave --layers {others} out"
            remedy = f"an index keeps to one depth, {same}, or build the index again"
        raise FingerprintError(f"{path} has vectors of {self.fingerprint}, the model makes {fingerprint}: {remedy}")


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


class StoredDocument(NamedTuple):
    """What an index knows about a document."""

    name: str  # the source of its passages
    stamp: str  # of the version that is in the index; empty while it is not complete
    first: int  # row of its first passage
    passages: int  # how many it has


STORED = np.dtype("<f2")
BLOCK = 2048  # rows read at once

_TWO = 0x4000  # set in a float16 of 2 or more, or that is no number: there is none in a vector of length 1
_TINY = np.finfo(np.float32).tiny
_NOT_COPIES = np.array(0x8FFFE000, np.uint32).view(np.int32)


class Float16Rows:
    """The first rows of a file, mapped into memory: it stays the same one for its reader, whatever takes its name."""

    def __init__(self, file: Path, rows: int, dim: int) -> None:
        self._file = file
        check_length(file, expected := rows * dim * STORED.itemsize)
        with file.open("rb") as opened:
            self._map = mmap.mmap(opened.fileno() if rows else -1, expected or 1, access=mmap.ACCESS_READ)
        self._rows = np.frombuffer(self._map, STORED, rows * dim).reshape(rows, dim)

    def blocks(self, start: int = 0) -> Iterator[NDArray[np.float32]]:
        """Rows from `start` on, some [b, D] at a time; each is overwritten by the next."""
        wide = np.empty((BLOCK, self._rows.shape[1]), np.float32)
        for first in range(start, len(self._rows), BLOCK):
            stored = self._rows[first : first + BLOCK]
            yield self._checked(stored, wide[: len(stored)])
            self.let_go()

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some rows [r, D]."""
        stored = self._rows[rows]
        return self._checked(stored, np.empty(stored.shape, np.float32))

    def stored(self, row: int) -> NDArray[np.float16]:
        """One row [D] as it lies on the disk."""
        stored: NDArray[np.float16] = self._rows[row].copy()
        return stored

    def let_go(self) -> None:
        """Stop holding what was read: its pages would count as ours until memory is short."""
        if hasattr(mmap.mmap, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _checked(self, stored: NDArray[np.float16], wide: NDArray[np.float32]) -> NDArray[np.float32]:
        if np.bitwise_or.reduce(stored.view(np.uint16), axis=None) & _TWO:
            raise DataError(f"{self._file}: damaged (a vector is not of length 1); build the index again")
        widen(stored, wide)
        lengths = np.sqrt(np.einsum("nd,nd->n", wide, wide))  # 1 but for what rounding took or gave
        wide /= np.maximum(lengths, _TINY)[:, None]
        return wide


def check_length(file: Path, expected: int) -> None:
    """See that a file has so many bytes; it may have more."""
    if not file.is_file():
        raise DataError(f"{file}: missing; build the index again")
    if (size := file.stat().st_size) < expected:
        raise DataError(f"{file}: {size:,} bytes, expected {expected:,}; build the index again")


def widen(halves: NDArray[np.float16], out: NDArray[np.float32]) -> None:
    """Float16 numbers as float32, exactly, if they are finite; three times as fast as NumPy does it.

    Moved 13 bits to the left, a float16 is a float32 but for its sign, and for its exponent, which is 112 too small.
    """
    bits = out.view(np.int32)
    np.copyto(bits, halves.view(np.int16))  # fills the upper half with copies of the sign; one of them stays
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _NOT_COPIES, out=bits)
    np.multiply(out, np.float32(2.0**112), out=out)


VERSION = 2  # 1 had its state in index.json and its texts in plain files
VECTORS = "vectors.f16"
INDEX, UNFINISHED = "index", "unfinished"  # names of states

_NAMES = "passages-*.db"  # each index another: SQLite would take a journal of that name for one of its own

_WORD = re.compile(r"\w+")
_MOST_WORDS = 32  # a longer query is a text of its own, not a search for words

# All that an index may have, the last four of version 1.
_FILES = (f"{_NAMES}*", VECTORS, "graph-*.usearch", "index.json", "unfinished.json", "rows.u64", "texts.txt")

_TABLES = f"""BEGIN;
CREATE TABLE states (name TEXT PRIMARY KEY, {", ".join(field.name for field in fields(IndexState))});
CREATE TABLE passages (row INTEGER PRIMARY KEY, {", ".join(Passage._fields)});
PRAGMA user_version = {VERSION};
COMMIT"""

# What an index of documents has on top: which they are, rows that are of none any more, and the words of all passages.
_DOCUMENT_TABLES = """BEGIN;
CREATE TABLE documents (name TEXT PRIMARY KEY, stamp, first, passages);
CREATE TABLE removed (first INTEGER PRIMARY KEY, count);
CREATE VIRTUAL TABLE words USING fts5(text, content = passages, content_rowid = row);
CREATE TRIGGER added AFTER INSERT ON passages BEGIN
INSERT INTO words (rowid, text) VALUES (new.row, new.text);
END;
CREATE TRIGGER gone AFTER DELETE ON passages BEGIN
INSERT INTO words (words, rowid, text) VALUES ('delete', old.row, old.text);
END;
INSERT INTO words (words) VALUES ('rebuild');
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
        rows = self._read("SELECT * FROM states WHERE name = ?", name)
        found = self._typed(rows, str, *IndexState.__annotations__.values())
        return IndexState(*found[0][1:]) if found else None

    def passages(self, first: int, count: int = 1) -> dict[int, Passage]:
        """Passages by row, from one on; those that are not there are missing."""
        found = self._read("SELECT * FROM passages WHERE row BETWEEN ? AND ? ORDER BY row", first, first + count - 1)
        found = self._typed(found, int, *Passage.__annotations__.values())
        return {row: Passage(*columns) for row, *columns in found}

    def documents(self) -> list[StoredDocument]:
        """All documents, in the order of their rows."""
        found = self._read_documents("SELECT * FROM documents ORDER BY first")
        return [StoredDocument(*row) for row in self._typed(found, *StoredDocument.__annotations__.values())]

    def removed(self) -> list[tuple[int, int]]:
        """First row and number of those that were removed together."""
        return self._typed(self._read_documents("SELECT first, count FROM removed"), int, int)

    def shared_words(self, text: str, near: Sequence[int], *, most: int, among: int) -> dict[int, float]:
        """Rows that share words with a text, and which share of its words they have; rare words count more.

        Looks at rows that are near in meaning, and at `most` others, those of highest BM25. A word counts by its
        inverse document frequency `among` so many passages (Robertson & Spärck Jones 1976).
        """
        found = _WORD.findall(unicodedata.normalize("NFC", text))
        words = [f'"{word}"' for word in {word.lower(): word for word in found}.values()]
        if not 0 < len(words) <= _MOST_WORDS or not self._has_documents():
            return {}
        match = "SELECT rowid FROM words WHERE words MATCH ?"
        best = self._read(f"{match} ORDER BY rank LIMIT ?", " OR ".join(words), most)
        rows = json.dumps(sorted({*near, *(row for (row,) in best)}))
        shares, whole = dict[int, float](), 0.0
        for word in words:
            ((having,),) = self._read(f"SELECT count(*) FROM ({match})", word)
            weight = math.log1p((max(among, having) - having + 0.5) / (having + 0.5))
            whole += weight
            for (row,) in self._read(f"{match} AND rowid IN (SELECT value FROM json_each(?))", word, rows):
                shares[row] = shares.get(row, 0.0) + weight
        return {row: share / whole for row, share in shares.items()}

    def version(self) -> int:
        """A number that changes when another process or thread writes."""
        return int(self._read("PRAGMA data_version")[0][0])

    def keep_documents(self) -> None:
        """Get ready for documents."""
        if not self._has_documents():
            with self._naming_errors():
                self._connection.executescript(_DOCUMENT_TABLES)

    def save(
        self,
        state: IndexState,
        name: str = INDEX,
        *,
        first: int = 0,
        passages: Sequence[Passage] = (),
        documents: Iterable[StoredDocument] = (),
        remove: Iterable[str] = (),
    ) -> None:
        """Write a state instead of that of an unfinished job, and what came and went with it: all of it or nothing.

        Args:
            state: What the index says about itself now, or the job.
            name: Which of the two it is.
            first: Row of the first of the passages.
            passages: New ones.
            documents: What they belong to; an older version of such a document goes.
            remove: Names of documents to drop.
        """
        values = (name, *astuple(state))
        with self._naming_errors(), self._connection as connection:
            for gone in remove:
                self._remove(gone)
            for document in documents:
                self._remove(document.name, unless_from=document.first)
                connection.execute("REPLACE INTO documents VALUES (?, ?, ?, ?)", document)
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

    def _remove(self, name: str, unless_from: int = -1) -> None:
        """Drop a document, but not one whose first row is the one given: more is added to that."""
        found = self._connection.execute("SELECT first, passages FROM documents WHERE name = ?", (name,)).fetchone()
        if found and found[0] != unless_from:
            first, count = found
            self._connection.execute("DELETE FROM passages WHERE row BETWEEN ? AND ?", (first, first + count - 1))
            self._connection.execute("DELETE FROM documents WHERE name = ?", (name,))
            if count:
                self._connection.execute("INSERT INTO removed VALUES (?, ?)", found)

    def _typed(self, rows: list[Any], *types: type) -> list[Any]:
        """The same rows, if their columns are of these types and no number is below 0; SQLite takes anything."""
        for row in rows:
            if tuple(map(type, row)) != types or any(value < 0 for value in row if type(value) is int):
                raise self.damaged("a column holds what it never should")
        return rows

    def _read(self, query: str, *values: object) -> list[Any]:
        with self._naming_errors():
            return self._connection.execute(query, values).fetchall()

    def _read_documents(self, query: str, *values: object) -> list[Any]:
        return self._read(query, *values) if self._has_documents() else []

    def _has_documents(self) -> bool:
        return bool(self._read("SELECT 1 FROM sqlite_master WHERE name = 'documents'"))

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
