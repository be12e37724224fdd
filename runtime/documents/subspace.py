"""The language subspace of sentence vectors, and how much of it to remove.

Gong et al. 2021, "LAWDR: Language-Agnostic Weighted Document Representations from Pre-trained Models", section 3.2:
the dominant directions of one language's sentence vectors carry the language; what is orthogonal to them carries
the meaning. Everything is computed from sums over the sentences, so that memory does not grow with the corpus.

Shapes: n sentences, D dimensions, m directions, K languages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# Section 10.2 stops under 55 % for two languages: a tenth of the way from chance, 50 %, to certainty.
_TENTH = 0.1
SAMPLE = 10_000  # sentences of a language that are kept as they are
_BLOCK = 1024  # vectors summed up at once
_RIDGE = 1e-3  # of the mean variance of a dimension: keeps the classifier solvable with few sentences


@dataclass(frozen=True)
class Moments:
    """Sums over sentence vectors that are seen once."""

    count: int  # vectors seen
    total: Doubles  # their sum [D]
    gram: Doubles  # the sum of their outer products [D, D]

    @classmethod
    def of(cls, vectors: Floats) -> "Moments":
        """The moments of vectors [n, D]."""
        rows = vectors.astype(np.float64)
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.count + other.count, self.total + other.total, self.gram + other.gram)

    def directions(self, rank: int) -> Floats:
        """The dominant directions [rank, D], best first: the right-singular vectors of the uncentred vectors."""
        return dominant_directions(self.gram, rank).astype(np.float32)


@dataclass(frozen=True)
class LanguageSurvey:
    """What one pass over a language's sentences leaves, however many there are."""

    train: Moments  # moments of the sentences to learn from
    held_out: Moments  # moments of the sentences to test with
    sample: Floats  # some of all, at random [n, D], at most `SAMPLE`, those to learn from first
    held_out_sample: Floats  # those of them to test with


def survey(vectors: Iterable[NDArray[Any]], held_out: NDArray[np.bool_], dim: int) -> LanguageSurvey:
    """Pass once over the sentence vectors [D] of a language; `held_out` says whether each is for testing [n]."""
    kept = np.zeros(len(held_out), bool)
    kept[np.random.default_rng(0).permutation(len(held_out))[:SAMPLE]] = True
    none = np.empty((0, dim), np.float32)
    moments = {side: Moments.of(none) for side in (False, True)}
    samples = {side: [none] for side in moments}
    stream = iter(vectors)
    for start in range(0, len(held_out), _BLOCK):
        rows = np.stack(list(islice(stream, _BLOCK))).astype(np.float32, copy=False)
        where = slice(start, start + len(rows))
        for side in moments:
            moments[side] += Moments.of(rows[held_out[where] == side])
            samples[side].append(rows[(held_out[where] == side) & kept[where]])
    sample, held_out_sample = np.concatenate(samples[False] + samples[True]), np.concatenate(samples[True])
    return LanguageSurvey(moments[False], moments[True], sample, held_out_sample)


def dominant_directions(gram: Doubles, rank: int) -> Doubles:
    """The `rank` eigenvectors of largest eigenvalue of a Gram matrix [D, D], as rows [rank, D].

    Their sign, which means nothing, makes the largest number of each positive.
    """
    _, vectors = np.linalg.eigh(gram)  # ascending
    rows: Doubles = vectors.T[::-1][:rank]
    largest = np.abs(rows).argmax(axis=1)
    return rows * np.where(rows[np.arange(len(rows)), largest] < 0, -1.0, 1.0)[:, None]


def remove_directions(vectors: Floats, directions: Floats) -> Floats:
    """Debiased vectors [n, D]: without what lies along orthonormal directions [m, D] (LAWDR, section 3.2)."""
    return (vectors - (vectors @ directions.T) @ directions).astype(np.float32, copy=False)


@dataclass(frozen=True)
class RankChoice:
    """How many directions to remove, and why."""

    rank: int  #: that many (m)
    #: share of held-out sentences whose language a linear classifier tells, balanced over the languages, without the
    #: first 0, 1, ..., m directions
    accuracies: tuple[float, ...]


def choose_rank(train: Sequence[Moments], held_out: Sequence[Floats]) -> RankChoice:
    """The smallest number of directions without which a linear classifier cannot tell the languages (section 10.1).

    "Cannot" is less than a tenth of the way from chance to certainty: the paper's 55 % for two languages. The
    classifier is linear least squares on one-hot languages, each language of the same weight, in place of the paper's
    support vector machine: it follows from the moments alone, so every number from 0 up is tried. A ValueError says
    that half of the directions are not enough.
    """
    languages = len(train)
    if languages < 2:  # nothing to tell apart
        return RankChoice(0, ())
    limit = min(len(train[0].total), *(moments.count for moments in train)) // 2
    bar = 1 / languages + _TENTH * (1 - 1 / languages)
    grams = [moments.gram / moments.count for moments in train]
    means = np.stack([moments.total / moments.count for moments in train])
    tests = [rows.astype(np.float64) for rows in held_out]
    axes = [dominant_directions(gram, limit) for gram in grams]
    accuracies = [_language_accuracy(grams, means, tests)]
    while accuracies[-1] >= bar:
        rank = len(accuracies) - 1
        if rank == limit:
            raise ValueError(
                f"languages still show after removing {rank} directions: {100 * min(accuracies):.1f} % at best, the "
                f"rule wants under {100 * bar:.1f} %; fit on more text, or give the rank"
            )
        for number in range(languages):
            axis = axes[number][rank]
            grams[number] -= (axis @ grams[number] @ axis) * np.outer(axis, axis)  # axis is an eigenvector
            means[number] -= (means[number] @ axis) * axis
            tests[number] -= np.outer(tests[number] @ axis, axis)
        accuracies.append(_language_accuracy(grams, means, tests))
    return RankChoice(len(accuracies) - 1, tuple(accuracies))


def _language_accuracy(grams: Sequence[Doubles], means: Doubles, tests: Sequence[Doubles]) -> float:
    """Fit a least-squares classifier on moments and test it; the mean of the languages' shares of right answers.

    With targets that are one-hot and languages of the same weight, the normal equations are S W = M - mean(M), up to
    a factor, where S is the covariance of all vectors and M holds the languages' mean vectors.
    """
    center = means.mean(axis=0)
    covariance = np.mean(grams, axis=0) - np.outer(center, center)
    ridge = _RIDGE * np.trace(covariance) / len(center) + np.finfo(np.float64).tiny
    covariance[np.diag_indices_from(covariance)] += ridge
    weights = np.linalg.solve(covariance, (means - center).T)  # [D, K]
    found = [((rows - center) @ weights).argmax(axis=1) for rows in tests]
    return float(np.mean([np.mean(answers == number) for number, answers in enumerate(found)]))
