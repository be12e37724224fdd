"""An index on disk: a folder with two files.

- `passages-*.db`, a SQLite database: the state of the index, its passages and their words; in an index of documents
  also their names and the rows of removed ones. The first window of a long line has its text and words, others have
  only a vector and the number of the line.
- `vectors.f16`: one row per passage or window, its vector of length 1 in float16.
"""

import errno
import hashlib
import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from xsent.clean import clean_text
from xsent.errors import DataError, FingerprintError
from xsent.files.atomic import open_to_write, permissions_within, refuse_links
from xsent.fingerprint import same_space, split_depth
from xsent.search.vectors import VECTORS
from xsent.words import joined_keys

_DATABASE = "passages-*.db"  # a new name for each index, or SQLite would replay another index's journal
_FILES = (f"{_DATABASE}*", VECTORS)

VERSION = 9


@dataclass(frozen=True)
class IndexState:
    """The state of an index, as stored in it."""

    fingerprint: str  #: identity of the vector space
    dim: int  #: length of a vector (D)
    lines: int = 0  #: lines read, including empty ones; 0 in an index of documents
    rows: int = 0  #: passages, or windows of lines, with a vector, including those of removed documents
    start: int = 0  #: lines before an incomplete addition; otherwise all lines
    #: 1 if texts were cleaned before they were encoded and their words read, see `xsent.clean.clean_text`
    clean: int = 0

    @property
    def unfinished(self) -> bool:
        """Whether an addition of lines was interrupted."""
        return self.start < self.lines

    def check_fingerprint(self, fingerprint: str, path: Path, *, clean: bool | None = None) -> None:
        """Raise FingerprintError if vectors with this fingerprint do not fit the index.

        Vectors of queries may be of another depth; added vectors may not. For those, `clean` is whether their texts
        are cleaned: an index has only cleaned texts or none.
        """
        if clean not in (None, bool(self.clean)):
            remedy = "cleaned texts: add --clean" if self.clean else "uncleaned texts: omit --clean"
            raise FingerprintError(f"{path} has vectors of {remedy}, or build the index again")
        if fingerprint == self.fingerprint or (clean is None and same_space(fingerprint, self.fingerprint)):
            return
        remedy = f"use the model of the index{' and its --space' * ('@' in self.fingerprint)}, or build the index again"
        if same_space(fingerprint, self.fingerprint):
            layers = split_depth(self.fingerprint)[1]
            others = split_depth(fingerprint)[1]
            same = f"add --layers {layers}" if layers else f"omit --layers {others}"
            remedy = f"an index has one depth; {same}, or build the index again"
        raise FingerprintError(f"{path} has vectors of {self.fingerprint}, the model is {fingerprint}; {remedy}")


class Passage(NamedTuple):
    """A text and its source."""

    source: str  # such as a file; empty if unknown
    line: int  # from 1; lines added later continue the numbers
    text: str
    context: str  # in an index of documents: its topic; its words count, too
    id: str  # in an index of lines: the id of its row, if it comes from a table with ids
    digest: bytes  # hash of the other fields and the vector

    @classmethod
    def of(cls, vector: bytes, source: str, line: int, text: str, context: str, id: str) -> "Passage":
        """A passage with its digest."""
        content = "\n".join((source, str(line), text, context, id)).encode() + vector
        return cls(source, line, text, context, id, hashlib.blake2b(content, digest_size=16).digest())


def text_to_encode(context: str, text: str) -> str:
    """A passage preceded by its context: found more often than by the mean of two vectors."""
    return f"{context}: {text}" if context and text.strip() else text


def passage_keys(source: str, context: str, text: str, *, clean: bool = False) -> str:
    """The keys of the words that a passage is found by: of its text, its context and the folders of its source.

    The folders of an absolute path do not count: they describe where someone keeps files, not what is in them.
    With `clean`, the words are those of the text that is encoded, so that mended ones are found.
    """
    if not text:  # another window of a line
        return ""
    folders = "" if source.startswith("/") else source.rpartition("/")[0]
    words = clean_text(text_to_encode(context, text)) if clean else f"{context}\n{text}"
    return joined_keys(f"{folders}\n{words}")


class StoredDocument(NamedTuple):
    """A document as stored in an index."""

    name: str  # the source of its passages
    stamp: str  # of the version in the index; empty while incomplete
    first: int  # row of its first passage
    passages: int  # number of passages


_ADD_WORDS = "INSERT INTO words (rowid, keys) VALUES (?, ?)"
_DROP_WORDS = "INSERT INTO words (words, rowid, keys) VALUES ('delete', ?, ?)"
_LAST = 2**62  # above every row
_COUNTED = 10_000  # steps of SQLite's virtual machine between two checks of their number
_STEPS, _STEPS_PER_BYTE = 20_000_000, 4  # most steps of a query; 20 million are a tenth of a second on a laptop
_TALLIED = 4096  # passages in memory while words are counted
_LONGEST_KEY = 32_768  # most bytes of a word that FTS5 stores

# Texts are stored once and word positions not at all; the tokenizer takes the keys as they are.
_TABLES = f"""BEGIN;
CREATE TABLE state (id INTEGER PRIMARY KEY, {", ".join(field.name for field in fields(IndexState))});
CREATE TABLE passages (row INTEGER PRIMARY KEY, {", ".join(Passage._fields)});
CREATE INDEX windows ON passages (row) WHERE text = '';
CREATE VIRTUAL TABLE words USING fts5(keys, content = '', tokenize = 'ascii', detail = 'none');
CREATE TABLE documents (name TEXT PRIMARY KEY, {", ".join(StoredDocument._fields[1:])});
CREATE TABLE removed (first INTEGER PRIMARY KEY, count);
PRAGMA user_version = {VERSION};
COMMIT"""


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """The schema of a database, without the tables that FTS5 creates, which differ by version."""
    own = "CASE WHEN name LIKE 'words!_%' ESCAPE '!' THEN '' ELSE sql END"  # iif needs SQLite 3.32
    return set(connection.execute(f"SELECT type, name, tbl_name, {own} FROM sqlite_master"))


@cache
def _expected_schema() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return _schema(connection)


@dataclass
class _Tally:
    """An order-independent checksum of the words of rows: their number and the sum of their digests."""

    count: int = 0
    total: int = 0

    def add(self, key: bytes, row: int) -> None:
        """Count a word of a row."""
        self.count += 1
        digest = hashlib.blake2b(b"%d %b" % (row, key), digest_size=8).digest()
        self.total = (self.total + int.from_bytes(digest)) % 2**64


class IndexDatabase:
    """An open database of an index; threads may share it.

    With `write`, it is created if it does not exist.

    Every method raises DataError if the database is damaged, and OSError if the disk fails.
    """

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        found = sorted(folder.glob(_DATABASE))
        if not found and not write:
            what, remedy = "no such folder", "create one with xsent index"
            if folder.is_dir():
                what, remedy = "not an index", f"{remedy}, or search a folder of notes with xsent notes"
            elif folder.exists():
                what = "not an index, but a file"
            raise DataError(f"{folder}: {what}; {remedy}")
        self.path = found[0] if found else folder / _DATABASE.replace("*", os.urandom(4).hex())
        refuse_links(folder if write else folder.resolve())  # SQLite would follow them
        if not found:
            open_to_write(self.path, permissions_within(folder)).close()
        self._lock = threading.Lock()
        self._steps = 0
        self._most_steps = _STEPS + _STEPS_PER_BYTE * self.path.stat().st_size
        with self._explain_errors():
            address = f"{self.path.absolute().as_uri()}?mode=rw"  # rw falls back to reading if it cannot write
            self._connection = sqlite3.connect(address, uri=True, timeout=60, check_same_thread=False)
            self.close = weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            ((version,),) = self._connection.execute("PRAGMA user_version")
            if write and not version:
                self._connection.executescript(_TABLES)
                version = VERSION
            is_index = version != VERSION or _schema(self._connection) == _expected_schema()
        if not is_index:
            raise self.damaged("it does not have the tables of an index")
        if version != VERSION:
            advice = "build the index again with --force" if version < VERSION else "upgrade xsent"
            raise DataError(f"{self.path}: an index of version {version}, this xsent reads {VERSION}; {advice}")

    def state(self) -> IndexState:
        """The state of the index."""
        found = self._typed(self._read("SELECT * FROM state"), int, *IndexState.__annotations__.values())
        if len(found) != 1:
            raise self.damaged(f"it has {len(found):,} states")
        return IndexState(*found[0][1:])

    def check_rows(self) -> None:
        """Raise DataError if the number of rows of passages and removed documents does not match the state."""
        state = self.state()
        removed = self.removed()
        ((last,),) = self._read("SELECT ifnull(max(row), -1) FROM passages")
        ends = [first + count for first, count in removed]
        overlap = any(first < end for (first, _), end in zip(removed[1:], ends, strict=False))
        removed_rows = sum(count for _, count in removed)
        # A passage takes more bytes than its digest, so a small file cannot claim to hold millions of rows.
        if (
            overlap
            or max([last + 1, *ends[-1:]]) != state.rows
            or (state.rows - removed_rows) * 16 > self.path.stat().st_size
        ):
            raise self.damaged(f"it does not have the {state.rows:,} rows of its state")

    def check_words(self) -> None:
        """Raise DataError if the indexed words of the passages do not match their texts."""
        expected = _Tally()
        clean = bool(self.state().clean)
        passages = self._read("SELECT ifnull(max(row), -1) FROM passages")[0][0]
        for first in range(0, passages + 1, _TALLIED):
            for row, passage in self.passages(first, _TALLIED).items():
                for key in set(passage_keys(passage.source, passage.context, passage.text, clean=clean).split()):
                    expected.add(key.encode()[:_LONGEST_KEY], row)
        self._read("CREATE VIRTUAL TABLE IF NOT EXISTS temp.keys USING fts5vocab(main, words, instance)")
        found = _Tally()
        with self._explain_errors():
            for key, row in self._connection.execute("SELECT CAST(term AS BLOB), doc FROM temp.keys"):
                found.add(key, row)
        if found != expected:
            raise self.damaged("its words do not match its passages")

    def passages(self, first: int, count: int = 1) -> dict[int, Passage]:
        """Passages by row, starting at `first`; missing rows are skipped."""
        found = self._read("SELECT * FROM passages WHERE row BETWEEN ? AND ? ORDER BY row", first, first + count - 1)
        found = self._typed(found, int, *Passage.__annotations__.values())
        return {row: Passage(*columns) for row, *columns in found}

    def documents(self) -> list[StoredDocument]:
        """All documents, in the order of their rows."""
        found = self._read("SELECT * FROM documents ORDER BY first")
        return [StoredDocument(*row) for row in self._typed(found, *StoredDocument.__annotations__.values())]

    def removed(self) -> list[tuple[int, int]]:
        """First row and length of each removed range, in ascending order."""
        return self._typed(self._read("SELECT first, count FROM removed ORDER BY first"), int, int)

    def windows(self, rows: int) -> list[int]:
        """Those of the first rows that continue the line of the row before, in ascending order."""
        found = self._read("SELECT row FROM passages WHERE text = '' AND row < ? ORDER BY row", rows)
        return [row for (row,) in self._typed(found, int)]

    def version(self) -> int:
        """A number that changes when another process or thread writes."""
        return int(self._read("PRAGMA data_version")[0][0])

    def last_line(self) -> int:
        """The line number of the last row; 0 without rows."""
        found = self._read("SELECT line FROM passages ORDER BY row DESC LIMIT 1")
        return int(found[0][0]) if found else 0

    def save(
        self,
        state: IndexState,
        first: int = 0,
        passages: Sequence[Passage] = (),
        *,
        documents: Iterable[StoredDocument] = (),
        remove: Iterable[str] = (),
    ) -> None:
        """Write a state together with added and removed rows, in one transaction.

        Args:
            state: The new state.
            first: Row of the first of the passages.
            passages: New passages.
            documents: Documents of the new passages; their older versions are removed.
            remove: Names of documents to remove.
        """
        with self._explain_errors(), self._connection as connection:
            for name in remove:
                self._remove(name, state)
            for document in documents:
                self._remove(document.name, state, unless_first=document.first)
                connection.execute("REPLACE INTO documents VALUES (?, ?, ?, ?)", document)
            numbered = [(row, *passage) for row, passage in enumerate(passages, first)]
            connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", numbered)
            if passages:
                self._write_words(_ADD_WORDS, state, first)
            self._write_state(state)

    def cut(self, state: IndexState, documents: Iterable[str]) -> None:
        """Write a state with fewer rows, and remove the other rows and these documents, whose rows they are."""
        with self._explain_errors(), self._connection as connection:
            self._write_words(_DROP_WORDS, state, state.rows)
            connection.execute("DELETE FROM passages WHERE row >= ?", (state.rows,))
            connection.executemany("DELETE FROM documents WHERE name = ?", [(name,) for name in documents])
            connection.execute("DELETE FROM removed WHERE first >= ?", (state.rows,))
            self._write_state(state)

    def damaged(self, reason: str) -> DataError:
        """The error to raise if the database is damaged."""
        return DataError(f"{self.path}: damaged ({reason}); build the index again")

    def _write_state(self, state: IndexState) -> None:
        values = astuple(state)
        self._connection.execute(f"REPLACE INTO state VALUES (0, {', '.join('?' * len(values))})", values)

    def _write_words(self, statement: str, state: IndexState, first: int, last: int = _LAST) -> None:
        """Add or drop the words of passages; a SQL function would swallow Ctrl-C."""
        query = "SELECT row, source, context, text FROM passages WHERE row BETWEEN ? AND ?"
        found = self._connection.execute(query, (first, last))
        keys = ((row, passage_keys(*map(str, columns), clean=bool(state.clean))) for row, *columns in found)
        self._connection.executemany(statement, keys)

    def _remove(self, name: str, state: IndexState, unless_first: int = -1) -> None:
        """Remove a document, unless it starts at `unless_first`: then the new passages continue it."""
        found = self._connection.execute("SELECT first, passages FROM documents WHERE name = ?", (name,)).fetchone()
        if found and found[0] != unless_first:
            first, count = found
            self._write_words(_DROP_WORDS, state, first, first + count - 1)
            self._connection.execute("DELETE FROM passages WHERE row BETWEEN ? AND ?", (first, first + count - 1))
            self._connection.execute("DELETE FROM documents WHERE name = ?", (name,))
            if count:
                self._connection.execute("INSERT INTO removed VALUES (?, ?)", found)

    def first_rows_with(self, match: str, rows: int, limit: int) -> list[int]:
        """At most `limit` of the rows below `rows` whose words match an expression of FTS5, in order."""
        return self._matching(match, "rowid < ? ORDER BY rowid LIMIT ?", rows, limit)

    def rows_with(self, match: str, among: Iterable[int]) -> list[int]:
        """The rows, among some, whose words match an expression of FTS5."""
        return self._matching(match, "rowid IN (SELECT value FROM json_each(?))", json.dumps(sorted(among)))

    def _matching(self, match: str, where: str, *values: object) -> list[int]:
        found = self._read(f"SELECT rowid FROM words WHERE words MATCH ? AND {where}", match, *values)
        return [row for (row,) in found]

    def _typed(self, rows: list[Any], *types: type) -> list[Any]:
        """Check that columns have these types and no number is negative, because SQLite accepts anything."""
        for row in rows:
            if tuple(map(type, row)) != types or any(value < 0 for value in row if type(value) is int):
                raise self.damaged("unexpected value in a column")
        return rows

    def _read(self, query: str, *values: object) -> list[Any]:
        """The rows of a query; far more steps than the database has bytes mean that it is damaged."""
        with self._explain_errors():
            self._steps = 0
            self._connection.set_progress_handler(self._is_endless, _COUNTED)
            try:
                return self._connection.execute(query, values).fetchall()
            finally:
                self._connection.set_progress_handler(None, 0)

    def _is_endless(self) -> bool:
        self._steps += _COUNTED
        return self._steps > self._most_steps

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Allow one thread at a time, and turn SQLite's errors into DataError or OSError."""
        try:
            with self._lock:
                yield
        except UnicodeDecodeError as error:  # in a message that quotes damaged content
            raise self.damaged(str(error)) from error
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.ProgrammingError):
                raise ValueError(f"{self.path.parent}: the index is closed; open it again") from error
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if not isinstance(error, sqlite3.OperationalError) or code in (
                sqlite3.SQLITE_ERROR,
                sqlite3.SQLITE_INTERRUPT,
            ):
                raise self.damaged(str(error)) from error
            # The table of words reports failed writes without the reason.
            full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error), str(self.path)) from error


def has_index(folder: Path) -> bool:
    """Whether a folder contains an index, of any version."""
    return any(folder.glob(_DATABASE))


def check_replaceable(folder: Path, *, complete: bool = True) -> None:
    """Raise DataError if replacing a folder would lose anything but an index."""
    refuse_links(folder)
    if not folder.is_dir() or (complete and not has_index(folder)):
        raise DataError(f"{folder}: not an index, so it is not replaced; choose another name")
    for entry in sorted(folder.iterdir()):
        if not (entry.is_file() and any(entry.match(pattern) for pattern in _FILES)):
            raise DataError(
                f"{folder}: contains {entry.name}, which is not part of an index; move it, or choose another name"
            )
