"""Searching an index, and what a damaged one says."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexes import LINES, Replay, Stop, contents, encoder, made, overwrite, path, replayed, until

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, FingerprintError
from xsent.search.index import SearchIndex, semantic_search
from xsent.search.store import STORED, widen
from xsent.search.write import build_index, extend_index

__all__ = ["encoder", "made", "path"]


def test_semantic_search_by_hand() -> None:
    found = semantic_search([[1, 0], [0, 2]], [[0, 1], [1, 1], [5, 0]], top_k=2)
    assert [[hit["corpus_id"] for hit in hits] for hits in found] == [[2, 1], [0, 1]]
    assert [hit["score"] for hit in found[0]] == pytest.approx([1, 0.5**0.5])
    assert len(semantic_search([1, 0], [[0, 1], [1, 1]], top_k=10**12)[0]) == 2
    with pytest.raises(ValueError, match="k = 0"):
        semantic_search([1, 0], [[1, 1]], top_k=0)


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 40), queries=st.integers(1, 4), k=st.integers(1, 50), seed=st.integers(0))
def test_search_agrees_with_brute_force(
    tmp_path_factory: pytest.TempPathFactory, rows: int, queries: int, k: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    index, _ = replayed(tmp_path_factory.mktemp("index") / "x", random.normal(size=(rows, 5)))
    asked = random.normal(size=(queries, 5))
    stored = np.frombuffer((index.path / "vectors.f16").read_bytes(), np.float16).reshape(rows, 5).astype(float)
    cosines = asked @ stored.T / np.linalg.norm(asked, axis=1)[:, None] / np.linalg.norm(stored, axis=1)
    found, scores = index.nearest(asked.astype(np.float32), k)
    assert found.shape == scores.shape == (queries, min(k, rows))
    assert np.allclose(scores, -np.sort(-cosines, axis=1)[:, :k], atol=1e-6)
    assert np.allclose(np.take_along_axis(cosines, found, axis=1), scores, atol=1e-6)


def test_every_finite_float16_is_widened_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(STORED)
    halves = halves[np.isfinite(halves)]
    wide = np.empty(len(halves), np.float32)
    widen(halves, wide)
    assert np.array_equal(wide, halves.astype(np.float32))
    assert np.array_equal(np.signbit(wide), np.signbit(halves))


def test_an_open_index_stays_what_it_was(made: Path, encoder: SentenceEncoder) -> None:
    opened = SearchIndex(made)
    found = opened.search(encoder, ["Anna", "Boris"], k=100)
    build_index(made, ["Clara sees David."] * 100, encoder, force=True)
    assert opened.search(encoder, ["Anna", "Boris"], k=100) == found
    assert SearchIndex(made).search(encoder, ["Anna"], k=1)[0][0].text == "Clara sees David."


def test_another_encoder_is_refused_with_both_fingerprints(
    made: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xsent.search.write.SAVE_EVERY", 4)
    other: Any = Replay(np.eye(32))
    both = f"{encoder.fingerprint}, the model makes {other.fingerprint}"
    with pytest.raises(FingerprintError, match=both):
        SearchIndex(made).search(other, ["1"])
    with pytest.raises(FingerprintError, match=both):
        extend_index(made, ["1"], other)
    new = made.with_name("new")
    with pytest.raises(Stop):
        build_index(new, until(LINES, 40), encoder)
    with pytest.raises(FingerprintError, match=both):
        build_index(new, ["1"], other, resume=True)


def database(folder: Path) -> Path:
    (file,) = folder.glob("passages-*.db")
    return file


def execute(folder: Path, command: str) -> None:
    with closing(sqlite3.connect(database(folder))) as connection, connection:
        connection.execute(command)


DAMAGE = {
    "no folder": (shutil.rmtree, "no such folder; make one with xsent index"),
    "no database": (lambda path: database(path).unlink(), "not an index; make one with xsent index"),
    "newer": (lambda path: execute(path, "PRAGMA user_version = 6"), "version 6 is unknown, this xsent reads 5"),
    "older": (lambda path: execute(path, "PRAGMA user_version = 3"), "version 3 is unknown, .*build the index again"),
    "no words": (lambda path: execute(path, "DROP TABLE words_data"), r"\.db: damaged \("),
    "half a database": (lambda path: overwrite(database(path), 0, b"x" * 999), r"\.db: damaged \(file is not a data"),
    "no table": (lambda path: execute(path, "DROP TABLE passages"), r"\.db: damaged \(no such table"),
    "lost line": (lambda path: execute(path, "DELETE FROM passages WHERE row = 3"), "damaged .passages are missing"),
    "changed text": (lambda path: execute(path, "UPDATE passages SET text = 'x'"), "row .* is not what it was"),
    "changed line": (lambda path: execute(path, "UPDATE passages SET line = line + 1"), "row .* is not what it was"),
    "no number": (lambda path: execute(path, "UPDATE passages SET line = 'x'"), "a column holds what it never should"),
    "no state": (lambda path: execute(path, "UPDATE states SET rows = 'many'"), "a column holds what it never should"),
    "endless": (
        lambda path: execute(path, "UPDATE states SET rows = 1000000000000"),
        "bytes, expected 64,000,000,000,000",
    ),
    "no dimension": (lambda path: execute(path, "UPDATE states SET dim = 0, rows = 1 << 40"), "no dimension"),
    "cut vectors": (
        lambda path: os.truncate(path / "vectors.f16", 99),
        r"vectors\.f16: 99 bytes, expected 2,752; build the index again",
    ),
    "no vectors": (lambda path: (path / "vectors.f16").unlink(), r"vectors\.f16: missing; build"),
    "NaN": (lambda path: overwrite(path / "vectors.f16", 70, b"\xff\x7f"), r"vectors\.f16: damaged"),
    "a file": (lambda path: path.rename(f"{path}.old") and path.touch(), r"not an index, but a file"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_index_is_named(made: Path, encoder: SentenceEncoder, name: str) -> None:
    damage, message = DAMAGE[name]
    damage(made)
    with pytest.raises(DataError, match=message) as caught:
        SearchIndex(made).search(encoder, ["Anna"], k=100)
    assert str(made) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["vectors.f16", "passages"])
def test_verify_and_adding_see_a_single_bit(made: Path, encoder: SentenceEncoder, name: str) -> None:
    SearchIndex(made).verify()
    file = database(made) if name == "passages" else made / name
    place = file.read_bytes().index(b"Anna sees") if name == "passages" else 40
    overwrite(file, place, bytes([file.read_bytes()[place] ^ 1]))
    damaged = contents(made)
    for work in (SearchIndex(made).verify, lambda: extend_index(made, ["Boris"], encoder)):
        with pytest.raises(DataError, match=r"damaged \(row \d+ of it or of vectors.f16 is not what it was\)"):
            work()
    assert contents(made) == damaged


def test_empty_lines_keep_their_numbers_and_neither_they_nor_empty_queries_find(
    made: Path, encoder: SentenceEncoder
) -> None:
    index = SearchIndex(made)
    (hits,) = index.search(encoder, ["Anna"], k=10**12)
    assert sorted(hit.line for hit in hits) == [line for line in range(1, 51) if line % 7]
    assert all(hit.text == LINES[hit.line - 1] for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(index) == 43
    assert [len(hits) for hits in index.search(encoder, ["", "Anna"], k=3)] == [0, 3]
    assert index.search(encoder, []) == []
    with pytest.raises(ValueError, match="k = 0"):
        index.search(encoder, ["Anna"], k=0)
    with pytest.raises(TypeError, match="not one str"):
        index.search(encoder, "Anna")
    with pytest.raises(ValueError, match="3 and of 32 dimensions"):
        index.nearest(np.ones((1, 3), np.float32))


def test_more_rows_than_are_read_at_once(path: Path) -> None:
    index, encoder = replayed(path, np.random.default_rng(0).normal(size=(4100, 4)))
    asked = ["0", "2047", "2048", "4099"]
    assert [hits[0].text for hits in index.search(encoder, asked, k=1)] == asked
