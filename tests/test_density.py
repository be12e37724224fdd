"""Density of sentences and the weights that follow from it."""

import numpy as np
import pytest

from xsent.documents.space import DIMENSIONS, Density, choose_bandwidth


def corpus(count: int = 60, dim: int = 20, seed: int = 0) -> np.ndarray:
    """Two thirds of the vectors close together, the rest far from everything."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, dim)).astype(np.float32)
    vectors[: 2 * count // 3] = vectors[0] + vectors[: 2 * count // 3] / 100
    return vectors


def test_densities_are_shares_within_the_ball() -> None:
    vectors = corpus()
    density = Density.fit(vectors)
    places = (vectors - density.center) @ density.axes.T
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert np.allclose(density.of(vectors), (distances <= density.bandwidth * (1 + 1e-4)).mean(axis=1))
    assert density.scale == pytest.approx(density.of(vectors).mean() / 2)


def test_weights_by_hand() -> None:
    center, axes, points = np.zeros(1), np.ones((1, 1)), np.array([[0], [0], [1], [9]])
    density = Density(*(array.astype(np.float32) for array in (center, axes, points)), bandwidth=1.0, scale=0.25)
    queries = np.array([[0], [2], [9], [50]], np.float32)
    assert density.of(queries).tolist() == [0.75, 0.25, 0.25, 0]
    assert density.weights(queries).tolist() == [0.25, 0.5, 0.5, 1]


def brute_bandwidths(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Candidates and their cross-validated log likelihoods, as a textbook computes them."""
    folds = np.arange(len(points)) % 5
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    others = folds[:, None] != folds[None]
    least = np.where(others, distances, np.inf).min(axis=1).max()
    candidates = np.geomspace(least, distances[others].max(), 20)
    near = [
        [(row[kept] <= h * (1 + 1e-6)).mean() for row, kept in zip(distances, others, strict=True)] for h in candidates
    ]
    return candidates, np.log(near / candidates[:, None] ** points.shape[1]).sum(axis=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dim", [1, 3])
def test_the_bandwidth_is_the_most_likely_one(seed: int, dim: int) -> None:
    points = np.random.default_rng(seed).normal(size=(53, dim)).astype(np.float32)
    candidates, likelihoods = brute_bandwidths(points.astype(np.float64))
    found = choose_bandwidth(points)
    place = np.abs(candidates - found).argmin()
    assert found == pytest.approx(candidates[place], rel=1e-6)
    assert likelihoods[place] == pytest.approx(likelihoods.max())


def test_no_held_out_point_is_left_without_likelihood() -> None:
    points = np.array([[0], [0.1], [0.2], [0.3], [0.4], [7]], np.float32)
    assert choose_bandwidth(points) >= 6.59  # the last one's nearest, 0.4, is in another fold


def test_the_axes_are_principal() -> None:
    vectors = corpus() + 5  # centring matters
    density = Density.fit(vectors)
    right = np.linalg.svd(vectors - vectors.mean(axis=0))[2][:DIMENSIONS]
    assert density.axes.shape == (DIMENSIONS, 20)
    assert np.allclose(density.axes.T @ density.axes, right.T @ right, atol=1e-2)
    assert Density.fit(corpus(dim=4)).axes.shape == (4, 4)


def test_common_sentences_weigh_less_than_rare_ones_whatever_the_company() -> None:
    vectors = corpus(count=1200)  # more than are compared at once
    density = Density.fit(vectors)
    weights = density.weights(vectors)
    assert weights[:800].mean() < weights[800:].mean() / 1.5
    assert (weights > 0).all() and (weights <= 1).all()
    assert np.array_equal(weights, np.concatenate([density.weights(row[None]) for row in vectors]))
    assert density.weights(vectors[:0]).shape == (0,)


def test_sentences_that_are_the_same_find_each_other_whatever_the_rounding() -> None:
    vectors = np.tile(np.random.default_rng(0).normal(size=30).astype(np.float32), (40, 1))
    assert np.allclose(Density.fit(vectors).weights(vectors), 1 / 3)  # b / (b + 2 b)
    twins = np.repeat(corpus(count=40)[30:], 10, axis=0)
    assert (Density.fit(twins).of(twins) >= 0.1).all()


def test_too_few_sentences() -> None:
    with pytest.raises(ValueError, match=r"16 sentences are too few .* at least 17"):
        Density.fit(corpus(count=16))
    Density.fit(corpus(count=17))
