"""An index on disk: a folder with two files.

- `passages-*.db`, a SQLite database: the state of the index, its passages and their words; of an index of documents
  their names and the rows of removed ones.
- `vectors.f16`: for every passage a row with its vector, of length 1, in float16.
"""

import errno
import hashlib
import heapq
import json
import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from xsent.errors import DataError, FingerprintError
from xsent.files.atomic import open_to_write, permissions_within, refuse_links
from xsent.fingerprint import same_space, split_depth
from xsent.search.rows import VECTORS
from xsent.words import beginning, joined_keys, word_keys

_DATABASE = "passages-*.db"  # a new name for each index: SQLite would take the journal of another one for its own
_FILES = (f"{_DATABASE}*", VECTORS, "graph-*.usearch")  # the last is of version 5

VERSION = 7

_FIRST, _AMONG = "rowid < ? ORDER BY rowid LIMIT ?", "rowid IN (SELECT value FROM json_each(?))"
_BEGINNING = 0.5  # what a word counts that only begins as one of the query
_MOST_WORDS = 32  # a longer query is a text of its own, not a search for words
_COMMON = 4096  # rows of a word, above which it is looked for only in passages that are found otherwise


@dataclass(frozen=True)
class IndexState:
    """What an index says about itself."""

    fingerprint: str  #: identity of the vector space
    dim: int  #: length of a vector (D)
    lines: int = 0  #: lines read, empty ones too; 0 in an index of documents
    rows: int = 0  #: passages and lines that have a vector, those of removed documents too
    start: int = 0  #: lines before those of an addition that is not complete; otherwise all
    clean: int = 0  #: 1 if texts were cleaned before they were encoded, see `xsent.clean.clean_text`

    @property
    def unfinished(self) -> bool:
        """Whether an addition of lines was stopped."""
        return self.start < self.lines

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


def passage_keys(source: str, context: str, text: str) -> str:
    """The keys of the words that find a passage: those of its text, of its context, and of the folders of its source.

    The folders of an absolute path do not count: they say where a person keeps files, not what is in them.
    """
    folders = "" if source.startswith("/") else source.rpartition("/")[0]
    return joined_keys(f"{folders} {context} {text}")


class StoredDocument(NamedTuple):
    """A document as an index knows it."""

    name: str  # the source of its passages
    stamp: str  # of the version that is in the index; empty while it is not complete
    first: int  # row of its first passage
    passages: int  # their number


_ADD_WORDS = "INSERT INTO words (rowid, keys) VALUES (?, ?)"
_DROP_WORDS = "INSERT INTO words (words, rowid, keys) VALUES ('delete', ?, ?)"
_LAST = 2**62  # above every row
_COUNTED = 10_000  # steps of SQLite's machine between two looks at their number
_STEPS, _STEPS_PER_BYTE = 20_000_000, 4  # a query takes at most; 20 million are a tenth of a second on a laptop
_TALLIED = 4096  # passages in memory while words are counted
_LONGEST_KEY = 32_768  # bytes of a word that FTS5 stores

# No text is stored twice, and no places of words in it; the tokenizer takes the keys of words as they are.
_TABLES = f"""BEGIN;
CREATE TABLE state (id INTEGER PRIMARY KEY, {", ".join(field.name for field in fields(IndexState))});
CREATE TABLE passages (row INTEGER PRIMARY KEY, {", ".join(Passage._fields)});
CREATE VIRTUAL TABLE words USING fts5(keys, content = '', tokenize = 'ascii', detail = 'none');
CREATE TABLE documents (name TEXT PRIMARY KEY, {", ".join(StoredDocument._fields[1:])});
CREATE TABLE removed (first INTEGER PRIMARY KEY, count);
PRAGMA user_version = {VERSION};
COMMIT"""


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """What a database consists of; how FTS5 stores words is its own, and differs by its version."""
    ours = "iif(name LIKE 'words!_%' ESCAPE '!', '', sql)"
    return set(connection.execute(f"SELECT type, name, tbl_name, {ours} FROM sqlite_master"))


@cache
def _expected_schema() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return _schema(connection)


@dataclass
class _Tally:
    """Which words which rows have, in whichever order they come: their number, and the sum of their digests."""

    count: int = 0
    total: int = 0

    def add(self, key: bytes, row: int) -> None:
        """Count a word of a row."""
        self.count += 1
        digest = hashlib.blake2b(b"%d %b" % (row, key), digest_size=8).digest()
        self.total = (self.total + int.from_bytes(digest)) % 2**64


@dataclass
class _Shared:
    """What rows share with a query."""

    whole: float = 0.0  # weight of all words of the query
    shares: dict[int, float] = field(default_factory=dict)  # by row: weight of the words that it has
    telling: dict[int, float] = field(default_factory=dict)  # the same, each word once more by its weight

    def add(self, rows: Iterable[int], weight: float, part: float = 1.0) -> None:
        """Rows that have a word, or a part of it."""
        for row in rows:
            self.shares[row] = self.shares.get(row, 0.0) + part * weight
            self.telling[row] = self.telling.get(row, 0.0) + part * weight**2

    def score(self, row: int) -> float:
        """How much the words say that a row shares, see `IndexDatabase.shared_words`."""
        return max((self.shares[row] / self.whole) ** 4, self.telling[row] / self.whole)


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
        refuse_links(folder if write else folder.resolve())  # SQLite would follow them
        if not found:
            open_to_write(self.path, permissions_within(folder)).close()
        self._lock = threading.Lock()
        self._steps = 0
        self._most_steps = _STEPS + _STEPS_PER_BYTE * self.path.stat().st_size
        with self._explain_errors():
            self._connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=60, check_same_thread=False
            )  # rw reads where it cannot write
            self.close = weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            ((version,),) = self._connection.execute("PRAGMA user_version")
            if write and not version:
                self._connection.executescript(_TABLES)
                version = VERSION
            is_ours = version != VERSION or _schema(self._connection) == _expected_schema()
        if not is_ours:
            raise self.damaged("its tables are not those of an index")
        if version != VERSION:
            advice = "build the index again" if version < VERSION else "upgrade xsent"
            raise DataError(f"{self.path}: an index of version {version}, this xsent reads {VERSION}; {advice}")

    def state(self) -> IndexState:
        """The state of the index."""
        found = self._typed(self._read("SELECT * FROM state"), int, *IndexState.__annotations__.values())
        if len(found) != 1:
            raise self.damaged(f"it has {len(found):,} states")
        return IndexState(*found[0][1:])

    def check_rows(self) -> None:
        """Raises DataError if the rows of passages and removed documents are not as many as the last state says."""
        state = self.state()
        removed = self.removed()
        ((last,),) = self._read("SELECT ifnull(max(row), -1) FROM passages")
        ends = [first + count for first, count in removed]
        overlap = any(first < end for (first, _), end in zip(removed[1:], ends, strict=False))
        gone = sum(count for _, count in removed)
        # A passage takes more than its digest's bytes: so a few bytes cannot claim to be millions of rows.
        if overlap or max([last + 1, *ends[-1:]]) != state.rows or (state.rows - gone) * 16 > self.path.stat().st_size:
            raise self.damaged(f"its rows are not the {state.rows:,} that it says")

    def check_words(self) -> None:
        """Raises DataError if the words of the passages, by which they are found, are not those of their texts."""
        expected = _Tally()
        passages = self._read("SELECT ifnull(max(row), -1) FROM passages")[0][0]
        for first in range(0, passages + 1, _TALLIED):
            for row, passage in self.passages(first, _TALLIED).items():
                for key in set(passage_keys(passage.source, passage.context, passage.text).split()):
                    expected.add(key.encode()[:_LONGEST_KEY], row)
        self._read("CREATE VIRTUAL TABLE IF NOT EXISTS temp.keys USING fts5vocab(main, words, instance)")
        found = _Tally()
        with self._explain_errors():
            for key, row in self._connection.execute("SELECT CAST(term AS BLOB), doc FROM temp.keys"):
                found.add(key, row)
        if found != expected:
            raise self.damaged("its words are not those of its passages")

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
        """First row and number of those that were removed together, in ascending order."""
        return self._typed(self._read("SELECT first, count FROM removed ORDER BY first"), int, int)

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
        """Rows that share words with a text, and how much these say, from 0 to 1.

        A word's weight is the square of its inverse document frequency among `among` passages (Robertson & Spärck Jones
        1976), relative to that of a word in one passage, times its rarity from 0 to 1 in the language. A row has a
        share of the weight of all words, also of those that no passage has; the weight of a word that only begins as
        one of the row's counts half. A row's words say the fourth power of that share, or the share in which each word
        counts by its weight once more, whichever is more: all words of a query say 1, one of several common words says
        almost nothing, and a name says the more of the query it is.

        Looks at the first `rows` rows: at those that are near in meaning and at `most` others, whose words say most.
        """
        words = {keys[0]: (keys, rare) for keys in word_keys(text) if (rare := rarity(keys))}.values()
        if not 0 < len(words) <= _MOST_WORDS:
            return {}
        found = _Shared()
        common: list[tuple[str, float]] = []
        for keys, rare in words:
            match = " OR ".join(f'"{key}"' for key in keys)
            having = self._having(match, _FIRST, rows, _COMMON)
            begins = " OR ".join(f'"{start}" *' for start in map(beginning, keys) if start)
            beginning_so = self._having(begins, _FIRST, rows, _COMMON) if begins else having
            count = float(len(beginning_so))
            if count == _COMMON:  # the word comes as often in the other rows
                count *= rows / (beginning_so[-1] + 1)
            weight = (rare * _idf(max(count, 1), among) / _idf(1, among)) ** 2
            found.whole += weight
            if len(having) == _COMMON:
                common.append((match, weight))
                continue
            found.add(having, weight)
            if len(beginning_so) < _COMMON:
                found.add({*beginning_so}.difference(having), weight, part=_BEGINNING)
        kept = {*near, *heapq.nsmallest(most, found.shares, key=lambda row: (-found.score(row), row))}
        for match, weight in common:
            found.add(self._having(match, _AMONG, json.dumps(sorted(kept))), weight)
        return {row: found.score(row) for row in found.shares if row in kept}

    def version(self) -> int:
        """A number that changes when another process or thread writes."""
        return int(self._read("PRAGMA data_version")[0][0])

    def last_line(self) -> int:
        """The number of the last row's line; 0 without rows."""
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
        """Write a state and what was added and removed with it, in one transaction.

        Args:
            state: The new state.
            first: Row of the first of the passages.
            passages: New ones.
            documents: Documents of the new passages; their older versions are removed.
            remove: Names of documents to remove.
        """
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
            self._write_state(state)

    def cut(self, state: IndexState) -> None:
        """Write a state of fewer rows, and remove the others with their documents."""
        with self._explain_errors(), self._connection as connection:
            self._write_words(_DROP_WORDS, state.rows)
            connection.execute("DELETE FROM passages WHERE row >= ?", (state.rows,))
            connection.execute("DELETE FROM documents WHERE first >= ?", (state.rows,))
            connection.execute("DELETE FROM removed WHERE first >= ?", (state.rows,))
            self._write_state(state)

    def damaged(self, reason: str) -> DataError:
        """The error to raise where the database is damaged."""
        return DataError(f"{self.path}: damaged ({reason}); build the index again")

    def _write_state(self, state: IndexState) -> None:
        values = astuple(state)
        self._connection.execute(f"REPLACE INTO state VALUES (0, {', '.join('?' * len(values))})", values)

    def _write_words(self, statement: str, first: int, last: int = _LAST) -> None:
        """Add or drop the words of passages; not by a function of SQL, which would swallow Ctrl-C."""
        query = "SELECT row, source, context, text FROM passages WHERE row BETWEEN ? AND ?"
        found = self._connection.execute(query, (first, last))
        keys = ((row, passage_keys(*map(str, columns))) for row, *columns in found)
        self._connection.executemany(statement, keys)

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
        """The rows of a query; one that takes far more steps than the database has bytes is of a damaged one."""
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
        """Let one thread at a time in, and turn SQLite's errors into DataError or OSError."""
        try:
            with self._lock:
                yield
        except UnicodeDecodeError as error:  # of a message that quotes what is damaged
            raise self.damaged(str(error)) from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if not isinstance(error, sqlite3.OperationalError) or code in (
                sqlite3.SQLITE_ERROR,
                sqlite3.SQLITE_INTERRUPT,
            ):
                raise self.damaged(str(error)) from error
            # The table of words reports a failed write without its kind.
            full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error), str(self.path)) from error


def _idf(count: float, among: int) -> float:
    """Inverse document frequency of a word that some of the passages have."""
    return math.log1p((max(among, count) - count + 0.5) / (count + 0.5))


def has_index(folder: Path) -> bool:
    """Whether an index, of whichever version, lies in a folder."""
    return any(folder.glob(_DATABASE))


def check_replaceable(folder: Path, *, complete: bool = True) -> None:
    """Raises DataError if anything but an index would be lost with a folder."""
    refuse_links(folder)
    if not folder.is_dir() or (complete and not has_index(folder)):
        raise DataError(f"{folder}: not an index, so it is not replaced; choose another name")
    for entry in sorted(folder.iterdir()):
        if not (entry.is_file() and any(entry.match(pattern) for pattern in _FILES)):
            raise DataError(f"{folder}: holds {entry.name}, which is of no index; move it, or choose another name")
