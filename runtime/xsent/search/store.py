"""An index on disk: a folder with three kinds of files.

- `passages-*.db`, a SQLite database: the state of the index, its passages and their words; of an index of documents
  their names and the rows of removed ones.
- `vectors.f16`: for every passage a row with its vector, of length 1, in float16.
- `graph-ROWS.usearch`: a graph over the first rows, if there is one (`xsent.search.graph`).
"""

import errno
import hashlib
import heapq
import json
import math
import mmap
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import same_space, split_depth
from xsent.errors import DataError, FingerprintError
from xsent.words import joined_keys, word_keys

VECTORS = "vectors.f16"
_DATABASE = "passages-*.db"  # a new name for each index: SQLite would take the journal of another one for its own
_FILES = (f"{_DATABASE}*", VECTORS, "graph-*.usearch")

STORED = np.dtype("<f2")
BLOCK = 2048  # rows read at once
_TAKEN = 128  # rows read at once that do not lie together

VERSION = 5
INDEX, UNFINISHED = "index", "unfinished"  # names of states

_MOST_WORDS = 32  # a longer query is a text of its own, not a search for words
_COMMON = 4096  # rows of a word, above which it is looked for only in passages that are found otherwise


@dataclass(frozen=True)
class IndexState:
    """What an index says about itself, or what a stopped job says about the part that it has saved."""

    fingerprint: str  #: identity of the vector space
    dim: int  #: length of a vector (D)
    lines: int = 0  #: lines read, empty ones too; 0 in an index of documents
    rows: int = 0  #: lines that have a vector
    start: int = 0  #: lines that were there before the last addition
    digest: str = ""  #: of the lines that the last addition has read
    graph: int = 0  #: rows that the graph holds; 0 without one
    graph_digest: str = ""  #: SHA-256 of its file
    clean: int = 0  #: 1 if texts were cleaned before they were encoded, see `xsent.clean.clean_text`

    @property
    def graph_file(self) -> str:
        """Name of the graph's file."""
        return f"graph-{self.graph}.usearch"

    def check_fingerprint(self, fingerprint: str, path: Path, *, clean: bool | None = None) -> None:
        """Raises FingerprintError if vectors of a fingerprint do not fit the index.

        Those of queries may be of another depth. Those that are added may not; `clean` is whether their texts are
        cleaned, as all of an index are, or none.
        """
        if clean not in (None, bool(self.clean)):
            remedy = "cleaned texts: give --clean" if self.clean else "texts as they are: leave --clean out"
            raise FingerprintError(f"{path} has vectors of {remedy}, or build the index again")
        if fingerprint == self.fingerprint or (clean is None and same_space(fingerprint, self.fingerprint)):
            return
        remedy = f"use the model of the index{' and its --space' * ('@' in self.fingerprint)}, or build the index again"
        if same_space(fingerprint, self.fingerprint):
            layers = split_depth(self.fingerprint)[1]
            others = split_depth(fingerprint)[1]
            same = f"give --layers {layers}" if layers else f"leave --layers {others} out"
            remedy = f"an index keeps to one depth, {same}, or build the index again"
        raise FingerprintError(f"{path} has vectors of {self.fingerprint}, the model makes {fingerprint}: {remedy}")


class Passage(NamedTuple):
    """A text and where it comes from."""

    source: str  # such as a file; empty if it is not known
    line: int  # from 1; the numbers of lines that were added later follow those before
    text: str
    context: str  # in an index of documents: what it is about; its words count too
    id: str  # in an index of lines: of its row, where it comes from a table that has ids
    digest: bytes  # of the other fields and the vector

    @classmethod
    def of(cls, vector: bytes, source: str, line: int, text: str, context: str, id: str) -> "Passage":
        """A passage with its digest."""
        content = "\n".join((source, str(line), text, context, id)).encode() + vector
        return cls(source, line, text, context, id, hashlib.blake2b(content, digest_size=16).digest())


class StoredDocument(NamedTuple):
    """A document as an index knows it."""

    name: str  # the source of its passages
    stamp: str  # of the version that is in the index; empty while it is not complete
    first: int  # row of its first passage
    passages: int  # their number


_ADD_WORDS = "INSERT INTO words (rowid, keys) VALUES (?, ?)"
_DROP_WORDS = "INSERT INTO words (words, rowid, keys) VALUES ('delete', ?, ?)"
_LAST = 2**62  # above every row

# No text is stored twice, and no places of words in it; the tokenizer takes the keys of words as they are.
_TABLES = f"""BEGIN;
CREATE TABLE states (name TEXT PRIMARY KEY, {", ".join(field.name for field in fields(IndexState))});
CREATE TABLE passages (row INTEGER PRIMARY KEY, {", ".join(Passage._fields)});
CREATE VIRTUAL TABLE words USING fts5(keys, content = '', tokenize = 'ascii', detail = 'none');
CREATE TABLE documents (name TEXT PRIMARY KEY, {", ".join(StoredDocument._fields[1:])});
CREATE TABLE removed (first INTEGER PRIMARY KEY, count);
PRAGMA user_version = {VERSION};
COMMIT"""


class IndexDatabase:
    """An open database of an index; threads may share it.

    To `write`, it is made if there is none.

    Every method raises DataError if the database is damaged, and OSError if the disk fails.
    """

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        found = sorted(folder.glob(_DATABASE))
        if not found and not write:
            what = "no such folder"
            if folder.exists():
                what = "not an index" if folder.is_dir() else "not an index, but a file"
            raise DataError(f"{folder}: {what}; make one with xsent index")
        self.path = found[0] if found else folder / _DATABASE.replace("*", os.urandom(4).hex())
        self._lock = threading.Lock()
        mode = "rwc" if write else "rw"  # rw reads where it cannot write
        with self._explain_errors():
            self._connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=60, check_same_thread=False
            )
            self.close = weakref.finalize(self, self._connection.close)
            ((version,),) = self._connection.execute("PRAGMA user_version")
            if write and not version:
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

    def complete_state(self) -> IndexState:
        """The state of the index. Raises DataError if there is only an unfinished job."""
        if (state := self.state()) is None:
            raise DataError(f"{self.path.parent}: an unfinished index; xsent index --resume goes on with it")
        return state

    def passages(self, first: int, count: int = 1) -> dict[int, Passage]:
        """Passages by row, from one on; those that are not there are missing."""
        found = self._read("SELECT * FROM passages WHERE row BETWEEN ? AND ? ORDER BY row", first, first + count - 1)
        found = self._typed(found, int, *Passage.__annotations__.values())
        return {row: Passage(*columns) for row, *columns in found}

    def documents(self) -> list[StoredDocument]:
        """All documents, in the order of their rows."""
        found = self._read("SELECT * FROM documents ORDER BY first")
        return [StoredDocument(*row) for row in self._typed(found, *StoredDocument.__annotations__.values())]

    def removed(self) -> list[tuple[int, int]]:
        """First row and number of those that were removed together."""
        return self._typed(self._read("SELECT first, count FROM removed"), int, int)

    def shared_words(
        self,
        text: str,
        near: Iterable[int],
        *,
        most: int,
        rows: int,
        among: int,
        rarity: Callable[[tuple[str, ...]], float],
    ) -> dict[int, float]:
        """Rows that share words with a text, and the share of its words that they have; rare words count more.

        Looks at the first `rows` rows: at those that are near in meaning and at `most` others, those that have most. A
        word counts by its inverse document frequency among `among` passages (Robertson & Spärck Jones 1976) times its
        rarity from 0 to 1 in the language, squared, so that a name counts more than several common words. Words that no
        passage has do not count, but if there are any the share is of as much as they weigh, at most of one rare word:
        what a query in another language shares by chance ("die", "a") is little.
        """
        words = {keys[0]: (keys, rare) for keys in word_keys(text) if (rare := rarity(keys))}.values()
        if not 0 < len(words) <= _MOST_WORDS:
            return {}
        shares: dict[int, float] = {}
        common: list[tuple[str, float]] = []
        whole = 0.0
        missing = 0.0  # weight of words that no passage has
        for keys, rare in words:
            match = " OR ".join(f'"{key}"' for key in keys)
            having = self._having(match, "rowid < ? ORDER BY rowid LIMIT ?", rows, _COMMON)
            count = float(len(having))
            if count == _COMMON:  # the word comes as often in the other rows
                count *= rows / (having[-1] + 1)
            weight = (rare * _weight(count, among)) ** 2
            whole += weight * (count > 0)
            missing += weight * (count == 0)
            if len(having) == _COMMON:
                common.append((match, weight))
                continue
            for row in having:
                shares[row] = shares.get(row, 0.0) + weight
        kept = {*near, *heapq.nsmallest(most, shares, key=lambda row: (-shares[row], row))}
        shares = {row: share for row, share in shares.items() if row in kept}
        for match, weight in common:
            for row in self._having(match, "rowid IN (SELECT value FROM json_each(?))", json.dumps(sorted(kept))):
                shares[row] = shares.get(row, 0.0) + weight
        whole = max(whole, min(missing, _weight(1, among) ** 2))
        return {row: share / whole for row, share in shares.items()}

    def version(self) -> int:
        """A number that changes when another process or thread writes."""
        return int(self._read("PRAGMA data_version")[0][0])

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
        """Write a state and what was added and removed with it, in one transaction; an unfinished job's state goes.

        Args:
            state: The new state.
            name: `INDEX`, or `UNFINISHED` for a job.
            first: Row of the first of the passages.
            passages: New ones.
            documents: Documents of the new passages; their older versions are removed.
            remove: Names of documents to remove.
        """
        values = (name, *astuple(state))
        with self._explain_errors(), self._connection as connection:
            for gone in remove:
                self._remove(gone)
            for document in documents:
                self._remove(document.name, unless_first=document.first)
                connection.execute("REPLACE INTO documents VALUES (?, ?, ?, ?)", document)
            numbered = [(row, *passage) for row, passage in enumerate(passages, first)]
            connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", numbered)
            if passages:
                self._write_words(_ADD_WORDS, first)
            connection.execute("DELETE FROM states WHERE name IN (?, ?)", (name, UNFINISHED))
            connection.execute(f"INSERT INTO states VALUES ({', '.join('?' * len(values))})", values)

    def forget(self, rows: int) -> None:
        """Remove an unfinished job, and all passages but those of the first rows."""
        with self._explain_errors(), self._connection as connection:
            connection.execute("DELETE FROM states WHERE name = ? OR rows > ?", (UNFINISHED, rows))
            self._write_words(_DROP_WORDS, rows)
            connection.execute("DELETE FROM passages WHERE row >= ?", (rows,))

    def damaged(self, reason: str) -> DataError:
        """The error to raise where the database is damaged."""
        return DataError(f"{self.path}: damaged ({reason}); build the index again")

    def _write_words(self, statement: str, first: int, last: int = _LAST) -> None:
        """Add or drop the words of passages; not by a function of SQL, which would swallow Ctrl-C."""
        query = "SELECT row, context || ' ' || text FROM passages WHERE row BETWEEN ? AND ?"
        found = self._connection.execute(query, (first, last))
        self._connection.executemany(statement, ((row, joined_keys(str(text))) for row, text in found))

    def _remove(self, name: str, unless_first: int = -1) -> None:
        """Remove a document, unless its first row is the one given: then the new passages continue it."""
        found = self._connection.execute("SELECT first, passages FROM documents WHERE name = ?", (name,)).fetchone()
        if found and found[0] != unless_first:
            first, count = found
            self._write_words(_DROP_WORDS, first, first + count - 1)
            self._connection.execute("DELETE FROM passages WHERE row BETWEEN ? AND ?", (first, first + count - 1))
            self._connection.execute("DELETE FROM documents WHERE name = ?", (name,))
            if count:
                self._connection.execute("INSERT INTO removed VALUES (?, ?)", found)

    def _having(self, match: str, where: str, *values: object) -> list[int]:
        """Rows whose words match."""
        return [
            row for (row,) in self._read(f"SELECT rowid FROM words WHERE words MATCH ? AND {where}", match, *values)
        ]

    def _typed(self, rows: list[Any], *types: type) -> list[Any]:
        """The same rows, if their columns have these types and no number is negative; SQLite accepts anything."""
        for row in rows:
            if tuple(map(type, row)) != types or any(value < 0 for value in row if type(value) is int):
                raise self.damaged("a column holds what it never should")
        return rows

    def _read(self, query: str, *values: object) -> list[Any]:
        with self._explain_errors():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Let one thread at a time in, and turn SQLite's errors into DataError or OSError."""
        try:
            with self._lock:
                yield
        except UnicodeDecodeError as error:  # of a message that quotes what is damaged
            raise self.damaged(str(error)) from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR:
                raise self.damaged(str(error)) from error
            # The table of words reports a failed write without its kind.
            full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error), str(self.path)) from error


def _weight(count: float, among: int) -> float:
    """Inverse document frequency of a word that some of the passages have."""
    return math.log1p((max(among, count) - count + 0.5) / (count + 0.5))


_TWO = 0x4000  # this bit is set in every float16 that is 2 or more, infinite or NaN; a vector of length 1 has none
_TINY = np.finfo(np.float32).tiny
_NOT_COPIES = np.array(0x8FFFE000, np.uint32).view(np.int32)


class Float16Rows:
    """The first rows of `vectors.f16`, mapped into memory; the map stays valid when the file is replaced."""

    def __init__(self, file: Path, rows: int, dim: int) -> None:
        self._file = file
        expected = rows * dim * STORED.itemsize
        check_length(file, expected)
        with file.open("rb") as opened:
            self._map = mmap.mmap(opened.fileno() if rows else -1, expected or 1, access=mmap.ACCESS_READ)
        self._rows = np.frombuffer(self._map, STORED, rows * dim).reshape(rows, dim)

    def blocks(self, start: int = 0) -> Iterator[NDArray[np.float32]]:
        """Rows from `start` on, in blocks [b, D]; each block is overwritten by the next."""
        wide = np.empty((BLOCK, self._rows.shape[1]), np.float32)
        for first in range(start, len(self._rows), BLOCK):
            stored = self._rows[first : first + BLOCK]
            yield self._normalized(stored, wide[: len(stored)])
            self.let_go()

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some rows [r, D]."""
        wide = np.empty((len(rows), self._rows.shape[1]), np.float32)
        for first in range(0, len(rows), _TAKEN):
            if first:  # the system maps some pages around each one that is read
                self.let_go()
            stored = self._rows[rows[first : first + _TAKEN]]
            self._normalized(stored, wide[first : first + len(stored)])
        return wide

    def stored(self, row: int) -> NDArray[np.float16]:
        """One row [D] as it lies on disk."""
        stored: NDArray[np.float16] = self._rows[row].copy()
        return stored

    def let_go(self) -> None:
        """Free the pages that were read; otherwise they count as ours until memory is short."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def _normalized(self, stored: NDArray[np.float16], wide: NDArray[np.float32]) -> NDArray[np.float32]:
        if np.bitwise_or.reduce(stored.view(np.uint16), axis=None) & _TWO:
            raise DataError(f"{self._file}: damaged (a vector is not of length 1); build the index again")
        widen(stored, wide)
        wide /= np.maximum(np.sqrt(np.einsum("nd,nd->n", wide, wide)), _TINY)[:, None]  # undo the rounding of float16
        return wide


def widen(halves: NDArray[np.float16], out: NDArray[np.float32]) -> None:
    """Convert finite float16 numbers to float32, exactly; three times as fast as NumPy.

    A float16 shifted left by 13 bits is a float32, but for its sign and for its exponent, which is 112 too small.
    """
    bits = out.view(np.int32)
    np.copyto(bits, halves.view(np.int16))  # fills the upper half with copies of the sign; one of them stays
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _NOT_COPIES, out=bits)
    np.multiply(out, np.float32(2.0**112), out=out)


def check_length(file: Path, expected: int) -> None:
    """Raises DataError if a file is missing or has fewer bytes than expected; it may have more."""
    if not file.is_file():
        raise DataError(f"{file}: missing; build the index again")
    if (size := file.stat().st_size) < expected:
        raise DataError(f"{file}: {size:,} bytes, expected {expected:,}; build the index again")


def has_index(folder: Path) -> bool:
    """Whether an index, of whichever version, lies in a folder."""
    return any(folder.glob(_DATABASE))


def check_replaceable(folder: Path, *, complete: bool = True) -> None:
    """Raises DataError if anything but an index would be lost with a folder."""
    if folder.is_symlink() or not folder.is_dir() or (complete and not has_index(folder)):
        raise DataError(f"{folder}: not an index, so it is not replaced; choose another name")
    for entry in sorted(folder.iterdir()):
        if not (entry.is_file() and any(entry.match(pattern) for pattern in _FILES)):
            raise DataError(f"{folder}: holds {entry.name}, which is of no index; move it, or choose another name")
