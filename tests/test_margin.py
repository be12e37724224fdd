"""Margin scores and neighbours both ways."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.mining import margin as module
from xsent.mining.margin import Margin, count_blocks, margin_scores, nearest_both_ways
from xsent.similarity import UnitRows, cosine_similarity

# Directions in the plane, in degrees: cosines by hand.
A = (0.0, 60.0)
B = (0.0, 60.0, 90.0)
COSINES = np.array([[1, 0.5, 0], [0.5, 1, 3**0.5 / 2]])


def plane(degrees: tuple[float, ...]) -> NDArray[np.float64]:
    """Vectors of length 1, 2, 3 …: length must not matter."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.arange(1, len(degrees) + 1)[:, None]


def test_margins_by_hand() -> None:
    # With k = 2 the means of A are over its two best of B, those of B over both of A.
    a_means = np.array([[(1 + 0.5) / 2], [(1 + 3**0.5 / 2) / 2]])
    b_means = np.array([(1 + 0.5) / 2, (0.5 + 1) / 2, 3**0.5 / 4])
    means = (a_means + b_means) / 2
    for margin, expected in (("absolute", COSINES), ("distance", COSINES - means), ("ratio", COSINES / means)):
        scores = margin_scores(plane(A), plane(B), margin=margin, k=2)  # type: ignore[arg-type]
        assert scores.dtype == np.float32
        assert np.allclose(scores, expected, atol=1e-6), margin
    assert np.allclose(margin_scores(plane(A), plane(B), k=1)[0, 0], 1)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 40), m=st.integers(1, 40), k=st.integers(1, 6), sizes=st.tuples(*[st.integers(1, 15)] * 3))
def test_both_ways_agree_with_brute_force(n: int, m: int, k: int, sizes: tuple[int, int, int]) -> None:
    random = np.random.default_rng((n, m, k))
    k = min(k, n, m)
    a, b = (random.integers(-2, 3, (count, 3)) for count in (n, m))  # small whole numbers: many ties and zeros
    queries, candidates, strip = sizes
    with mock.patch.multiple(module, QUERIES=queries, CANDIDATES=candidates, _STRIP=strip * queries):
        calls: list[None] = []
        forward, backward = nearest_both_ways(UnitRows(a), UnitRows(b), k, advance=lambda: calls.append(None))
        assert len(calls) == count_blocks(UnitRows(a), UnitRows(b))
    cosines = cosine_similarity(a, b)
    for found, matrix in ((forward, cosines), (backward, cosines.T)):
        assert found.indices.shape == (len(matrix), k)
        assert np.allclose(found.cosines, -np.sort(-matrix, axis=1)[:, :k], atol=1e-6)
        assert np.allclose(np.take_along_axis(matrix, found.indices, axis=1), found.cosines, atol=1e-6)
        assert all(len(set(row)) == k for row in found.indices.tolist())


def test_ties_go_to_the_lower_row_both_ways() -> None:
    same = UnitRows(np.ones((30, 2)))
    with mock.patch.multiple(module, QUERIES=4, CANDIDATES=7, _STRIP=8):
        for found in nearest_both_ways(same, same, 3):
            assert found.indices.tolist() == [[0, 1, 2]] * 30


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_files_give_what_memory_gives(tmp_path: Path, precision: str, margin: Margin) -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(precision)
    np.save(tmp_path / "a.npy", vectors)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert np.array_equal(margin_scores(mapped, mapped, margin=margin), margin_scores(vectors, vectors, margin=margin))


def test_special_sides() -> None:
    unlike = margin_scores([[1.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [0.0, 0.0]], k=2)
    assert unlike.tolist() == [[0, 0], [0, 0]]
    vectors = np.random.default_rng(0).normal(size=(20, 8))
    scores = margin_scores(vectors, vectors, k=3)
    assert np.allclose(scores, scores.T, atol=1e-5)
    assert (scores.argmax(axis=1) == np.arange(20)).all()
    assert np.allclose(margin_scores(plane(A), plane(B), margin="absolute", k=3), COSINES, atol=1e-6)


@pytest.mark.parametrize(
    ("b", "arguments", "message"),
    [
        (plane(B), {"margin": "cosine"}, "margin = 'cosine' must be one of ratio, distance, absolute"),
        (plane(B), {"k": 0}, "k = 0 must be at least 1"),
        (plane(B), {"k": 3}, r"k = 3 neighbours, but one side has only 2 .* smaller k"),
        (np.zeros((0, 2)), {}, "no sentences"),
        (np.ones((5, 3)), {}, "2 and of 3 dimensions"),
    ],
)
def test_wrong_arguments(b: NDArray[Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        margin_scores(plane(A), b, **arguments)
