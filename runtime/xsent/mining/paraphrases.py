"""Near-duplicates, paraphrases and translations within one text: pairs by margin, and groups of them.

A pair counts by its cosine over that of what else is near: of the neighbours behind the widest gap among a sentence's
own, for those before it are its duplicates. With all of them, as between two texts (`margin_scores`), the members of a
large group would hide each other.

Shapes: n rows, D dimensions, K neighbours, p pairs.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from xsent.cli.terminal import Progress
from xsent.mining.bitext import Bitext, present_rows
from xsent.mining.margin import STRIP, Neighbours
from xsent.similarity import CANDIDATES, QUERIES, BlockProduct, Floats, NormalizedBlocks, TopK

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder


THRESHOLD = 1.25  # a quarter nearer to each other than to what is around them

_NEIGHBOURS = 32  # looked at for every row
_AROUND = 4  # of them are what is around it
# What is around counts as at least so near, or two sentences that nothing resembles were a pair; and at most, or many
# copies with small differences were none: with 1.25 a cosine below 0.75 is never enough, one above 0.94 always.
_LEAST, _MOST = 0.6, 0.75


def paraphrase_mining(
    encoder: "SentenceEncoder",
    sentences: Sequence[str],
    *,
    threshold: float = THRESHOLD,
    show_progress_bar: bool = False,
) -> list[tuple[float, int, int]]:
    """Find sentences that mean the same, across languages, in the form of sentence-transformers' function of that name.

    Args:
        encoder: What makes their vectors.
        sentences: Texts; equal ones are pairs too, empty ones are not.
        threshold: Least score of a pair, see `mine_paraphrases`.
        show_progress_bar: Report progress on standard error.

    Returns:
        Score and places of each pair, the best first.
    """
    vectors = encoder.encode(sentences, on_long="split", show_progress_bar=show_progress_bar)
    pairs = mine_paraphrases(vectors, threshold=threshold, show_progress_bar=show_progress_bar)
    return list(zip(pairs.scores.tolist(), pairs.src.tolist(), pairs.trg.tolist(), strict=True))


def mine_paraphrases(
    vectors: ArrayLike, *, threshold: float = THRESHOLD, rows: ArrayLike | None = None, show_progress_bar: bool = False
) -> Bitext:
    """Find pairs of near-duplicates among vectors, exactly and in bounded memory.

    The score is the cosine over the mean cosine of what is around the two, between 0.6 and 0.75. Of more than 32
    copies of a sentence each is paired with its 32 nearest.

    Args:
        vectors: Of any length [n, D]; may be a memory map, which is read in blocks. Zero vectors take no part.
        threshold: Least score of a pair.
        rows: Numbers of the rows that take part, ascending; None lets all.
        show_progress_bar: Report progress on standard error.

    Returns:
        The pairs, the lower row first, the best pair first; rows are counted in `vectors` as given.
    """
    taking_part = present_rows(vectors, rows)
    if len(taking_part) < 2:
        return Bitext(taking_part[:0], taking_part[:0], np.empty(0, np.float32))
    near = _neighbours(NormalizedBlocks(vectors, taking_part), show_progress_bar)
    places = np.arange(len(taking_part))[:, None]
    around = _around(near.cosines)
    scores = near.cosines * 2 / (around[:, None] + around[near.indices])
    found = scores >= np.float32(threshold)
    lower, higher = np.minimum(places, near.indices)[found], np.maximum(places, near.indices)[found]
    _, first = np.unique(lower * len(places) + higher, return_index=True)  # most were found from both sides
    pairs = Bitext(taking_part[lower[first]], taking_part[higher[first]], scores[found][first])
    return pairs.best_first(one_to_one=False)


def group_pairs(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Groups of what pairs connect, directly or through others: the largest first, each in ascending order."""
    group_of: dict[int, list[int]] = {}
    for pair in pairs:
        small, large = sorted((group_of.setdefault(member, [member]) for member in pair), key=len)
        if small is not large:
            large += small
            group_of |= dict.fromkeys(small, large)
    groups = {id(group): sorted(group) for group in group_of.values()}
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def _neighbours(rows: NormalizedBlocks, show_progress_bar: bool) -> Neighbours:
    """The nearest of every row but itself."""
    best, product = TopK(len(rows), min(_NEIGHBOURS, len(rows) - 1)), BlockProduct()
    with Progress("sentences compared", len(rows), enabled=show_progress_bar) as progress:
        for start in range(0, len(rows), STRIP):
            strip = rows.block(start, STRIP)
            for first in range(0, len(rows), CANDIDATES):
                block = rows.block(first, CANDIDATES)
                for line in range(0, len(strip), QUERIES):
                    scores = product(strip[line : line + QUERIES], block)
                    top = start + line
                    own = np.arange(max(top, first), min(top + len(scores), first + len(block)))
                    scores[own - top, own - first] = -np.inf  # itself
                    best.add(top, first, scores)
            progress.advance(len(strip))
    return Neighbours(best.indices, best.scores)


def _around(cosines: Floats) -> Floats:
    """Mean cosine of every row [n] to the first neighbours behind its duplicates, given those of all [n, K]."""
    if cosines.shape[1] < _NEIGHBOURS:  # these are all that there are
        cosines = np.pad(cosines, ((0, 0), (0, _AROUND)))
    ends = cosines.shape[1] - _AROUND
    gaps = cosines[:, :ends] / np.maximum(cosines[:, 1 : ends + 1], np.float32(_LEAST))
    behind = gaps.argmax(axis=1)[:, None] + 1
    means = np.take_along_axis(cosines, behind + np.arange(_AROUND), axis=1).mean(axis=1)
    limited: Floats = np.clip(means, np.float32(_LEAST), np.float32(_MOST))
    return limited
