"""Cosine and exact neighbours."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from xsent.similarity import CANDIDATES, NearestSearch, NormalizedBlocks, cosine_similarity, nearest


@settings(max_examples=50, deadline=None)
@given(
    queries=st.integers(1, 5),
    count=st.integers(1, 40),
    k=st.integers(1, 50),
    block=st.integers(1, 50),
    seed=st.integers(0),
)
def test_blocks_change_nothing(queries: int, count: int, k: int, block: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    asked = random.integers(-2, 3, (queries, 3))  # small whole numbers: many ties
    candidates = random.integers(-2, 3, (count, 3))
    indices, scores = nearest(asked, candidates, k, block=block)
    cosines = cosine_similarity(asked, candidates)
    assert indices.shape == scores.shape == (queries, min(k, count))
    assert np.allclose(scores, -np.sort(-cosines, axis=1)[:, :k], atol=1e-6)
    assert np.allclose(np.take_along_axis(cosines, indices, axis=1), scores, atol=1e-6)
    assert all(len(set(row)) == len(row) for row in indices.tolist())


def test_candidates_may_come_in_pieces_of_any_size() -> None:
    candidates = np.random.default_rng(0).normal(size=(2 * CANDIDATES + 10, 2))
    search = NearestSearch(candidates[[0, CANDIDATES, -1]], k=2)
    assert search.indices.shape == search.scores.shape == (3, 0)
    search.add(candidates[:1])
    assert search.indices.tolist() == [[0], [0], [0]]
    search.add(candidates[1:])
    assert search.indices[:, 0].tolist() == [0, CANDIDATES, len(candidates) - 1]
    assert np.array_equal(search.indices, nearest(candidates[[0, CANDIDATES, -1]], candidates, k=2)[0])


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_files_are_read_in_blocks(tmp_path: Path, precision: str) -> None:
    vectors = (20 * np.random.default_rng(0).normal(size=(50, 4))).astype(precision)
    np.save(tmp_path / "a.npy", vectors)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    rows = NormalizedBlocks(mapped)
    assert (len(rows), rows.dim) == (50, 4)
    unit = np.concatenate([rows.block(start, 20) for start in range(0, 60, 20)])
    wide = vectors.astype(np.float32)
    assert np.allclose(unit, wide / np.linalg.norm(wide, axis=1, keepdims=True), atol=1e-6)
    assert np.array_equal(NormalizedBlocks(mapped, np.array([7, 3, 9])).block(1, 5), unit[[3, 9]])
    assert np.array_equal(nearest(mapped, mapped)[0][:, 0], np.arange(50))


def test_what_was_written_to_a_private_map_is_kept(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2), np.float32))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="c")
    mapped[1] = [0, 5]
    rows = NormalizedBlocks(mapped)
    assert rows.block(1, 1).tolist() == rows.block(1, 1).tolist() == [[0, 1]]


def test_cosines_by_hand() -> None:
    vectors = np.array([[1, 0], [3, 4], [0, 0]], np.float32)
    cosines = cosine_similarity(vectors, [[2, 0], [0, -5]])
    assert np.allclose(cosines, np.array([[1, 0], [0.6, -0.8], [0, 0]])) and cosines.dtype == np.float32
    assert vectors.tolist() == [[1, 0], [3, 4], [0, 0]]  # as they were
    assert cosine_similarity([3.0, 4.0], [3.0, 4.0]).shape == (1, 1)
    half = np.full((1, 4), 300, np.float16)  # their squares overflow float16
    assert cosine_similarity(half, half)[0, 0] == pytest.approx(1)


def test_nearest_by_hand() -> None:
    indices, scores = nearest([[1, 0], [0, 2]], [[0, 1], [1, 1], [5, 0]], k=2)
    assert indices.tolist() == [[2, 1], [0, 1]]
    assert np.allclose(scores, [[1, 0.5**0.5], [1, 0.5**0.5]])
    for block in (1, 2, 3, 100):  # of equal cosines the lower index
        indices, _ = nearest([[1, 0]], [[0, 1], [1, 0], [2, 0], [0, 3], [3, 0]], k=4, block=block)
        assert indices.tolist() == [[1, 2, 4, 0]]
    assert nearest(np.zeros((0, 3)), np.zeros((2, 3)))[0].shape[0] == 0
    assert nearest(np.zeros((2, 3)), np.zeros((0, 3)))[0].shape == (2, 0)
    queries = np.random.default_rng(0).normal(size=(2100, 4))  # more than are scored at once
    assert (nearest(queries, queries, block=700)[0][:, 0] == np.arange(2100)).all()


BITS = np.packbits(np.eye(8, dtype=bool), axis=1)


@pytest.mark.parametrize(
    ("a", "b", "arguments", "error", "message"),
    [
        ("a", "b", {}, TypeError, "encode texts first"),
        (BITS, BITS, {}, TypeError, r"packed bits; compare binary vectors with SentenceEncoder.similarity"),
        ([[1, 0]], [[1, 0, 0]], {}, ValueError, "2 and of 3 dimensions"),
        (np.zeros((1, 1, 1)), [[1, 0]], {}, ValueError, "shape"),
        ([[1.0, np.nan]], [[1.0, 2.0]], {}, ValueError, "not finite"),
        ([[1.0]], [[1.0]], {"k": 0}, ValueError, "at least 1"),
        ([[1.0]], [[1.0]], {"block": 0}, ValueError, "at least 1"),
    ],
)
def test_what_cannot_be_compared(
    a: ArrayLike, b: ArrayLike, arguments: dict[str, int], error: type[Exception], message: str
) -> None:
    for compare in (nearest,) if arguments else (cosine_similarity, nearest):
        with pytest.raises(error, match=message):
            compare(a, b, **arguments)  # type: ignore[operator]
