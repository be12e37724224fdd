"""Margin scores, neighbours both ways, scores of given pairs, and thresholds."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.mining import margin as module
from xsent.mining.margin import (
    Margin,
    PairScorer,
    calibrate,
    margin_scores,
    nearest_both_ways,
    shuffled_pairs,
)
from xsent.similarity import NormalizedBlocks

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


def test_ties_go_to_the_lower_row_both_ways() -> None:
    same = NormalizedBlocks(np.ones((30, 2)))
    with mock.patch.multiple(module, QUERIES=4, CANDIDATES=7, STRIP=8):
        for found in nearest_both_ways(same, same, 3):
            assert found.indices.tolist() == [[0, 1, 2]] * 30


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_pairs_score_as_in_the_whole_matrix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, margin: Margin) -> None:
    monkeypatch.setattr("xsent.mining.margin._BLOCK", 3)
    random = np.random.default_rng(0)
    src, trg = random.normal(size=(12, 5)), random.normal(size=(9, 5))
    src[4] = 0
    np.save(tmp_path / "src.npy", src)
    scorer = PairScorer(np.load(tmp_path / "src.npy", mmap_mode="r"), trg, margin=margin, k=3)
    i, j = random.integers(0, 12, 20), random.integers(0, 9, 20)
    assert np.allclose(scorer.score(i, j), margin_scores(src, trg, margin=margin, k=3)[i, j], atol=1e-5)
    assert scorer.score(i[:0], j[:0]).shape == (0,)
    one = PairScorer([[1.0, 0.0]], [[3.0, 4.0]], margin="absolute")  # the cosine needs no neighbours
    assert one.score(np.array([0]), np.array([0])) == pytest.approx(0.6)


def test_a_threshold_by_hand() -> None:
    scores = [0.25, 1.0, 0.5, 0.125]
    wrong = np.concatenate([np.full(9, 0.5), np.full(40, 0.2), np.zeros(50)])
    # (49 + 1) · 4 / 100 = 2 wrong are expected among the 4 that reach 0.125, (9 + 1) · 4 / 100 = 0.4 among 3 at 0.25
    # and among 2 at 0.5, and at 1.0, which no wrong pair reaches, (0 + 1) · 4 / 100 against 1.
    for precision, threshold, accepted, estimate in [
        (0.5, 0.125, 4, 0.5),
        (0.7, 0.25, 3, 1 - 0.4 / 3),
        (0.9, 1.0, 1, 0.96),
    ]:
        found = calibrate(scores, wrong, precision)
        assert (found.threshold, found.accepted, found.pairs) == (threshold, accepted, 4)
        assert found.precision == pytest.approx(estimate)


def test_the_precision_is_kept_where_wrong_pairs_are_like_the_shuffled() -> None:
    random = np.random.default_rng(0)
    right, wrong = (random.normal(mean, 1, count).astype(np.float32) for mean, count in ((3, 2000), (0, 1000)))
    found = calibrate(np.concatenate([right, wrong]), random.normal(0, 1, 30_000), 0.95)
    accepted = [int((side >= found.threshold).sum()) for side in (right, wrong)]
    assert sum(accepted) == found.accepted
    assert accepted[0] / sum(accepted) >= 0.95 and accepted[0] > 1000


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_no_shuffled_pair_is_a_given_one(pairs: list[tuple[int, int]]) -> None:
    src, trg = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    left, right = shuffled_pairs(src, trg)
    shuffled = set(zip(left.tolist(), right.tolist(), strict=True))
    assert not shuffled & set(pairs)
    assert shuffled == {(i, j) for i in src for j in trg} - set(pairs)  # few pairs: all there are
    rows = np.arange(1000)
    left, right = shuffled_pairs(rows, rows)
    assert len(left) == 100_000 and (left != right).all()


@pytest.mark.parametrize(
    ("scores", "wrong", "precision", "message"),
    [
        ([0.9, 0.5, 0.3, 0.1], [0.0] * 9, 0.99, r"no threshold .* 0\.99; 0\.100000 .* 0\.9000 with 4 of 4 pairs"),
        *(([1.0], [0.0], share, f"precision = {share} must be between 0 and 1") for share in (0.0, 1.0, 95.0)),
        ([], [0.0], 0.5, "there are none"),
        ([1.0], [], 0.5, "there are none"),
    ],
)
def test_no_threshold(scores: list[float], wrong: list[float], precision: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate(scores, wrong, precision)
