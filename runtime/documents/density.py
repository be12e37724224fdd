"""How common a sentence is in a corpus: kernel density with a top-hat kernel, in 16 dimensions.

Gong et al. 2021 (LAWDR), sections 4.1 and 10.2. The top-hat density of a point is the share of the corpus within a
ball around it, over the ball's volume. The volume is the same everywhere and cancels in the weight of equation 3,
w = b / (b + P) with b half the mean P, so densities here are shares.

Shapes: n sentences, p points of the corpus, D dimensions, d = 16 of them left.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xsent.documents.subspace import Doubles, Floats, Moments, dominant_directions

DIMENSIONS = 16
FOLDS = 5
BANDWIDTHS = 20  # tried between the smallest possible and the largest useful one
_BLOCK = 512  # sentences compared with all points at once: 40 MiB with 10,000 points
_SLACK = 1 + 1e-6  # of a squared distance: rounding must not decide whether a pair on the edge counts
_SAME = 3e-5  # of the vectors' length: points no further apart differ by rounding alone


@dataclass(frozen=True)
class Density:
    """A fitted density."""

    center: Floats  # mean vector of the corpus [D]
    axes: Floats  # principal axes [d, D]
    points: Floats  # the corpus's sentences on these axes [p, d]
    bandwidth: float  # radius of the ball
    scale: float  # half the mean density of the points, the b of equation 3

    @classmethod
    def fit(cls, vectors: Floats) -> "Density":
        """Fit a density on sentence vectors [p, D]; takes time that grows with the square of p.

        Raises:
            ValueError: There are too few sentences.
        """
        if len(vectors) <= DIMENSIONS:
            raise ValueError(
                f"{len(vectors)} sentences are too few to estimate a density in {DIMENSIONS} dimensions, at least "
                f"{DIMENSIONS + 1} are needed; fit on more text, or without weights"
            )
        moments = Moments(vectors.shape[1])
        moments.add(vectors)
        mean = moments.total / moments.count
        axes = dominant_directions(moments.gram / moments.count - np.outer(mean, mean), DIMENSIONS)
        center, axes32 = mean.astype(np.float32), axes.astype(np.float32)
        points = _project(vectors, center, axes32).astype(np.float32)
        length = float(np.sqrt(np.trace(moments.gram) / moments.count))
        bandwidth = max(choose_bandwidth(points), _SAME * length)
        unscaled = cls(center, axes32, points, bandwidth, 0.0)
        return replace(unscaled, scale=float(unscaled.of(vectors).mean()) / 2)

    def of(self, vectors: Floats) -> Doubles:
        """Densities [n] of sentence vectors [n, D]: the share of the corpus that is near, between 0 and 1."""
        places = _project(vectors, self.center, self.axes)
        points = self.points.astype(np.float64)
        bound = _SLACK * self.bandwidth**2
        near = [
            (_squared_distances(places[start : start + _BLOCK], points) <= bound).mean(axis=1)
            for start in range(0, len(places), _BLOCK)
        ]
        return np.concatenate(near) if near else np.empty(0)

    def weights(self, vectors: Floats) -> Floats:
        """Weights [n] of sentence vectors [n, D] (equation 3): from near 0 for what is common to 1 for what is new."""
        weights: Doubles = self.scale / (self.scale + self.of(vectors))
        return weights.astype(np.float32)


def choose_bandwidth(points: Floats) -> float:
    """The radius under which held-out points [p, d], more than one, are most likely, by 5-fold cross-validation (10.2).

    A held-out point with no other in its ball has no likelihood at all, so no radius below the largest distance from
    a held-out point to its nearest is possible: the search begins there, and ends where every ball holds everything.
    """
    rows = points.astype(np.float64)
    folds = [np.arange(fold, len(rows), FOLDS) for fold in range(min(FOLDS, len(rows)))]
    least = most = 0.0
    for distances in _held_out_distances(rows, folds):
        least, most = max(least, float(distances.min(axis=1).max())), max(most, float(distances.max()))
    if least == 0:  # every point has a twin
        return 0.0
    bounds = np.geomspace(least, most, BANDWIDTHS)  # squared
    likelihood = np.zeros(BANDWIDTHS)
    for distances in _held_out_distances(rows, folds):
        for number, bound in enumerate(_SLACK * bounds):
            likelihood[number] += np.log((distances <= bound).mean(axis=1)).sum()
    likelihood -= len(rows) * points.shape[1] / 2 * np.log(bounds)  # the ball's volume grows with radius ** d
    return float(np.sqrt(bounds[likelihood.argmax()]))


def _held_out_distances(rows: Doubles, folds: list[NDArray[np.int64]]) -> Iterator[Doubles]:
    """Squared distances [block, p - fold] of each fold's points to those of the other folds, in blocks."""
    for fold in folds:
        others = np.delete(rows, fold, axis=0)
        for start in range(0, len(fold), _BLOCK):
            yield _squared_distances(rows[fold[start : start + _BLOCK]], others)


def _squared_distances(a: Doubles, b: Doubles) -> Doubles:
    """Of every row of `a` to every row of `b`, in double precision; never below 0."""
    squares: Doubles = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    np.maximum(squares, 0, out=squares)
    return squares


def _project(vectors: Floats, center: Floats, axes: Floats) -> Doubles:
    """Places of vectors [n, D] on the axes [n, d]."""
    places: Doubles = (vectors.astype(np.float64) - center) @ axes.T.astype(np.float64)
    return places
