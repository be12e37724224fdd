"""Scores of given pairs, and the threshold that keeps the wrong ones out.

Shapes: n and m rows on the two sides, p pairs, D dimensions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xsent.mining.margin import Margin, apply_margin, check_neighbourhood, nearest_both_ways
from xsent.similarity import Floats, Ints, UnitRows, check_same_dim

_BLOCK = 8192  # pairs scored at once
_SHUFFLED = 100_000  # wrong pairs that a threshold is measured with, at least one a pair


class PairScorer:
    """Margin scores, see `margin_scores`, of chosen pairs of rows; neighbours are looked for once, in bounded memory.

    Each sentence is once among the sources [n, D] and the targets [m, D], which may be memory maps.
    """

    def __init__(self, src: ArrayLike, trg: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> None:
        self._src, self._trg = np.asanyarray(src), np.asanyarray(trg)
        self._margin = margin
        left, right = UnitRows(self._src), UnitRows(self._trg)
        check_same_dim(left.dim, right.dim)
        k = check_neighbourhood(margin, k, len(left), len(right))
        self._src_means, self._trg_means = np.zeros(len(left), np.float32), np.zeros(len(right), np.float32)
        if margin != "absolute":
            forward, backward = nearest_both_ways(left, right, k)
            self._src_means, self._trg_means = forward.means, backward.means

    def score(self, src_rows: Ints, trg_rows: Ints) -> Floats:
        """Score of every pair of a source row and a target row [p]."""
        left, right = UnitRows(self._src, src_rows), UnitRows(self._trg, trg_rows)
        cosines = np.empty(len(src_rows), np.float32)
        for start in range(0, len(src_rows), _BLOCK):
            a, b = left.block(start, _BLOCK), right.block(start, _BLOCK)
            cosines[start : start + len(a)] = np.einsum("pd,pd->p", a, b)
        return apply_margin(self._margin, cosines, self._src_means[src_rows], self._trg_means[trg_rows])


@dataclass(frozen=True)
class Calibration:
    """A threshold for pairs, and what to expect of it."""

    threshold: float  # least score of a pair that is taken
    precision: float  # estimated share of right pairs among those taken; at least what was asked for
    accepted: int  # pairs taken
    pairs: int  # pairs looked at


def calibrate(scores: ArrayLike, wrong: ArrayLike, precision: float) -> Calibration:
    """Choose the lowest threshold of scores [p] whose pairs are right often enough; a ValueError says that none is.

    `wrong` are scores of pairs known to be wrong, such as shuffled ones; they stand for the wrong ones among the given.
    Were all pairs wrong, as many of them as of the known wrong ones would reach a threshold: that number, over the
    number that do reach it, bounds the share of wrong pairs (the target-decoy estimate; Elias & Gygi 2007). One wrong
    pair is added to those seen, so that few of them promise little (Phipson & Smyth 2010).
    """
    given, known = np.sort(np.asarray(scores, np.float32)), np.sort(np.asarray(wrong, np.float32))
    if not 0 < precision < 1:
        raise ValueError(f"precision = {precision} must be between 0 and 1")
    if not len(given) or not len(known):
        raise ValueError("a threshold needs pairs and wrong pairs; there are none")
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
    return Calibration(float(thresholds[lowest]), float(estimates[lowest]), int(accepted[lowest]), len(given))


def shuffled_pairs(src_rows: ArrayLike, trg_rows: ArrayLike, *, seed: int = 0) -> tuple[Ints, Ints]:
    """Pair the source rows of p pairs with target rows of other pairs; equal sentences have one row.

    About 100,000 pairs, or p if that is more, and at most p (p - 1); none of them is a given one.
    """
    src, trg = np.asarray(src_rows, np.int64), np.asarray(trg_rows, np.int64)
    order = np.random.default_rng(seed).permutation(len(src))
    turns = min(len(src) - 1, max(1, _SHUFFLED // max(1, len(src))))
    left = np.tile(src[order], max(0, turns))
    right = np.concatenate([trg[:0], *(trg[np.roll(order, turn)] for turn in range(1, turns + 1))])
    width = int(trg.max(initial=0)) + 1
    wrong = ~np.isin(left * width + right, src * width + trg)
    return left[wrong], right[wrong]
