"""Margin scores, how much nearer two sentences are to each other than to their neighbours, and thresholds for them.

Artetxe & Schwenk 2019, "Margin-based parallel corpus mining with multilingual sentence embeddings", equations 2
to 4. Let m be the mean of two means: of the cosines of x to its k nearest y, and of y to its k nearest x. Then the
score of a cosine c is c (absolute), c - m (distance) or c / m (ratio). Unlike in the paper, m is at least 0.4: in a
short text a sentence has no near neighbours, and whatever is a little nearer would look like its translation.

Shapes: n and m rows on the two sides, D dimensions, k neighbours, p pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from xsent.errors import check_choice, whole_number
from xsent.progress import Progress
from xsent.similarity import (
    CANDIDATES,
    QUERIES,
    BlockProduct,
    Floats,
    Ints,
    NormalizedBlocks,
    TopK,
    check_same_dim,
    clipped,
    cosine_similarity,
)

Margin = Literal["ratio", "distance", "absolute"]

LEAST_MEAN = 0.4  # cosine; in FLORES and Tatoeba 95% of sentences have a mean above 0.42
STRIP = 8 * QUERIES  # rows that share one pass over the other side
_BLOCK = 8192  # given pairs scored at once
_SHUFFLED = 100_000  # wrong pairs that a threshold is estimated from; at least one per given pair


def margin_scores(a: ArrayLike, b: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> Floats:
    """Margin score of every vector of `a` with every vector of `b` (Artetxe and Schwenk 2019).

    A "ratio" is the cosine over the mean cosine to the `k` nearest of both, a "distance" the cosine minus that mean,
    which counts as at least 0.4.

    Args:
        a: Vectors [n, D].
        b: Vectors [m, D].
        margin: "ratio", "distance" or "absolute", which is the cosine itself.
        k: Number of nearest neighbours used for the margin; "absolute" needs none.

    Returns:
        Scores [n, m].

    Example:
        >>> english = encoder.encode(["The cat sleeps.", "It rains."])
        >>> french = encoder.encode(["Il pleut.", "Le chat dort."])
        >>> margin_scores(english, french, k=1).argmax(axis=1).tolist()
        [1, 0]
    """
    scores = cosine_similarity(a, b)
    k = check_neighbourhood(margin, k, *scores.shape)
    if margin == "absolute":
        return scores
    forward, backward = TopK(scores.shape[0], k), TopK(scores.shape[1], k)
    forward.add(0, 0, scores)
    backward.add(0, 0, scores, lines_are_columns=True)
    return apply_margin(margin, scores, forward.means[:, None], backward.means)


def apply_margin(
    margin: Margin, cosines: Floats, a_means: Floats, b_means: Floats, *, least: float = LEAST_MEAN
) -> Floats:
    """Scores of cosines, given the mean cosines to the neighbours of both sides; shapes are broadcast.

    Means below `least` count as that. A ratio is 0 if the mean is not above 0.
    """
    if margin == "absolute":
        return clipped(cosines)
    means: Floats = np.maximum((a_means + b_means) / np.float32(2), np.float32(least))
    if margin == "distance":
        return cosines - means
    ratios: Floats = np.divide(cosines, means, out=np.zeros_like(cosines), where=means > 0)
    return ratios


def check_neighbourhood(margin: Margin, k: int, n: int, m: int, of: str = "different sentences") -> int:
    """Number of neighbours to search: k, or 1 for "absolute".

    Raises ValueError if one of the sides, with n and m rows, has fewer; `of` names the rows in the message.
    """
    check_choice("margin", margin, get_args(Margin))
    k = whole_number("k", k)
    if not min(n, m):
        raise ValueError("one side has no sentences; expected at least one on each side")
    if margin == "absolute":
        return 1
    if k > min(n, m):
        raise ValueError(
            f"k = {k} neighbours, but one side has only {min(n, m)} {of}; choose a smaller k (-k), "
            "or the margin absolute (--margin absolute), which needs none"
        )
    return k


def compare_blocks(
    a: NormalizedBlocks, b: NormalizedBlocks, *, show_progress_bar: bool | None = False
) -> Iterator[tuple[int, int, Floats]]:
    """Yield cosines between blocks of rows of `a` and of `b`, preceded by the numbers of their first rows."""
    product = BlockProduct()
    blocks = -(-len(a) // STRIP) * -(-len(b) // CANDIDATES)
    with Progress("blocks", blocks, enabled=show_progress_bar) as progress:
        for start in range(0, len(a), STRIP):
            strip = a.block(start, STRIP)
            for first in range(0, len(b), CANDIDATES):
                block = b.block(first, CANDIDATES)
                for line in range(0, len(strip), QUERIES):
                    yield start + line, first, product(strip[line : line + QUERIES], block)
                progress.advance()


def nearest_both_ways(
    a: NormalizedBlocks,
    b: NormalizedBlocks,
    k: int,
    *,
    apart: tuple[Ints, Ints] | None = None,
    show_progress_bar: bool | None = False,
) -> tuple[TopK, TopK]:
    """Find the k nearest neighbours of every row of `a` in `b`, and of every row of `b` in `a`, exactly.

    `apart` has a number for every row of `a` and of `b`: rows with the same number are not neighbours. -1 stands for no
    number.

    Of equal cosines the lower row counts as nearer. Each cosine is computed once. Takes about 100 MiB plus 12 bytes per
    neighbour, for any number of rows.
    """
    check_same_dim(a.dim, b.dim)
    forward = TopK(len(a), k)
    backward = TopK(len(b), k)
    for line, first, scores in compare_blocks(a, b, show_progress_bar=show_progress_bar):
        if apart is not None:
            _separate(scores, apart[0][line : line + len(scores)], apart[1][first : first + scores.shape[1]])
        forward.add(line, first, scores)
        backward.add(first, line, scores, lines_are_columns=True)
    return forward, backward


def _separate(scores: Floats, left: Ints, right: Ints) -> None:
    """Overwrite the scores of a block where a row and a column have the same number."""
    rows, columns = (np.flatnonzero(side >= 0) for side in (left, right))
    one, other = np.nonzero(left[rows, None] == right[columns])
    scores[rows[one], columns[other]] = -np.inf


class PairScorer:
    """Margin scores of chosen pairs of rows, see `margin_scores`; neighbours are searched once, in bounded memory.

    The sources [n, D] and the targets [m, D] contain each sentence once; they may be memory maps.
    """

    def __init__(self, src: ArrayLike, trg: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> None:
        self._src = np.asanyarray(src)
        self._trg = np.asanyarray(trg)
        self._margin = margin
        left, right = NormalizedBlocks(self._src), NormalizedBlocks(self._trg)
        check_same_dim(left.dim, right.dim)
        k = check_neighbourhood(margin, k, len(left), len(right))
        self._src_means, self._trg_means = np.zeros(len(left), np.float32), np.zeros(len(right), np.float32)
        if margin != "absolute":
            self._src_means, self._trg_means = (side.means for side in nearest_both_ways(left, right, k))

    def score(self, src_rows: Ints, trg_rows: Ints) -> Floats:
        """Score of every pair of a source row and a target row [p]."""
        left, right = NormalizedBlocks(self._src, src_rows), NormalizedBlocks(self._trg, trg_rows)
        cosines = np.empty(len(src_rows), np.float32)
        for start in range(0, len(src_rows), _BLOCK):
            a, b = left.block(start, _BLOCK), right.block(start, _BLOCK)
            cosines[start : start + len(a)] = np.einsum("pd,pd->p", a, b)
        return apply_margin(self._margin, cosines, self._src_means[src_rows], self._trg_means[trg_rows])


@dataclass(frozen=True)
class Threshold:
    """A threshold for the scores of pairs."""

    threshold: float  # lowest score that is accepted
    precision: float  # estimated share of correct pairs among those accepted
    accepted: int  # number of pairs accepted
    pairs: int  # number of all pairs


def calibrate(scores: ArrayLike, wrong: ArrayLike, precision: float) -> Threshold:
    """Choose the lowest threshold for scores [p] that reaches a precision. Raises ValueError if none does.

    `wrong` are scores of pairs known to be wrong, such as shuffled ones. Target-decoy estimate (Elias & Gygi 2007):
    the number of wrong pairs above a threshold is at most p times the share of known wrong pairs above it. One known
    wrong pair is added, so that a small sample never yields a high precision (Phipson & Smyth 2010).
    """
    given = np.sort(np.asarray(scores, np.float32))
    known = np.sort(np.asarray(wrong, np.float32))
    if not 0 < precision < 1:
        raise ValueError(f"precision = {precision} must be between 0 and 1")
    if not len(given) or not len(known):
        raise ValueError("a threshold needs right and wrong pairs, and there are none")
    thresholds, first = np.unique(given, return_index=True)
    accepted = len(given) - first
    reached = len(known) - np.searchsorted(known, thresholds)
    expected_wrong = (reached + 1) * len(given) / (len(known) + 1)
    estimates = 1 - expected_wrong / accepted
    enough = np.flatnonzero(estimates >= precision)
    if not len(enough):
        best = int(estimates.argmax())
        raise ValueError(
            f"no threshold reaches a precision of {precision}; {thresholds[best]:.6f} reaches "
            f"{max(0.0, float(estimates[best])):.4f} with {accepted[best]:,} of {len(given):,} pairs"
        )
    lowest = int(enough[0])
    return Threshold(float(thresholds[lowest]), float(estimates[lowest]), int(accepted[lowest]), len(given))


def shuffled_pairs(src_rows: ArrayLike, trg_rows: ArrayLike) -> tuple[Ints, Ints]:
    """Pair the source rows of p pairs with target rows of other pairs; equal sentences must share a row.

    About 100,000 pairs, or p if that is more, and at most p (p - 1); none of them is a given pair.
    """
    src = np.asarray(src_rows, np.int64)
    trg = np.asarray(trg_rows, np.int64)
    order = np.random.default_rng(0).permutation(len(src))
    turns = min(len(src) - 1, max(1, _SHUFFLED // max(1, len(src))))
    left = np.tile(src[order], max(0, turns))
    right = np.concatenate([trg[:0], *(trg[np.roll(order, turn)] for turn in range(1, turns + 1))])
    width = int(trg.max(initial=0)) + 1
    wrong = ~np.isin(left * width + right, src * width + trg)
    return left[wrong], right[wrong]
