"""Documents of two languages that are translations of each other: one to one, the best pair first.

Gong et al. 2021 (LAWDR), sections 5 and 6: candidates are the nearest by cosine, pairs are taken in decreasing margin
score (equation 4), recall is the share of true pairs found.

Shapes: n and m documents on the two sides, D dimensions.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from xsent.mining.bitext import first_uses
from xsent.mining.margin import Margin, apply_margin, check_neighbourhood, nearest_both_ways
from xsent.similarity import UnitRows


@dataclass(frozen=True)
class Pair:
    """Two documents that were aligned."""

    a: int  # row of the one
    b: int  # row of the other
    score: float  # their margin score


def align_documents(a: ArrayLike, b: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> list[Pair]:
    """Align documents one to one: of all candidates the pair of highest score, then the next of those left, and so on.

    Unlike `mine_bitext`, which drops a sentence whose best partner is taken, a document may get its second choice.

    Args:
        a: Vectors [n, D].
        b: Vectors [m, D]. Zero vectors, those of empty documents, take no part on either side.
        margin: "ratio", "distance" or "absolute", which is the cosine, see `margin_scores`.
        k: Nearest documents that are candidates, and that a score is compared with.

    Returns:
        The pairs, best first; of equal scores in the order of the documents.

    Raises:
        TypeError: `a` or `b` is not made of numbers.
        ValueError: `margin` is not offered, the dimensions differ, or a side has fewer than `k` documents that are not
            empty ("absolute" is content with fewer).
    """
    left, right = (np.flatnonzero(np.asarray(side).any(axis=1)) for side in (a, b))
    smaller = min(len(left), len(right))
    if margin != "absolute" and 0 < smaller < k:
        raise ValueError(
            f"k = {k} neighbours, but one side has only {smaller} documents that are not empty; choose a smaller k, or "
            "the margin absolute, which needs none"
        )
    check_neighbourhood(margin, k, len(left), len(right))
    forward, backward = nearest_both_ways(UnitRows(a, left), UnitRows(b, right), min(k, smaller))
    rows = np.concatenate([np.repeat(left, forward.indices.shape[1]), left[backward.indices.ravel()]])
    columns = np.concatenate([right[forward.indices.ravel()], np.repeat(right, backward.indices.shape[1])])
    scores = np.concatenate(
        [
            apply_margin(margin, forward.cosines, forward.means[:, None], backward.means[forward.indices]).ravel(),
            apply_margin(margin, backward.cosines, forward.means[backward.indices], backward.means[:, None]).ravel(),
        ]
    )
    order = np.lexsort((columns, rows, -scores))
    order = order[first_uses(rows[order], columns[order])]
    return list(map(Pair, rows[order].tolist(), columns[order].tolist(), scores[order].tolist()))


def recall(pairs: Iterable[Pair], gold: Set[tuple[int, int]]) -> float:
    """Share of the true pairs (a, b) that were found, in per cent.

    Raises:
        ValueError: There is no true pair.
    """
    if not gold:
        raise ValueError("no true pair to find")
    return 100 * len({(pair.a, pair.b) for pair in pairs} & gold) / len(gold)
