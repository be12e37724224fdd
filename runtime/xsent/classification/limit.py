"""The limit of "unknown": which texts are near no label. Shapes: n texts, r rows of them, D dimensions, K labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xsent.similarity import unit_rows

FAR = 0.05  # share of the training texts that are as far from the others as what is unknown


@dataclass(frozen=True, eq=False)
class Limit:
    """Centres of labels, and how near one of them a text of a label is."""

    centres: NDArray[np.float32]  # [K, D]
    least: float  # product with the nearest centre below which a text of length 1 is of none of the labels

    def fits(self, units: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Whether texts [n] are near a label, by their vectors of length 1 [n, D]."""
        near: NDArray[np.bool_] = (units @ self.centres.T).max(axis=1) >= self.least
        return near


def find_limit(units: NDArray[np.float32], classes: NDArray[np.int64]) -> Limit:
    """The limit that about one text in twenty of the labels is below, by vectors [n, D] and their labels [n].

    It is held out: a text's own label is taken without it.
    """
    sums = np.zeros((classes.max() + 1, units.shape[1]))
    np.add.at(sums, classes, units)
    worded = units.any(axis=1)
    nearest = held_out(units, classes, sums).max(axis=1)[worded]
    return Limit(unit_rows(sums), float(np.quantile(nearest, FAR)) if len(nearest) else -1.0)


def held_out(units: NDArray[np.float32], classes: NDArray[np.int64], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosines [n, K] of rows with the centres of the sums [K, D]; a row's own centre is taken without it."""
    products: NDArray[np.float64] = units.astype(np.float64) @ unit_rows(sums).T
    own = unit_rows(sums[classes] - units)
    products[np.arange(len(classes)), classes] = (units * own).sum(axis=1)
    return products
