"""Bitext mining and documents aligned, against the methods written down plainly."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.mining import margin as module
from xsent.mining.bitext import Bitext, DocumentPair, Retrieval, align_documents, mine_bitext, recall
from xsent.mining.margin import Margin, PairScorer, margin_scores
from xsent.similarity import cosine_similarity

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


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 30),
    m=st.integers(1, 30),
    k=st.integers(1, 5),
    margin=st.sampled_from(["ratio", "distance", "absolute"]),
    retrieval=st.sampled_from(["fwd", "bwd", "max", "intersect"]),
)
def test_every_way_agrees_with_the_method_written_plainly(
    n: int, m: int, k: int, margin: Margin, retrieval: Retrieval
) -> None:
    k = min(k, n, m)
    src, trg = corpus(n, m, seed=100 * n + m)
    small = mock.patch.multiple(module, QUERIES=7, CANDIDATES=11, STRIP=21)
    with small, mock.patch("xsent.mining.bitext._BLOCK", 13):
        found = mine_bitext(src, trg, margin=margin, retrieval=retrieval, k=k)
    expected = plainly(src, trg, margin, retrieval, k)
    assert set(listed(found)) == set(expected)
    assert (np.diff(found.scores) <= 0).all()
    assert np.allclose(found.scores, [expected[pair] for pair in listed(found)], atol=1e-5)


@pytest.mark.parametrize("retrieval", ["fwd", "bwd"])
def test_one_to_one_uses_no_sentence_twice(retrieval: Retrieval) -> None:
    src, trg = corpus(40, 15) if retrieval == "fwd" else corpus(15, 40)
    often = mine_bitext(src, trg, retrieval=retrieval)
    once = mine_bitext(src, trg, retrieval=retrieval, one_to_one=True)
    assert len(often) == 40
    assert len(set(once.src)) == len(set(once.trg)) == len(once)
    assert set(listed(once)) < set(listed(often))
    assert listed(once)[0] == listed(often)[0]


@pytest.mark.parametrize("retrieval", ["fwd", "bwd", "max", "intersect"])
def test_empty_sentences_take_no_part(retrieval: Retrieval) -> None:
    src, trg = corpus(20, 20)
    src[[3, 19]] = 0
    trg[[0, 4]] = 0
    found = mine_bitext(src, trg, retrieval=retrieval)
    assert not {3, 19} & set(found.src.tolist())
    assert not {0, 4} & set(found.trg.tolist())
    without = mine_bitext(np.delete(src, [3, 19], axis=0), np.delete(trg, [0, 4], axis=0), retrieval=retrieval)
    assert np.array_equal(found.scores, without.scores)
    src_rows, trg_rows = np.arange(0, 18, 2), np.arange(5, 20)  # those that are chosen keep their numbers
    found = mine_bitext(src, trg, retrieval=retrieval, src_rows=src_rows, trg_rows=trg_rows)
    alone = mine_bitext(src[src_rows], trg[trg_rows], retrieval=retrieval)
    assert listed(found) == [(src_rows[i], trg_rows[j]) for i, j in listed(alone)]


def test_translations_are_found_and_a_threshold_keeps_what_reaches_it(capsys: pytest.CaptureFixture[str]) -> None:
    src, trg = corpus(200, 150)
    order = np.random.default_rng(1).permutation(150)
    found = mine_bitext(src, trg[order], threshold=1.2, show_progress_bar=True)
    assert "1 of 1 blocks" in capsys.readouterr().err
    assert len(found) > 80
    assert np.mean([i == order[j] for i, j in listed(found)]) > 0.9
    kept = mine_bitext(src, trg[order], threshold=float(found.scores[7]))
    assert listed(kept) == listed(found)[:8]
    assert len(mine_bitext(src, trg, threshold=1e9)) == 0


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
    with pytest.raises(ValueError, match=message):
        find(*sides, **arguments)


@pytest.mark.parametrize(
    ("a", "b", "margin", "expected"),
    [
        # The best of the second is taken: it gets the next.
        ([[1, 0, 0], [0.9, 0.3, 0]], [[1, 0, 0], [0, 1, 0.5]], "absolute", [(0, 0), (1, 1)]),
        # Empty documents take no part.
        ([[0, 0], [0, 1.0], [1, 0]], [[1.0, 0], [0, 0], [0, 1]], "ratio", [(1, 2), (2, 0)]),
    ],
)
def test_alignment_by_hand(a: list[list[float]], b: list[list[float]], margin: Margin, expected: list[Pair]) -> None:
    pairs = align_documents(a, b, margin=margin, k=2)
    assert [(pair.a, pair.b) for pair in pairs] == expected
    assert pairs[0].score >= 0.99
    with pytest.raises(ValueError, match="k = 4 neighbours, but one side has only 2 documents that are not empty"):
        align_documents(a, b)
    assert len(align_documents(a, b, margin="absolute")) == 2


def test_recall_by_hand() -> None:
    pairs = [DocumentPair(0, 0, 1.0), DocumentPair(1, 2, 0.9), DocumentPair(2, 1, 0.8)]
    assert recall(pairs, {(0, 0), (1, 1), (2, 2), (2, 1)}) == 50
    with pytest.raises(ValueError, match="no true pair"):
        recall(pairs, set())
