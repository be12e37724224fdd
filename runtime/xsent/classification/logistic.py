"""Multinomial logistic regression: its optimum, and the choice of L2 strength and temperature.

Shapes: n examples, F features, K classes. The loss, with example weights s and b not penalised, is

    L(W, b) = 1/n Σᵢ sᵢ · (logΣexp(zᵢ) − zᵢ[yᵢ]) + l2/2 · ‖W‖²,  zᵢ = W xᵢ + b

This is the loss of scikit-learn's `LogisticRegression` with C = 1 / (l2 · n), divided by C · n.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.errors import warn

# For features of about size one: the first yields little more than the class means, the last nearly overfits.
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)

_FOLDS = 5
_PRECISION = 1e-5  # how far above its minimum the loss may stop
_MEMORY = 10  # steps that L-BFGS remembers
_ITERATIONS = 2000  # ten times as many as real vectors need

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Objective = Callable[[Doubles], tuple[float, Doubles]]


@dataclass(frozen=True)
class Logistic:
    """A linear map to the scores of K classes."""

    weight: Doubles  # W, [K, F]
    bias: Doubles  # b, [K]

    def scores(self, features: Doubles) -> Doubles:
        """Scores [n, K] of features [n, F]; their softmax is the probability of each class."""
        return features @ self.weight.T + self.bias


@dataclass(frozen=True)
class Choice:
    """The result of cross-validation."""

    l2: float  #: strength of the L2 penalty
    temperature: float  #: divisor of the scores that calibrates held-out probabilities
    accuracy: float  #: share of correct held-out predictions
    #: mean of -log(probability of the true class), held out, at that temperature; weighted as the loss is
    log_loss: float


def fit_logistic(
    features: Doubles, classes: Ints, *, l2: float, weights: Doubles | None = None, start: Logistic | None = None
) -> Logistic:
    """Minimise the loss for features x [n, F], classes y [n] that all occur, and weights s [n], by default 1.

    The loss is convex, so the optimum does not depend on the start; a nearby optimum saves time.
    """
    n, width = features.shape
    weights = np.ones(n) if weights is None else weights
    one_hot = np.eye(classes.max() + 1)[classes]

    def objective(packed: Doubles) -> tuple[float, Doubles]:
        weight, bias = packed[:, :-1], packed[:, -1]
        logs = log_softmax(features @ weight.T + bias)
        error = weights[:, None] * (np.exp(logs) - one_hot) / n
        slope = np.column_stack([error.T @ features + l2 * weight, error.sum(axis=0)])
        return float(-weights @ (logs * one_hot).sum(axis=1) / n + l2 / 2 * np.vdot(weight, weight)), slope

    packed = np.zeros((one_hot.shape[1], width + 1)) if start is None else np.column_stack([start.weight, start.bias])
    # A function with curvature of at least l2 is at most |slope|² / (2 · l2) above its minimum.
    packed = minimize(objective, packed, tolerance=(2 * l2 * _PRECISION) ** 0.5)
    return Logistic(packed[:, :-1], packed[:, -1])


def cross_validate(features: Doubles, classes: Ints, weights: Doubles, *, seed: int) -> Choice:
    """Choose L2 strength and temperature by the log loss of stratified 5-fold cross-validation.

    Tries penalties from the strongest down, each fold starting from its last optimum, until the held-out loss stops
    falling, so weak penalties, which take longest, are rarely tried. Each class must occur twice; the seed draws the
    folds. Equal examples are in one fold.
    """
    folds = _folds_of_distinct(features, classes, seed=seed)
    fitted: list[Logistic | None] = [None] * (folds.max() + 1)
    choices: list[Choice] = []
    for l2 in STRENGTHS:
        scores = np.empty((len(classes), classes.max() + 1))
        for fold, last in enumerate(fitted):
            test = folds == fold
            model = fit_logistic(features[~test], classes[~test], l2=l2, weights=weights[~test], start=last)
            scores[test] = model.scores(features[test])
            fitted[fold] = model
        temperature = fit_temperature(scores, classes, weights)
        gold = log_softmax(scores / temperature)[np.arange(len(classes)), classes]
        accuracy = float(np.mean(scores.argmax(axis=1) == classes))
        choice = Choice(l2, temperature, accuracy, float(-weights @ gold / weights.sum()))
        if choices and choice.log_loss >= choices[-1].log_loss:
            break
        choices.append(choice)
    return choices[-1]


def distinct(features: NDArray[Any], classes: Ints) -> tuple[Ints, Ints]:
    """The places of different examples [m], and for each example which of them it equals, 0 to m - 1 [n]."""
    places: dict[tuple[bytes, int], int] = {}
    first: list[int] = []
    equal = np.empty(len(classes), np.int64)
    for place, (row, label) in enumerate(zip(features, classes.tolist(), strict=True)):
        equal[place] = places.setdefault((row.tobytes(), label), len(places))
        if equal[place] == len(first):
            first.append(place)
    return np.array(first, np.int64), equal


def _folds_of_distinct(features: Doubles, classes: Ints, *, seed: int) -> Ints:
    """The fold of every example [n]; equal ones share a fold, unless all examples of their class are equal."""
    first, equal = distinct(features, classes)
    alone = np.bincount(classes[first])[classes] == 1
    apart = len(first) + np.arange(len(classes))
    first, equal = distinct(np.where(alone, apart, equal), classes)
    return stratified_folds(classes[first], seed=seed)[equal]


def stratified_folds(classes: Ints, *, seed: int) -> Ints:
    """The fold of every example [n]; the sizes of folds differ by at most one, in total and in each class.

    So a class with two examples keeps one when a fold is held out.
    """
    shuffled = np.random.default_rng(seed).permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    folds = np.empty(len(classes), np.int64)
    folds[by_class] = np.arange(len(classes)) % min(_FOLDS, len(classes))
    return folds


def fit_temperature(scores: Doubles, classes: Ints, weights: Doubles) -> float:
    """The temperature of lowest log loss (Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2).

    From held-out scores [n, K]. By Laplace's rule one of n + 2 examples counts for all classes: otherwise, if all
    predictions are right, the lowest loss is at temperature 0, that is, certainty, which n examples cannot prove.
    """
    doubt = 1 / (len(classes) + 2)
    gold = (1 - doubt) * scores[np.arange(len(classes)), classes] + doubt * scores.mean(axis=1)
    low, high = -5.0, 5.0  # bounds of log(1 / temperature); the loss is convex in 1 / temperature: bisect its slope
    while high - low > 1e-6:
        middle = (low + high) / 2
        expected = (np.exp(log_softmax(np.exp(middle) * scores)) * scores).sum(axis=1)
        low, high = (low, middle) if weights @ (expected - gold) > 0 else (middle, high)
    return float(np.exp(-low))


def log_softmax(scores: Doubles) -> Doubles:
    """Log-probabilities of the classes [n, K]."""
    scores = scores - scores.max(axis=1, keepdims=True)
    logs: Doubles = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return logs


def minimize(objective: Objective, start: Doubles, *, tolerance: float) -> Doubles:
    """Minimise a smooth convex function by L-BFGS (Nocedal & Wright 2006, "Numerical Optimization", algorithm 7.5).

    The objective returns the value and the slope at a point of any shape. Stops once the norm of the slope is at most
    `tolerance`.
    """
    point = start
    value, slope = objective(point)
    steps: deque[tuple[Doubles, Doubles]] = deque(maxlen=_MEMORY)
    for _ in range(_ITERATIONS):
        if np.linalg.norm(slope) <= tolerance:
            return point
        direction = -_newton_like(slope, steps)
        length = 1.0 if steps else min(1.0, 1 / float(np.linalg.norm(slope)))
        descent = 1e-4 * float(np.vdot(slope, direction))
        while True:
            next_point = point + length * direction
            next_value, next_slope = objective(next_point)
            if next_value <= value + length * descent:
                break
            length /= 2
            if length < 1e-10:  # rounding hides any lower value
                return point
        if np.vdot(next_point - point, next_slope - slope) > 0:  # always, except for rounding
            steps.append((next_point - point, next_slope - slope))
        point, value, slope = next_point, next_value, next_slope
    warn(f"logistic regression did not converge in {_ITERATIONS:,} steps", RuntimeWarning)
    return point


def _newton_like(slope: Doubles, steps: deque[tuple[Doubles, Doubles]]) -> Doubles:
    """The slope times the inverse Hessian, estimated from the last steps of the point and of the slope."""
    shares = []
    for step, change in reversed(steps):
        share = np.vdot(step, slope) / np.vdot(step, change)
        slope = slope - share * change
        shares.append(share)
    if steps:
        step, change = steps[-1]
        slope = slope * (np.vdot(step, change) / np.vdot(change, change))
    for (step, change), share in zip(steps, reversed(shares), strict=True):
        slope = slope + (share - np.vdot(change, slope) / np.vdot(step, change)) * step
    return slope
