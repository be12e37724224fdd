"""Bitext mining, against the method written down plainly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.mining import margin as module
from xsent.mining.bitext import Bitext, Retrieval, mine_bitext
from xsent.mining.margin import Margin, margin_scores
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
    found = mine_bitext(src, trg, margin=margin, retrieval=retrieval, k=k)
    expected = plainly(src, trg, margin, retrieval, k)
    assert set(listed(found)) == set(expected)
    assert (np.diff(found.scores) <= 0).all()
    assert np.allclose(found.scores, [expected[pair] for pair in listed(found)], atol=1e-5)


def test_translations_are_found() -> None:
    src, trg = corpus(200, 150)
    order = np.random.default_rng(1).permutation(150)
    found = mine_bitext(src, trg[order], threshold=1.2)
    assert len(found) > 80
    right = [i == order[j] for i, j in listed(found)]
    assert np.mean(right) > 0.9


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    src, trg = corpus(100, 90)
    whole = mine_bitext(src, trg)
    monkeypatch.setattr(module, "QUERIES", 7)
    monkeypatch.setattr(module, "CANDIDATES", 11)
    monkeypatch.setattr(module, "_STRIP", 21)
    monkeypatch.setattr("xsent.mining.bitext._BLOCK", 13)
    parts = mine_bitext(src, trg)
    assert listed(parts) == listed(whole)
    assert np.allclose(parts.scores, whole.scores, atol=1e-6)


def test_a_threshold_keeps_what_reaches_it() -> None:
    src, trg = corpus(20, 20)
    found = mine_bitext(src, trg)
    kept = mine_bitext(src, trg, threshold=float(found.scores[7]))
    assert listed(kept) == listed(found)[:8]
    assert len(mine_bitext(src, trg, threshold=1e9)) == 0


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


def test_chosen_rows_keep_their_numbers() -> None:
    src, trg = corpus(20, 20)
    src_rows, trg_rows = np.arange(0, 20, 2), np.arange(5, 20)
    found = mine_bitext(src, trg, src_rows=src_rows, trg_rows=trg_rows)
    alone = mine_bitext(src[src_rows], trg[trg_rows])
    assert listed(found) == [(src_rows[i], trg_rows[j]) for i, j in listed(alone)]


def test_repeated_sentences_spoil_the_margin_unless_one_stands_for_all() -> None:
    src, trg = corpus(30, 30)
    repeated = np.concatenate([trg, *[trg[:1]] * 4])
    spoilt = mine_bitext(src, repeated, retrieval="fwd")
    clean = mine_bitext(src, repeated, retrieval="fwd", trg_rows=np.arange(30))
    score = {
        name: dict(zip(found.src.tolist(), found.scores, strict=True))[0]
        for name, found in (("spoilt", spoilt), ("clean", clean))
    }
    assert score["spoilt"] < score["clean"] - 0.2
    assert listed(clean) == listed(mine_bitext(src, trg, retrieval="fwd"))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_files_give_what_memory_gives(tmp_path: Path, precision: str) -> None:
    src, trg = (np.asarray(20 * side).astype(precision) for side in corpus(50, 40))
    np.save(tmp_path / "src.npy", src)
    np.save(tmp_path / "trg.npy", trg)
    mapped = mine_bitext(*(np.load(tmp_path / f"{side}.npy", mmap_mode="r") for side in ("src", "trg")))
    found = mine_bitext(src, trg)
    assert listed(mapped) == listed(found)
    assert np.array_equal(mapped.scores, found.scores)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retrieval": "best"}, "retrieval = 'best' must be one of max, fwd, bwd, intersect"),
        ({"margin": "best"}, "margin = 'best'"),
        ({"k": 6}, "k = 6 neighbours, but one side has only 5"),
        ({"src_rows": []}, "no sentences"),
        ({"k": 0}, "at least 1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mine_bitext(*corpus(5, 9), **arguments)


def test_dimensions_must_agree() -> None:
    with pytest.raises(ValueError, match="16 and of 5 dimensions"):
        mine_bitext(np.ones((9, 16)), np.ones((9, 5)))


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    mine_bitext(*corpus(9, 9), show_progress_bar=True)
    assert "1 of 1 blocks" in capsys.readouterr().err
