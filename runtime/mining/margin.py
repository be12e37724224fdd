"""Margin scores: how much nearer two sentences are to each other than to their neighbours.

Artetxe & Schwenk 2019, "Margin-based parallel corpus mining with multilingual sentence embeddings", equations 2
to 4. With m the mean of the two means of the cosines to the k nearest neighbours, of x among the y and of y among
the x, the score of a cosine c is c (absolute), c - m (distance) or c / m (ratio).

Shapes: n and m rows on the two sides, D dimensions, k neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from xsent.similarity import (
    CANDIDATES,
    QUERIES,
    BlockProduct,
    Floats,
    Ints,
    KBest,
    UnitRows,
    check_same_dim,
    cosine_similarity,
)

Margin = Literal["ratio", "distance", "absolute"]

_STRIP = 8 * QUERIES  # rows that share one reading of the other side


@dataclass(frozen=True)
class Neighbours:
    """The k nearest of every row."""

    indices: Ints  # rows of the other side [n, k], best first; of equal cosines the lower
    cosines: Floats  # theirs, of the same shape

    @property
    def means(self) -> Floats:
        """Mean cosine of every row to its neighbours [n]."""
        means: Floats = self.cosines.mean(axis=1)
        return means


def margin_scores(a: ArrayLike, b: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> Floats:
    """Margin score of every vector of `a` with every vector of `b`.

    Args:
        a: Vectors [n, D].
        b: Vectors [m, D].
        margin: "ratio", "distance" or "absolute", which is the cosine.
        k: Neighbours that a score is compared with; "absolute" needs none.

    Returns:
        Scores [n, m]. A ratio is 0 where the neighbours' mean is not above 0: nothing there is alike.
    """
    scores = cosine_similarity(a, b)
    k = check_neighbourhood(margin, k, *scores.shape)
    if margin == "absolute":
        return scores
    forward, backward = KBest(scores.shape[0], k), KBest(scores.shape[1], k)
    forward.add(0, 0, scores)
    backward.add(0, 0, scores, lines_are_columns=True)
    return apply_margin(margin, scores, forward.scores.mean(axis=1)[:, None], backward.scores.mean(axis=1))


def apply_margin(margin: Margin, cosines: Floats, a_means: Floats, b_means: Floats) -> Floats:
    """Scores of cosines, given the mean cosines of their two neighbourhoods; shapes are broadcast."""
    if margin == "absolute":
        return cosines
    means = (a_means + b_means) / np.float32(2)
    if margin == "distance":
        return cosines - means
    ratios: Floats = np.divide(cosines, means, out=np.zeros_like(cosines), where=means > 0)
    return ratios


def check_neighbourhood(margin: Margin, k: int, n: int, m: int) -> int:
    """See whether n and m rows have k neighbours on the other side; a ValueError says that they do not.

    What comes back are the neighbours to look for: k, or 1 for "absolute", which compares with none.
    """
    if margin not in get_args(Margin):
        raise ValueError(f"margin = {margin!r} must be one of {', '.join(get_args(Margin))}")
    if k < 1:
        raise ValueError(f"k = {k} must be at least 1")
    if not min(n, m):
        raise ValueError("one side has no sentences; expected at least one on both")
    if margin == "absolute":
        return 1
    if k > min(n, m):
        raise ValueError(
            f"k = {k} neighbours, but one side has only {min(n, m)} different sentences; choose a smaller k (-k), "
            "or the margin absolute (--margin absolute), which needs none"
        )
    return k


def nearest_both_ways(
    a: UnitRows, b: UnitRows, k: int, *, advance: Callable[[], None] = lambda: None
) -> tuple[Neighbours, Neighbours]:
    """Find the k nearest of every row on the other side, exactly; each cosine is computed once.

    Takes about 100 MiB and 12 bytes a neighbour, however many rows there are. `advance` is called after each of
    `count_blocks` blocks. What comes back are the neighbours of `a` in `b`, and those of `b` in `a`.
    """
    check_same_dim(a.dim, b.dim)
    forward, backward = KBest(len(a), k), KBest(len(b), k)
    product = BlockProduct()
    for start in range(0, len(a), _STRIP):
        strip = a.block(start, _STRIP)
        for first in range(0, len(b), CANDIDATES):
            block = b.block(first, CANDIDATES)
            for line in range(0, len(strip), QUERIES):
                scores = product(strip[line : line + QUERIES], block)
                forward.add(start + line, first, scores)
                backward.add(first, start + line, scores, lines_are_columns=True)
            advance()
    return Neighbours(forward.indices, forward.scores), Neighbours(backward.indices, backward.scores)


def count_blocks(a: UnitRows, b: UnitRows) -> int:
    """Blocks that `nearest_both_ways` goes through."""
    return -(-len(a) // _STRIP) * -(-len(b) // CANDIDATES)
