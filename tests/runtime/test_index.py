"""Indexes made, added to, stopped, killed, resumed, searched, and what a damaged one says."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from commands import file_names, raises
from hypothesis import given, settings
from hypothesis import strategies as st
from indexes import LINES, Replay, Stop, contents, encoder, made, overwrite, path, replayed, until

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, FingerprintError
from xsent.precision import widen
from xsent.search.index import SearchIndex, semantic_search
from xsent.search.lines import build_index, extend_index
from xsent.search.store import IndexDatabase, Passage, _schema
from xsent.search.vectors import STORED

__all__ = ["encoder", "made", "path"]


def test_semantic_search_by_hand() -> None:
    found = semantic_search([[1, 0], [0, 2]], [[0, 1], [1, 1], [5, 0]], top_k=2)
    assert [[hit["corpus_id"] for hit in hits] for hits in found] == [[2, 1], [0, 1]]
    assert [hit["score"] for hit in found[0]] == pytest.approx([1, 0.5**0.5])
    raises(ValueError, "top_k = 0", semantic_search, [1, 0], [[1, 1]], top_k=0)


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 40), queries=st.integers(1, 4), k=st.integers(1, 50), seed=st.integers(0))
def test_brute_force(tmp_path_factory: pytest.TempPathFactory, rows: int, queries: int, k: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    index, _ = replayed(tmp_path_factory.mktemp("index") / "x", random.normal(size=(rows, 5)))
    asked = random.normal(size=(queries, 5))
    stored = np.frombuffer((index.path / "vectors.f16").read_bytes(), np.float16).reshape(rows, 5).astype(float)
    cosines = asked @ stored.T / np.linalg.norm(asked, axis=1)[:, None] / np.linalg.norm(stored, axis=1)
    small = {"vectors._SCORED": 16, "vectors._BLOCK": 4, "index._QUERIES": 3}  # fewer rows than there are
    with ExitStack() as patches:
        for name, value in small.items():
            patches.enter_context(mock.patch(f"xsent.search.{name}", value))
        for removed in (0, 0, rows // 2):  # at first, lengths are not known
            index.live[:removed] = False
            cosines[:, :removed] = -2
            found, scores = index.nearest(asked.astype(np.float32), k)
            assert found.shape == scores.shape == (queries, min(k, rows - removed))
            assert np.allclose(scores, -np.sort(-cosines, axis=1)[:, : found.shape[1]], atol=1e-6)
            assert np.allclose(np.take_along_axis(cosines, found, axis=1), scores, atol=1e-6)


def test_every_finite_float16_is_widened_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(STORED)
    halves = halves[np.isfinite(halves)]
    wide = np.empty(len(halves), np.float32)
    widen(halves, wide)
    assert np.array_equal(wide, halves.astype(np.float32))
    assert np.array_equal(np.signbit(wide), np.signbit(halves))


def test_the_schema_is_read_by_every_sqlite() -> None:
    connection = mock.Mock(execute=mock.Mock(return_value=[]))
    _schema(connection)
    assert "iif" not in connection.execute.call_args[0][0]  # since SQLite 3.32


def test_an_open_index_stays_what_it_was(made: Path, encoder: SentenceEncoder, path: Path) -> None:
    opened = SearchIndex(made)
    found = opened.search(encoder, ["Anna", "Boris"], k=100)
    build_index(made, ["Clara sees David."] * 100, encoder, force=True)
    assert opened.search(encoder, ["Anna", "Boris"], k=100) == found
    assert SearchIndex(made).search(encoder, ["Anna"], k=1)[0][0].text == "Clara sees David."
    index, numbers = replayed(path, np.random.default_rng(0).normal(size=(4100, 4)), force=True)
    asked = ["0", "511", "512", "4099"]  # of more rows than are read at once
    assert [hits[0].text for hits in index.search(numbers, asked, k=1)] == asked


def database(folder: Path) -> Path:
    (file,) = folder.glob("passages-*.db")
    return file


ENDLESS = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) SELECT"
NOT_OURS = r"\.db: damaged \(it does not have the tables of an index\)"
SQL = {
    "PRAGMA user_version = 10": "version 10, this xsent reads 9; upgrade xsent",
    "PRAGMA user_version = 3": "version 3, this xsent reads 9; build the index again with --force",
    "DROP TABLE words_data": NOT_OURS,
    "DROP TABLE words": NOT_OURS,
    "DROP TABLE passages": NOT_OURS,
    "CREATE TRIGGER t AFTER INSERT ON passages BEGIN DELETE FROM state; END": NOT_OURS,
    **{
        f"DROP TABLE {table}; CREATE VIEW {table} AS {ENDLESS} {columns} FROM n": NOT_OURS
        for table, columns in {"removed": "i AS first, 1 AS count", "state": "i AS id, i AS rows"}.items()
    },
    f"DROP TABLE passages; CREATE VIEW passages AS {ENDLESS} i AS row, 'x' AS text FROM n": NOT_OURS,
    "DELETE FROM passages WHERE row = 3": "damaged .passages are missing",
    "UPDATE passages SET text = 'x'": "row .* has changed",
    "UPDATE passages SET line = line + 1": "row .* has changed",
    "UPDATE passages SET line = 'x'": "unexpected value in a column",
    "UPDATE state SET rows = 'many'": "unexpected value in a column",
    "UPDATE state SET rows = 1000000000000": "it does not have the 1,000,000,000,000 rows of its state",
    "UPDATE state SET rows = 5": "it does not have the 5 rows of its state",
    "UPDATE state SET rows = 1 << 30; INSERT INTO removed VALUES (43, 1 << 30), (44, 1 << 30)": "it does not have the",
    "UPDATE state SET rows = 1 << 30; UPDATE passages SET row = (1 << 30) - 1 WHERE row = 42": "it does not have the",
    "UPDATE state SET dim = 0": "no dimension",
    "DELETE FROM state": "it has 0 states",
}
DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (shutil.rmtree, "no such folder; create one with xsent index"),
    (lambda path: database(path).unlink(), "not an index; create one with xsent index"),
    (lambda path: overwrite(database(path), 0, b"x" * 999), r"\.db: damaged \(file is not a data"),
    (lambda path: os.truncate(path / "vectors.f16", 99), r"rs\.f16: 99 bytes, expected 2,752; build the index again"),
    (lambda path: (path / "vectors.f16").unlink(), r"vectors\.f16: missing; build"),
    (lambda path: overwrite(path / "vectors.f16", 70, b"\xff\x7f"), r"vectors\.f16: damaged"),  # not a number
    (lambda path: path.rename(f"{path}.old") and path.touch(), r"not an index, but a file"),
]


@pytest.mark.parametrize(("damage", "message"), [*SQL.items(), *DAMAGE])
def test_a_damaged_index_is_named(made: Path, encoder: SentenceEncoder, damage: Any, message: str) -> None:  # noqa: ANN401
    if isinstance(damage, str):
        with closing(sqlite3.connect(database(made))) as connection:
            connection.executescript(damage)
    else:
        damage(made)
    with pytest.raises(DataError, match=message) as caught:
        SearchIndex(made).search(encoder, ["Anna"], k=100)
    assert str(made) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["vectors.f16", "passages"])
def test_verify_and_adding_see_a_single_bit(made: Path, encoder: SentenceEncoder, name: str) -> None:
    SearchIndex(made).verify()
    file = database(made) if name == "passages" else made / name
    place = file.read_bytes().index(b"Anna sees") if name == "passages" else 40
    overwrite(file, place, bytes([file.read_bytes()[place] ^ 1]))
    damaged = contents(made)
    for work in (SearchIndex(made).verify, lambda: extend_index(made, ["Boris"], encoder)):
        raises(DataError, r"damaged \(its row \d+, or that of vectors.f16, has changed\)", work)
    assert contents(made) == damaged


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO words (words) VALUES ('delete-all')",
        "INSERT INTO words (rowid, keys) VALUES (3, 'clara')",
        "INSERT INTO words (rowid, keys) VALUES (99, 'anna')",
        "INSERT INTO words (words, rowid, keys) VALUES ('delete', 3, 'anna')",
    ],
)
def test_verify_sees_words_that_are_not_those_of_the_texts(made: Path, damage: str) -> None:
    with closing(sqlite3.connect(database(made))) as connection, connection:
        connection.execute(damage)
    raises(DataError, "damaged .its words do not match its passages", SearchIndex(made).verify)


def test_a_query_that_does_not_end_is_damage(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_STEPS": 0, "_STEPS_PER_BYTE": 0, "_COUNTED": 1}.items():
        monkeypatch.setattr(f"xsent.search.store.{name}", value)
    raises(DataError, r"\.db: damaged \(interrupted\)", SearchIndex, made)


def test_a_database_without_room_is_a_full_disk_and_stays_as_it_was(made: Path) -> None:
    database = IndexDatabase(made, write=True)
    database._connection.execute("PRAGMA max_page_count = 1")  # the pages that it has
    passages = [Passage.of(bytes(8), "", line, "Henry. " * 10_000, "", "") for line in range(9)]
    with pytest.raises(OSError) as caught:
        database.save(database.state(), 99, passages)
    assert caught.value.errno == errno.ENOSPC and str(database.path) in str(caught.value)
    assert len(SearchIndex(made)) == 43


def test_an_index_that_is_cut_while_it_is_open_is_an_error(path: Path) -> None:
    index, numbers = replayed(path, np.random.default_rng(0).normal(size=(4100, 64)))
    os.truncate(path / "vectors.f16", 99)
    raises(DataError, "vectors.f16: was cut while it was open", index.search, numbers, ["3"])
    raises(DataError, "vectors.f16: was cut while it was open", index.verify)


def test_empty_lines_keep_their_numbers_and_find_nothing(made: Path, encoder: SentenceEncoder) -> None:
    index = SearchIndex(made)
    (hits,) = index.search(encoder, ["Anna"], k=10**12)
    assert sorted(hit.line for hit in hits) == [line for line in range(1, 51) if line % 7]
    assert all(hit.text == LINES[hit.line - 1] for hit in hits) and len(index) == 43
    assert index.search(encoder, []) == []
    raises(ValueError, "k = 0", index.search, encoder, ["Anna"], k=0)
    raises(TypeError, "not one str", index.search, encoder, "Anna")
    raises(ValueError, "3 and of 32 dimensions", index.nearest, np.ones((1, 3), np.float32))


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.search.writer.SAVE_EVERY", 4)
    monkeypatch.setattr("xsent.search.lines._BLOCK_LINES", 4)


def test_an_index_is_replaced_only_by_force_and_nothing_else_ever(made: Path, encoder: SentenceEncoder) -> None:
    before = contents(made)
    raises(FileExistsError, "exists; --force replaces it, --add adds to it", build_index, made, ["Boris"], encoder)
    raises(Stop, "^$", build_index, made, until(LINES, 2), encoder, force=True)
    assert contents(made) == before
    with mock.patch.object(Path, "rename", side_effect=Stop), pytest.raises(Stop):
        build_index(made, ["Boris"], encoder, force=True)
    assert contents(made) == before
    build_index(made, ["Boris"], encoder, force=True)
    assert file_names(made.parent) == {made.name}
    assert len(SearchIndex(made)) == 1
    mine, file = made.with_name("mine"), made.with_name("file")
    mine.mkdir()
    for letter in (mine / "letter.txt", made / "letter.txt", file):
        letter.write_text("dear")
    raises(DataError, "not an index, so it is not replaced", build_index, mine, ["Boris"], encoder, force=True)
    raises(
        DataError,
        r"contains letter\.txt, which is not part of an index",
        build_index,
        made,
        ["Boris"],
        encoder,
        force=True,
    )
    for work in (build_index, extend_index):
        raises(DataError, "not an index", work, file, ["Boris"], encoder)
        raises(DataError, "not an index", work, mine, ["Boris"], encoder)
    assert file_names(mine) == {"letter.txt"} and len(SearchIndex(made)) == 1


@pytest.mark.usefixtures("often")
def test_a_stopped_addition_is_searched_and_resumed(made: Path, encoder: SentenceEncoder) -> None:
    opened = SearchIndex(made)
    found = opened.search(encoder, ["Anna"], k=100)
    raises(Stop, "^$", extend_index, made, until(LINES, 40), encoder)
    assert opened.search(encoder, ["Anna"], k=100) == found  # as it was when it was opened
    assert len(SearchIndex(made)) == 43 + 21  # 24 lines; three are empty
    with pytest.raises(FileExistsError, match="holds 24 lines of an interrupted job; continue with --add --resume"):
        extend_index(made, LINES, encoder)
    extend_index(made, LINES, encoder, resume=True)
    whole = made.with_name("whole")
    build_index(whole, LINES, encoder)
    extend_index(whole, LINES, encoder)
    assert contents(made) == contents(whole)
    raises(Stop, "^$", extend_index, made, until(LINES, 40), encoder)
    extend_index(made, ["Clara"], encoder, force=True)
    assert len(SearchIndex(made)) == 87
    SearchIndex(made).verify()
    extend_index(made, ["Clara"], encoder, force=True)  # discards what was stopped, not what is complete
    assert len(SearchIndex(made)) == 88


@pytest.mark.usefixtures("often")
def test_a_stopped_job_is_resumed_where_it_was(path: Path, encoder: SentenceEncoder) -> None:
    raises(Stop, "^$", build_index, path, until(LINES, 40), encoder)
    raises(
        FileExistsError,
        "holds 24 lines of an interrupted job; continue with --resume",
        build_index,
        path,
        LINES,
        encoder,
    )
    raises(
        FileExistsError,
        "holds 24 lines of an interrupted job; continue with --resume",
        extend_index,
        path,
        LINES,
        encoder,
    )
    (hit,) = SearchIndex(path).search(encoder, [LINES[23]], k=1)[0]
    assert hit.line == 24
    with (path / "vectors.f16").open("ab") as file:
        file.write(b"of a kill")
    encoded: list[str] = []
    encode_items = encoder.encode_items

    def note(items: Any, text: Any, **options: Any) -> Any:  # noqa: ANN401
        return encode_items(items, lambda item: encoded.append(item[2]) or text(item), **options)

    with mock.patch.object(encoder, "encode_items", note):
        build_index(path, LINES, encoder, resume=True)
    blocks = [LINES[start : start + 4] for start in range(24, len(LINES), 4)]
    assert encoded == [text for block in blocks for text in (*block, "")]  # "" ends a block
    whole = path.with_name("whole")
    build_index(whole, LINES, encoder)
    assert contents(path) == contents(whole)
    before = contents(path)
    with pytest.warns(UserWarning, match="already complete; there is nothing to resume"):
        assert build_index(path, LINES, encoder, resume=True) == extend_index(path, LINES, encoder, resume=True)
    for other in ([*LINES, "One more."], LINES[1:]):
        for job in (build_index, extend_index):
            raises(DataError, "complete, but without these lines; add them", job, path, other, encoder, resume=True)
    assert contents(path) == before


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
def test_a_block_that_was_cut_short_comes_again(
    path: Path, encoder: SentenceEncoder, error: type[BaseException]
) -> None:
    def stop_after(items: int) -> None:
        def some(_: Any, *arguments: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401
            yield from islice(encode_items(*arguments, **options), items)
            raise error

        with mock.patch.object(SentenceEncoder, "encode_items", some), pytest.raises(error):
            build_index(path, LINES, encoder)

    encode_items = encoder.encode_items
    stop_after(3)
    assert not path.exists()
    stop_after(8)  # in the second block
    assert [passage.line for passage, _ in SearchIndex(path).passages()] == [1, 2, 3, 4]
    build_index(path, LINES, encoder, resume=True)
    whole = path.with_name("whole")
    build_index(whole, LINES, encoder)
    assert contents(path) == contents(whole)


@pytest.mark.usefixtures("often")
def test_a_resume_refuses_other_input(path: Path, encoder: SentenceEncoder) -> None:
    raises(Stop, "^$", build_index, path, until(LINES, 40), encoder)
    other: Any = Replay(np.eye(32))
    both = f"{encoder.fingerprint}, the model is {other.fingerprint}"
    raises(FingerprintError, both, build_index, path, LINES, other, resume=True)
    before = contents(path)
    message = "does not begin with the 24 lines that were read before"
    for lines in (["Boris", *LINES[1:]], LINES[:19], []):
        raises(DataError, message, build_index, path, lines, encoder, resume=True)
        assert contents(path) == before
    (path / "vectors.f16").write_bytes(b"short")
    raises(DataError, r"vectors\.f16: 5 bytes, expected", build_index, path, LINES, encoder, resume=True)
    build_index(path, ["Clara"], encoder, force=True)
    assert len(SearchIndex(path)) == 1


@pytest.mark.usefixtures("often")
def test_empty_lines_block_nothing_and_a_resume_may_start(path: Path, encoder: SentenceEncoder) -> None:
    for lines in ([], ["", "  "]):
        raises(DataError, f"none of {len(lines)} lines has text", build_index, path, lines, encoder)
        assert not file_names(path.parent)
    raises(Stop, "^$", build_index, path, until(LINES, 3), encoder)  # nothing was saved
    assert not file_names(path.parent)
    build_index(path, LINES, encoder, resume=True)
    assert len(SearchIndex(path)) == 43
    before = contents(path)
    raises(DataError, "none of 9 lines has text", extend_index, path, [""] * 9, encoder)
    raises(Stop, "^$", extend_index, path, until(LINES, 3), encoder)
    assert contents(path) == before
    raises(Stop, "^$", extend_index, path, until([""] * 50, 40), encoder)
    raises(DataError, "none of 40 lines has text", extend_index, path, [""] * 40, encoder, resume=True)
    assert contents(path) == before
    empty_end = [*LINES[:40], *[""] * 4]  # its last block has no text
    build_index(path, empty_end, encoder, force=True)
    raises(DataError, "none of 9 lines has text", extend_index, path, [""] * 9, encoder)
    with pytest.warns(UserWarning, match="already complete"):
        build_index(path, empty_end, encoder, resume=True)
    raises(ValueError, "line 2: a lone surrogate", build_index, path, ["ok", "\ud83d"], encoder, force=True)


def test_adding_gives_what_indexing_at_once_gives_and_keeps_sources(made: Path, encoder: SentenceEncoder) -> None:
    more = ["Clara sees Boris.", "", "David voit Elena."]
    state = extend_index(made, more, encoder)
    assert (state.lines, state.rows, state.start) == (53, 45, 53)
    whole = made.with_name("whole")
    build_index(whole, LINES + more, encoder)
    assert contents(made)["passages"] == contents(whole)["passages"]
    assert (made / "vectors.f16").read_bytes() == (whole / "vectors.f16").read_bytes()
    extend_index(made, ["Clara"], encoder, source="more.txt")
    for text, source, line in (("David voit Elena.", "", 53), ("Clara", "more.txt", 54)):
        ((hit,),) = SearchIndex(made).search(encoder, [text], k=1)
        assert (hit.source, hit.line, hit.text) == (source, line, text)
    pytest.importorskip("fcntl")

    def lines() -> Iterator[str]:
        yield "Boris"
        with pytest.raises(DataError, match="another process is writing it; wait until it is done"):
            extend_index(made, ["Clara"], encoder)
        raises(DataError, "another process is writing it", build_index, made, ["Clara"], encoder, force=True)

    extend_index(made, lines(), encoder)
    assert len(SearchIndex(made)) == 47 and file_names(made.parent) == {made.name, "whole"}
