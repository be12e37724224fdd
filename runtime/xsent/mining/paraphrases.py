"""Near-duplicates, paraphrases and translations within one text: pairs by margin, and groups of them.

The score of a pair is its cosine over the mean cosine to other near sentences. These are the neighbours after the
widest gap among a sentence's neighbours; those before the gap are its duplicates. If all neighbours counted, as
between two texts (`margin_scores`), the members of a large group would lower each other's scores.

Shapes: n rows, D dimensions, K neighbours, p pairs.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from xsent.cli.terminal import Progress
from xsent.mining.bitext import Bitext, present_rows
from xsent.mining.differences import difference
from xsent.mining.margin import STRIP, Neighbours
from xsent.similarity import CANDIDATES, QUERIES, BlockProduct, Floats, NormalizedBlocks, TopK

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder

THRESHOLD = 1.25  # a quarter nearer to each other than to other sentences

_NEIGHBOURS = 32  # searched for every row
_AROUND = 4  # neighbours after the gap whose mean cosine is used
# The mean is clamped from below, otherwise isolated sentences pair up, and from above, otherwise copies with small
# differences do not: at 1.25 a cosine below 0.75 is never enough, one above 0.94 always.
_LEAST = 0.6
_MOST = 0.75


def paraphrase_mining(
    encoder: "SentenceEncoder",
    sentences: Sequence[str],
    *,
    threshold: float = THRESHOLD,
    strict: bool = True,
    show_progress_bar: bool = False,
) -> list[tuple[float, int, int]]:
    """Find sentences that mean the same, across languages; results are those of sentence-transformers' function.

    Args:
        encoder: The encoder of the sentences.
        sentences: Texts; equal ones are pairs too, empty ones are not.
        threshold: Lowest score of a pair, see `mine_paraphrases`.
        strict: Leave out pairs that differ in a number, a negation or who did what, see `split_pairs`.
        show_progress_bar: Report progress on standard error.

    Returns:
        Score and places of each pair, the best first.
    """
    vectors = encoder.encode(sentences, on_long="split", show_progress_bar=show_progress_bar)
    pairs = mine_paraphrases(vectors, threshold=threshold, show_progress_bar=show_progress_bar)
    if strict:
        pairs, _ = split_pairs(pairs, sentences)
    return list(zip(pairs.scores.tolist(), pairs.src.tolist(), pairs.trg.tolist(), strict=True))


def mine_paraphrases(
    vectors: ArrayLike, *, threshold: float = THRESHOLD, rows: ArrayLike | None = None, show_progress_bar: bool = False
) -> Bitext:
    """Find pairs of near-duplicates among vectors, exactly and in bounded memory.

    The score is the cosine over the mean cosine to other near sentences, clamped to 0.6 to 0.75. Of more than 32
    copies of a sentence each is paired with its 32 nearest.

    Args:
        vectors: Vectors of any length [n, D]; may be a memory map, which is read in blocks. Zero vectors are left out.
        threshold: Lowest score of a pair.
        rows: Numbers of the rows to select, ascending; None selects all.
        show_progress_bar: Report progress on standard error.

    Returns:
        The pairs, the lower row first, the best pair first; rows are counted in `vectors` as given.
    """
    present = present_rows(vectors, rows)
    if len(present) < 2:
        return Bitext(present[:0], present[:0], np.empty(0, np.float32))
    near = _neighbours(NormalizedBlocks(vectors, present), show_progress_bar)
    places = np.arange(len(present))[:, None]
    around = _around(near.cosines)
    scores = near.cosines * 2 / (around[:, None] + around[near.indices])
    found = scores >= np.float32(threshold)
    lower = np.minimum(places, near.indices)[found]
    higher = np.maximum(places, near.indices)[found]
    _, first = np.unique(lower * len(places) + higher, return_index=True)  # most were found from both sides
    pairs = Bitext(present[lower[first]], present[higher[first]], scores[found][first])
    return pairs.best_first(one_to_one=False)


def split_pairs(pairs: Bitext, texts: Sequence[str]) -> tuple[Bitext, Bitext]:
    """Pairs of texts that say the same, and those that differ by the rules of `xsent.mining.differences`."""
    places = zip(pairs.src.tolist(), pairs.trg.tolist(), strict=True)
    apart = np.array([difference(texts[i], texts[j]) is not None for i, j in places], np.bool_)
    return pairs.take(~apart), pairs.take(apart)


def group_pairs(pairs: Iterable[tuple[int, int]], apart: Iterable[tuple[int, int]] = ()) -> list[list[int]]:
    """Groups that pairs connect, directly or through others: the largest first, each in ascending order.

    Pairs come best first: one that would bring two that are `apart` into one group connects nothing.
    """
    rivals = defaultdict[int, set[int]](set)
    for one, other in apart:
        rivals[one].add(other)
        rivals[other].add(one)
    group_of: dict[int, list[int]] = {}
    for pair in pairs:
        small, large = sorted((group_of.setdefault(member, [member]) for member in pair), key=len)
        if small is not large and all(rivals[member].isdisjoint(large) for member in small if member in rivals):
            large += small
            group_of |= dict.fromkeys(small, large)
    groups = {id(group): sorted(group) for group in group_of.values() if len(group) > 1}
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def _neighbours(rows: NormalizedBlocks, show_progress_bar: bool) -> Neighbours:
    """The nearest neighbours of every row, without itself."""
    best = TopK(len(rows), min(_NEIGHBOURS, len(rows) - 1))
    product = BlockProduct()
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
    """Mean cosine of every row [n] to the first neighbours after its duplicates, given the cosines of all [n, K]."""
    if cosines.shape[1] < _NEIGHBOURS:  # all other rows are neighbours
        cosines = np.pad(cosines, ((0, 0), (0, _AROUND)))
    ends = cosines.shape[1] - _AROUND
    gaps = cosines[:, :ends] / np.maximum(cosines[:, 1 : ends + 1], np.float32(_LEAST))
    after = gaps.argmax(axis=1)[:, None] + 1
    means = np.take_along_axis(cosines, after + np.arange(_AROUND), axis=1).mean(axis=1)
    clamped: Floats = np.clip(means, np.float32(_LEAST), np.float32(_MOST))
    return clamped
