"""The language subspace: what is removed, and how much."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xsent.documents.space import SAMPLE, Moments, choose_rank, remove_directions, survey


def language_pair(count: int, shift: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Parallel vectors [count, 8]: the same meaning, each language moved along an axis of its own."""
    meaning = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    meaning[:, :2] = 0
    noise = np.random.default_rng(seed + 1).normal(size=(2, count, 8)).astype(np.float32) / 10
    axes = np.eye(8, dtype=np.float32)[:2]
    return meaning + noise[0] + shift * axes[0], meaning + noise[1] + shift * axes[1]


@settings(max_examples=30, deadline=None)
@given(count=st.integers(5, 40), rank=st.integers(1, 4), seed=st.integers(0, 1000))
def test_directions_are_the_right_singular_vectors(count: int, rank: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32) * [9, 7, 5, 3, 1]
    found = Moments.of(vectors.astype(np.float32)).directions(rank)
    right = np.linalg.svd(vectors.astype(np.float32))[2][:rank]
    assert np.allclose(found @ found.T, np.eye(rank), atol=1e-5)
    projector = right.T @ right  # signs, and turns among equal values, mean nothing
    values = np.linalg.svd(vectors, compute_uv=False)
    if values[rank - 1] - values[min(rank, len(values) - 1)] > 0.1:
        assert np.allclose(found.T @ found, projector, atol=1e-2)


def test_languages_that_cannot_be_hidden_are_an_error() -> None:
    # Every sentence of a language has its sign in a number that is among its smallest: not one of the first half.
    vectors = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32) * 10
    first, second = vectors[:200].copy(), vectors[200:].copy()
    first[:, 5], second[:, 5] = 1, -1
    with pytest.raises(ValueError, match=r"still show after removing 3 directions: .* wants under 55.0 %"):
        choose_rank([Moments.of(first[:150]), Moments.of(second[:150])], [first[150:], second[150:]])


def test_a_survey_is_one_pass() -> None:
    vectors = np.random.default_rng(0).normal(size=(2500, 3)).astype(np.float32)
    held_out = np.arange(2500) % 5 == 4
    found = survey(iter(vectors), held_out, 3)
    assert np.array_equal(found.sample, np.concatenate([vectors[~held_out], vectors[held_out]]))
    assert np.array_equal(found.held_out_sample, vectors[held_out])
    assert np.allclose((found.train + found.held_out).directions(1), Moments.of(vectors).directions(1), atol=1e-5)
    count = SAMPLE + 500  # of more only a sample is kept
    found = survey((np.full(1, number, np.float32) for number in range(count)), np.arange(count) % 5 == 4, 1)
    assert found.train.count + found.held_out.count == count
    assert len(found.sample) == len(np.unique(found.sample)) == SAMPLE


def test_directions_by_hand() -> None:
    found = Moments.of(np.array([[-3, -3, 0], [-3, -3, 0], [0, 0, 1]])).directions(2)
    assert np.allclose(found, [[0.5**0.5, 0.5**0.5, 0], [0, 0, 1]], atol=1e-6)
    centred = Moments.of(np.array([[10, 1], [10, -1]])).directions(1)  # were it so, the second axis would be dominant
    assert np.allclose(centred, [[1, 0]], atol=1e-6)


def test_what_was_removed_is_gone_and_the_rest_stays() -> None:
    clean = remove_directions(np.array([[3, 4, 5]], np.float32), np.array([[0, 1, 0]], np.float32))
    assert (clean.tolist(), clean.dtype) == ([[3, 0, 5]], np.float32)
    vectors = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    directions = (Moments.of(vectors[:2]) + Moments.of(vectors[2:])).directions(3)
    assert np.allclose(directions, Moments.of(vectors).directions(3), atol=1e-5)
    clean = remove_directions(vectors, directions)
    assert np.allclose(clean @ directions.T, 0, atol=1e-5)
    assert np.allclose(remove_directions(clean, directions), clean, atol=1e-5)
    assert np.array_equal(remove_directions(vectors, directions[:0]), vectors)


def chosen(shift: float, rows: int = 600, held_out: int = 600) -> tuple[int, tuple[float, ...]]:
    """The rank for two languages, of the second of which only some rows are there."""
    first, second = language_pair(800, shift)
    choice = choose_rank([Moments.of(first[:600]), Moments.of(second[:rows])], [first[600:], second[held_out:]])
    return choice.rank, choice.accuracies


def test_the_rule_takes_the_first_rank_that_hides_the_languages() -> None:
    rank, accuracies = chosen(3.0)
    assert (rank, accuracies[0]) == (1, 1)  # each language is one direction away
    assert accuracies[1] < 0.55 <= min(accuracies[:1])
    rank, accuracies = chosen(0.0)
    assert (rank, len(accuracies)) == (0, 1)  # nothing shows, so nothing is removed
    # However much text each has: the share of the larger language would be 0.95.
    assert chosen(0.0, rows=60, held_out=790)[1][0] < 0.7
    one = np.ones((4, 2), np.float32)
    assert choose_rank([Moments.of(one)], [one]).rank == 0  # nothing to hide from
