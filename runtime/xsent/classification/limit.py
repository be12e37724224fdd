"""The limit of "unknown": which texts are near no label, in whatever language, from examples in one.

Shapes: n texts, r rows of them, D dimensions, K labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xsent.similarity import unit_rows

# Share of what all centres have in common that is taken off each, because some languages are farther from all centres
# than others. With all of it texts on quite other subjects are missed, with none of it those on related ones.
_COMMON = 0.5
# Nineteen of twenty translations are this near the text that they translate (1,192 training pairs in eight languages).
# Two texts that are nearer say the same, and one of them would tell nothing new of the other.
_SAME = 0.7
_WORTH = 4  # examples that the mean of all labels counts as much as, in the width of one
_FAR = 0.05  # share of the training texts that are as far from the others as what is unknown
_TINY = 1e-3
_ROWS = 1000  # texts that the limit is measured on, at most


@dataclass(frozen=True, eq=False)
class Limit:
    """Directions of labels, and how far along one of them a text of a label is."""

    centres: NDArray[np.float32]  # [K, D]
    least: float  # product with the nearest centre below which a text of length 1 is of none of the labels

    def fits(self, units: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Whether texts [n] are near a label, by their vectors of length 1 [n, D]."""
        near: NDArray[np.bool_] = (units @ self.centres.T).max(axis=1) >= self.least
        return near

    @classmethod
    def plain(cls, centres: NDArray[np.float32], least: float) -> "Limit":
        """A given limit for centres of length 1 [K, D] that all are equally wide."""
        return cls(_apart(centres), least)

    @classmethod
    def measured(
        cls, centres: NDArray[np.float32], cosines: NDArray[np.float64], classes: NDArray[np.int64]
    ) -> "Limit":
        """The limit that one text in twenty of the labels is below in any language.

        A label is near its texts or far from them: products count in proportion to what its own texts have.

        Args:
            centres: Centres of length 1 [K, D].
            cosines: Of texts with them, see `held_out` [r, K].
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
    """Some rows [r] of texts, and their cosines with the centres [r, K] as texts in other languages would have them.

    A row's own centre is taken without it, and without the texts of its label that say the same.

    Args:
        units: Vectors of length 1, or zero, which are no rows [n, D].
        classes: The labels [n].
        sums: Sum of the vectors of each label, and of whatever else its centre is the mean of [K, D].
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
            # Where all texts of the label say the same, a translation is as near its centre as it is to one of them.
            cosines[place, label] = rest @ unit / length if length > _TINY else _SAME
    return rows, cosines


def find_limit(units: NDArray[np.float32], classes: NDArray[np.int64]) -> Limit:
    """The limit of labels whose centres are the means of their texts, by vectors [n, D] and labels [n]."""
    sums = np.zeros((classes.max() + 1, units.shape[1]))
    np.add.at(sums, classes, units)
    rows, cosines = held_out(units, classes, sums)
    return Limit.measured(unit_rows(sums), cosines, classes[rows])


def _apart(centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centres without a part of what they have in common; a text's product is its cosine less that part of the mean."""
    apart: NDArray[np.float32] = centres - np.float32(_COMMON) * centres.mean(axis=0)
    return apart
