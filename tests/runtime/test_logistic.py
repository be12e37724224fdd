"""Multinomial logistic regression, beside scikit-learn's and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.classification import logistic
from xsent.classification.logistic import (
    Logistic,
    cross_validate,
    fit_logistic,
    fit_temperature,
    log_softmax,
    stratified_folds,
)

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def clouds(count: int = 150, noise: float = 2.0) -> Data:
    """Noisy points around one centre for each of three labels, which are not equally frequent."""
    random = np.random.default_rng(5)
    classes = np.minimum(random.integers(0, 4, count), 2)
    return random.normal(size=(3, 8))[classes] + noise * random.normal(size=(count, 8)), classes


def loss(model: Logistic, data: Data, l2: float, weights: NDArray[np.float64]) -> float:
    features, classes = data
    gold = log_softmax(model.scores(features))[np.arange(len(classes)), classes]
    return float(-weights @ gold / len(classes) + l2 / 2 * (model.weight**2).sum())


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("l2", [1.0, 0.03, 0.001])
def test_the_optimum_is_that_of_scikit_learn(l2: float, balanced: bool) -> None:
    features, classes = data = clouds()
    n = len(classes)
    weights = n / (3 * np.bincount(classes)[classes]) if balanced else np.ones(n)
    sklearn = pytest.importorskip("sklearn.linear_model")
    theirs = sklearn.LogisticRegression(C=1 / (l2 * n), tol=1e-8, max_iter=5000)
    theirs.fit(features, classes, sample_weight=weights)
    reference = loss(Logistic(theirs.coef_, theirs.intercept_), data, l2, weights)
    ours = fit_logistic(features, classes, l2=l2, weights=weights)
    assert loss(ours, data, l2, weights) == pytest.approx(reference, abs=1e-5)
    assert (ours.scores(features).argmax(axis=1) == theirs.predict(features)).mean() > 0.98


def test_few_steps_are_told_and_few_predictions_prove_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_ITERATIONS", 2)
    with pytest.warns(RuntimeWarning, match="not at its optimum after 2 steps"):
        fit_logistic(*clouds(), l2=0.001)
    # By Laplace's rule 1 of 6 examples counts half for each class: the probability is 11/12.
    scores = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    temperature = fit_temperature(scores, np.array([0, 0, 1, 1]), np.ones(4))
    assert np.exp(log_softmax(scores / temperature)).max() == pytest.approx(11 / 12, abs=1e-4)


@settings(max_examples=50, deadline=None)
@given(counts=st.lists(st.integers(2, 13), min_size=2, max_size=6), seed=st.integers(0, 9))
def test_folds_are_even_and_never_lack_a_class(counts: list[int], seed: int) -> None:
    classes = np.repeat(np.arange(len(counts)), counts)
    folds = stratified_folds(classes, seed=seed)
    sizes = np.bincount(folds)
    assert len(sizes) == min(5, len(classes))
    assert np.ptp(sizes) <= 1
    for fold in range(len(sizes)):
        assert set(classes[folds != fold]) == set(classes)
    for label in range(len(counts)):
        assert np.ptp(np.bincount(folds[classes == label], minlength=len(sizes))) <= 1
    assert np.array_equal(folds, stratified_folds(classes, seed=seed))
    many = np.arange(60) % 3
    assert not np.array_equal(stratified_folds(many, seed=seed), stratified_folds(many, seed=seed + 1))


def test_cross_validation_finds_what_generalises() -> None:
    features, classes = clouds(3000, noise=3.0)
    x, y, fresh, gold = features[:150], classes[:150], features[150:], classes[150:]
    choice = cross_validate(x, y, np.ones(150), seed=0)
    assert choice == cross_validate(x, y, np.ones(150), seed=0)
    losses = {}
    for l2 in logistic.STRENGTHS:
        scores = fit_logistic(x, y, l2=l2).scores(fresh)
        losses[l2] = -log_softmax(scores)[np.arange(len(gold)), gold].mean()
    assert losses[choice.l2] < min(losses.values()) + 0.02
    assert losses[choice.l2] < losses[logistic.STRENGTHS[-1]]
    noise = cross_validate(np.random.default_rng(3).normal(size=(80, 30)), np.arange(80) % 2, np.ones(80), seed=0)
    assert noise.l2 == logistic.STRENGTHS[0] and noise.log_loss == pytest.approx(np.log(2), abs=0.05)
