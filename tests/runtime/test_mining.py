"""Margins, thresholds, bitext mining and documents aligned, against the methods written down plainly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import numpy as np
import pytest
from commands import raises
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.mining import margin as module
from xsent.mining.bitext import Bitext, Retrieval, align_documents, mine_bitext
from xsent.mining.margin import Margin, PairScorer, calibrate, margin_scores, nearest_both_ways, shuffled_pairs
from xsent.similarity import NormalizedBlocks, cosine_similarity

# Directions in the plane, in degrees: cosines by hand.
A = (0.0, 60.0)
B = (0.0, 60.0, 90.0)
COSINES = np.array([[1, 0.5, 0], [0.5, 1, 3**0.5 / 2]])


def plane(degrees: tuple[float, ...]) -> NDArray[np.float64]:
    """Vectors of length 1, 2, 3 …: length must not matter."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.arange(1, len(degrees) + 1)[:, None]


def test_margins_and_ties_by_hand() -> None:
    # With k = 2 the means of A are over its two best of B, those of B over both of A.
    a_means = np.array([[(1 + 0.5) / 2], [(1 + 3**0.5 / 2) / 2]])
    b_means = np.array([(1 + 0.5) / 2, (0.5 + 1) / 2, 3**0.5 / 4])
    means = (a_means + b_means) / 2
    for margin, expected in (("absolute", COSINES), ("distance", COSINES - means), ("ratio", COSINES / means)):
        scores = margin_scores(plane(A), plane(B), margin=margin, k=2)  # type: ignore[arg-type]
        assert scores.dtype == np.float32
        assert np.allclose(scores, expected, atol=1e-6), margin
    assert np.allclose(margin_scores(plane(A), plane(B), k=1)[0, 0], 1)
    same = NormalizedBlocks(np.ones((30, 2)))
    with mock.patch.multiple(module, QUERIES=4, CANDIDATES=7, STRIP=8):
        for found in nearest_both_ways(same, same, 3):
            assert found.indices.tolist() == [[0, 1, 2]] * 30


def test_in_a_short_text_a_little_nearer_than_the_rest_is_no_translation() -> None:
    src, trg = np.eye(8)[:4], np.eye(8)[:4]
    trg[3] = 0.4 * src[3] + 0.84**0.5 * np.eye(8)[7]  # its cosine to all others is 0, so all means are 0.25 or 0.1
    for least, expected in ((-1.0, [4.0, 4.0, 4.0, 4.0]), (0.4, [2.5, 2.5, 2.5, 1.0])):
        assert np.allclose(mine_bitext(src, trg, least_mean=least).scores, expected)
    assert len(mine_bitext(src, trg, threshold=1.1)) == 3


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


def test_rounding_makes_no_cosine_larger_than_1() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 384)).astype(np.float32)
    every = np.arange(200)
    assert PairScorer(rows, rows, margin="absolute").score(every, every).max() <= 1
    assert mine_bitext(rows, rows, margin="absolute").scores.max() <= 1


def test_a_threshold_by_hand_and_wrong_pairs() -> None:
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
    left, other = shuffled_pairs(np.arange(1000), np.arange(1000))
    assert len(left) == 100_000 and (left != other).all()


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_no_shuffled_pair_is_a_given_one(pairs: list[tuple[int, int]]) -> None:
    src, trg = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    left, right = shuffled_pairs(src, trg)
    shuffled = set(zip(left.tolist(), right.tolist(), strict=True))
    assert not shuffled & set(pairs)
    assert shuffled == {(i, j) for i in src for j in trg} - set(pairs)  # few pairs: all there are


def test_no_threshold() -> None:
    for scores, wrong, precision, message in [
        ([0.9, 0.5, 0.3, 0.1], [0.0] * 9, 0.99, r"no threshold .* 0\.99; 0\.100000 .* 0\.9000 with 4 of 4 pairs"),
        *(([1.0], [0.0], share, f"precision = {share} must be between 0 and 1") for share in (0.0, 1.0, 95.0)),
        ([], [0.0], 0.5, "there are none"),
        ([1.0], [], 0.5, "there are none"),
    ]:
        raises(ValueError, message, calibrate, scores, wrong, precision)


Pair = tuple[int, int]


def corpus(n: int, m: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The first min(n, m) rows of both sides are translations, more or less; the rest has none."""
    random = np.random.default_rng(seed)
    src, trg = (random.normal(size=(count, 16)).astype(np.float32) for count in (n, m))
    pairs = min(n, m)
    trg[:pairs] = src[:pairs] + 0.4 * random.normal(size=(pairs, 16))
    return src, trg


def listed(found: Bitext) -> list[Pair]:
    return list(zip(found.src.tolist(), found.trg.tolist(), strict=True))


def plainly(
    src: NDArray[np.float32], trg: NDArray[np.float32], margin: Margin, retrieval: Retrieval, k: int
) -> dict[Pair, float]:
    """The pairs by loops over a whole matrix."""
    cosines, scores = cosine_similarity(src, trg), margin_scores(src, trg, margin=margin, k=k)
    n, m = scores.shape
    fwd = {(i, max(np.argsort(-cosines[i])[:k], key=lambda j, i=i: float(scores[i, j]))) for i in range(n)}
    bwd = {(max(np.argsort(-cosines[:, j])[:k], key=lambda i, j=j: float(scores[i, j])), j) for j in range(m)}
    pairs = {"fwd": fwd, "bwd": bwd, "intersect": fwd & bwd, "max": fwd | bwd}[retrieval]
    ordered = sorted(((int(i), int(j)) for i, j in pairs), key=lambda pair: -scores[pair])
    kept: dict[Pair, float] = {}
    for i, j in ordered:
        if retrieval != "max" or not any(i == pair[0] or j == pair[1] for pair in kept):
            kept[i, j] = float(scores[i, j])
    return kept


SIZES = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 5))


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, margin=st.sampled_from(get_args(Margin)), retrieval=st.sampled_from(get_args(Retrieval)))
def test_every_way_agrees_with_the_method(sizes: tuple[int, ...], margin: Margin, retrieval: Retrieval) -> None:
    n, m, k = *sizes[:2], min(sizes)
    src, trg = corpus(n + 2, m + 2, seed=100 * n + m)
    src_rows, trg_rows = np.arange(1, n + 2), np.delete(np.arange(m + 2), 1)  # those that are chosen keep their numbers
    src[1] = trg[0] = 0  # empty sentences take no part
    small = mock.patch.multiple(module, QUERIES=7, CANDIDATES=11, STRIP=21)
    with small, mock.patch("xsent.mining.bitext._BLOCK", 13):
        found = mine_bitext(src, trg, margin=margin, retrieval=retrieval, k=k, src_rows=src_rows, trg_rows=trg_rows)
    plain = plainly(src[src_rows[1:]], trg[trg_rows[1:]], margin, retrieval, k)
    expected = {(src_rows[1 + i], trg_rows[1 + j]): score for (i, j), score in plain.items()}
    assert set(listed(found)) == set(expected)
    assert (np.diff(found.scores) <= 0).all()
    assert np.allclose(found.scores, [expected[pair] for pair in listed(found)], atol=1e-5)


@pytest.mark.parametrize(("retrieval", "sizes"), [("fwd", (40, 15)), ("bwd", (15, 40))])
def test_max_uses_no_sentence_twice(
    retrieval: Retrieval, sizes: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    src, trg = corpus(*sizes)
    often = mine_bitext(src, trg, retrieval=retrieval)
    once = mine_bitext(src, trg, retrieval="max", show_progress_bar=True)
    assert "1 of 1 blocks" in capsys.readouterr().err
    assert len(often) == 40 and listed(once)[0] == listed(often)[0]
    assert len(set(once.src)) == len(set(once.trg)) == len(once)
    assert listed(mine_bitext(src, trg, retrieval=retrieval, threshold=float(often.scores[7]))) == listed(often)[:8]


@pytest.mark.parametrize("find", [mine_bitext, align_documents, margin_scores, PairScorer])
@pytest.mark.parametrize(
    ("sides", "arguments", "message"),
    [
        (corpus(5, 9), {"margin": "best"}, "margin = 'best' must be one of ratio, distance, absolute"),
        (corpus(5, 9), {"k": 6}, "k = 6 neighbours, but one side has only 5 .* choose a smaller k"),
        (corpus(5, 9), {"k": 0}, "k = 0 must be at least 1"),
        ((np.zeros((0, 2)), np.eye(2)), {}, "one side has no sentences"),
        ((np.ones((9, 16)), np.ones((9, 5))), {}, "16 and of 5 dimensions"),
    ],
)
def test_wrong_arguments(
    find: Callable[..., object], sides: tuple[Any, Any], arguments: dict[str, Any], message: str
) -> None:
    raises(ValueError, message, find, *sides, **arguments)


def test_alignment_by_hand() -> None:
    # The best of the second is taken: it gets the next.
    pairs = align_documents([[1, 0, 0], [0.9, 0.3, 0]], [[1, 0, 0], [0, 1, 0.5]], margin="absolute", k=2)
    assert [(pair.a, pair.b) for pair in pairs] == [(0, 0), (1, 1)]
    a, b = [[0, 0], [0, 1.0], [1, 0]], [[1.0, 0], [0, 0], [0, 1]]  # empty documents take no part
    pairs = align_documents(a, b, k=2)
    assert [(pair.a, pair.b) for pair in pairs] == [(1, 2), (2, 0)] and pairs[0].score >= 0.99
    raises(ValueError, "k = 4 neighbours, but one side has only 2 non-empty documents", align_documents, a, b)
    assert len(align_documents(a, b, margin="absolute")) == 2
