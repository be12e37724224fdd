"""The limit for "unknown": detects texts near no label in any language, from examples in one.

Shapes: n texts, r rows of them, D dimensions, K labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xsent.classification.logistic import distinct
from xsent.similarity import unit_rows

# Share of the centres' mean that is subtracted from each, because some languages are farther from all centres than
# others. Subtracting all of it misses texts on quite different subjects; none of it, texts on related ones.
_COMMON = 0.5
# Nineteen of twenty translations are at least this near their source (1,192 training pairs in eight languages). Two
# texts that are nearer mean the same, so one adds no information about the other.
_SAME = 0.7
_WORTH = 4  # in the width of a label, the mean over all labels weighs as much as this many examples
_FAR = 0.05  # share of the training texts that the limit may reject
_TINY = 1e-3
_ROWS = 1000  # most texts that the limit is measured on


@dataclass(frozen=True, eq=False)
class Limit:
    """Directions of labels, and how far along one of them a text must be to fit a label."""

    centres: NDArray[np.float32]  # [K, D]
    least: float  # below this product with the nearest centre, a text vector of length 1 fits no label

    def fits(self, units: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Whether texts [n] are near a label, from their vectors of length 1 [n, D]."""
        near: NDArray[np.bool_] = (units @ self.centres.T).max(axis=1) >= self.least
        return near

    @classmethod
    def plain(cls, centres: NDArray[np.float32], least: float) -> "Limit":
        """A given limit for centres of length 1 [K, D], all equally wide."""
        return cls(_apart(centres), least)

    @classmethod
    def measured(
        cls, centres: NDArray[np.float32], cosines: NDArray[np.float64], classes: NDArray[np.int64]
    ) -> "Limit":
        """The limit that one in twenty texts of the labels falls below, in any language.

        Labels differ in how near their texts are, so products are divided by the typical one of a label's own texts.

        Args:
            centres: Centres of length 1 [K, D].
            cosines: Cosines of texts with the centres [r, K], see `held_out`.
            classes: The labels of those texts [r].
        """
        if not len(cosines):
            return cls.plain(centres, -1.0)
        products = cosines - _COMMON * cosines.mean(axis=1, keepdims=True)
        own = products[np.arange(len(classes)), classes]
        counts, sums = (np.bincount(classes, weights, len(centres)) for weights in (None, own))
        usual = max(float(own.mean()), _TINY)
        widths = np.maximum((sums + _WORTH * usual) / (counts + _WORTH) / usual, 1 / _WORTH)
        least = float(np.quantile((products / widths).max(axis=1), _FAR))
        return cls((_apart(centres) / widths[:, None]).astype(np.float32), min(max(least, -1.0), 1.0))


def held_out(
    units: NDArray[np.float32], classes: NDArray[np.int64], sums: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A sample of rows [r] and their cosines with the centres [r, K], as texts in other languages would have them.

    A row's own centre excludes the row itself and the texts of its label that mean the same.

    Args:
        units: Vectors [n, D] of length 1 or zero; zero vectors are never sampled.
        classes: The labels [n].
        sums: For each label the sum of its vectors and of whatever else its centre averages [K, D].
    """
    worded = np.flatnonzero(units.any(axis=1))
    rows = np.sort(np.random.default_rng(0).permutation(worded)[:_ROWS])
    cosines: NDArray[np.float64] = units[rows].astype(np.float64) @ unit_rows(sums).T
    for label in np.unique(classes[rows]):
        members = units[classes == label].astype(np.float64)
        for place in np.flatnonzero(classes[rows] == label):
            unit = units[rows[place]]
            rest = sums[label] - members[members @ unit >= _SAME].sum(axis=0)
            length = np.linalg.norm(rest)
            # If all texts of the label mean the same, a translation is as near their centre as it is to one of them.
            cosines[place, label] = rest @ unit / length if length > _TINY else _SAME
    return rows, cosines


def find_limit(units: NDArray[np.float32], classes: NDArray[np.int64]) -> Limit:
    """The limit for labels whose centres are the means of their texts, from vectors [n, D] and labels [n].

    Repeated texts count once: otherwise one of them would be most of its label's centre, and new texts far from it.
    """
    first, _ = distinct(units, classes)
    units, classes = units[first], classes[first]
    sums = np.zeros((classes.max() + 1, units.shape[1]))
    np.add.at(sums, classes, units)
    rows, cosines = held_out(units, classes, sums)
    return Limit.measured(unit_rows(sums), cosines, classes[rows])


def _apart(centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centres minus a part of their mean; a text's product is then its cosine minus that part of its mean cosine."""
    apart: NDArray[np.float32] = centres - np.float32(_COMMON) * centres.mean(axis=0)
    return apart
