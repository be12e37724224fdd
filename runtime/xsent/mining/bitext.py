"""Translations found by margin: sentences of two texts, or documents of two corpora.

Sentences: Artetxe & Schwenk 2019, "Margin-based parallel corpus mining with multilingual sentence embeddings",
section 3. The candidates of a sentence are its k nearest on the other side; the one with the highest margin score is
chosen.

Documents: Gong et al. 2021 (LAWDR), sections 5 and 6. The pair with the highest score is taken first, then the best of
the remaining ones.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import check_choice, real_number, whole_number
from xsent.mining.margin import LEAST_MEAN, Margin, apply_margin, check_neighbourhood, nearest_both_ways
from xsent.mining.pair_rules import PairRules
from xsent.similarity import Floats, Ints, NormalizedBlocks, TopK
from xsent.tasks import text_list

Retrieval = Literal["max", "fwd", "bwd", "intersect"]

_Score = Callable[[Floats, Floats, Floats], Floats]  # the margin of cosines, given the means of both sides

_BLOCK = 8192  # rows read at once to find zero vectors


@dataclass(frozen=True)
class DocumentPair:
    """Two aligned documents."""

    a: int  #: row of the first
    b: int  #: row of the second
    score: float  #: their margin score


@dataclass(frozen=True)
class Bitext:
    """Mined pairs, best first; ties are in the order of the source.

    Example:
        >>> pairs = Bitext(np.array([0, 1]), np.array([5, 3]), np.array([1.4, 1.2], np.float32))
        >>> pairs.at_least(1.3).trg.tolist()
        [5]
    """

    src: Ints  #: their rows on the source side [p]
    trg: Ints  #: their rows on the target side [p]
    scores: Floats  #: their margin scores [p]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, where: Ints | NDArray[np.bool_] | slice) -> "Bitext":
        """Some of the pairs."""
        return Bitext(self.src[where], self.trg[where], self.scores[where])

    def at_least(self, threshold: float) -> "Bitext":
        """The pairs whose score reaches a threshold."""
        with np.errstate(over="ignore"):  # infinity if float32 cannot hold it; no pair reaches that
            return self.take(self.scores >= np.float32(threshold))

    def swapped(self) -> "Bitext":
        """The pairs with their sides swapped."""
        return Bitext(self.trg, self.src, self.scores)

    def __add__(self, other: "Bitext") -> "Bitext":
        """The pairs of both."""
        src, trg = np.concatenate([self.src, other.src]), np.concatenate([self.trg, other.trg])
        return Bitext(src, trg, np.concatenate([self.scores, other.scores]))

    def best_first(self, *, one_to_one: bool) -> "Bitext":
        """Sort pairs by score, then by rows; `one_to_one` drops pairs with a row of a better pair."""
        ordered = self.take(np.lexsort((self.trg, self.src, -self.scores)))
        if not one_to_one:
            return ordered
        taken_src, taken_trg = (np.zeros(side.max(initial=-1) + 1, bool) for side in (self.src, self.trg))
        kept = []
        for place, (i, j) in enumerate(zip(ordered.src.tolist(), ordered.trg.tolist(), strict=True)):
            if not (taken_src[i] or taken_trg[j]):
                taken_src[i] = taken_trg[j] = True
                kept.append(place)
        return ordered.take(np.array(kept, np.int64))


def mine_bitext(
    src: ArrayLike,
    trg: ArrayLike,
    *,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    k: int = 4,
    threshold: float | None = None,
    src_rows: ArrayLike | None = None,
    trg_rows: ArrayLike | None = None,
    least_mean: float = LEAST_MEAN,
    texts: tuple[Iterable[str], Iterable[str]] | None = None,
    show_progress_bar: bool | None = False,
) -> Bitext:
    """Find pairs of translations, exactly and in bounded memory.

    Skips zero vectors, which empty sentences have. Equal sentences lower each other's margin, because they are each
    other's nearest neighbours, so select only one of them.

    Args:
        src: Vectors of the source [n, D], of any length; may be a memory map, which is read in blocks.
        trg: Vectors of the target [m, D].
        margin: "ratio", "distance" or "absolute", see `margin_scores`.
        retrieval: "fwd" takes the best target of every source, "bwd" the best source of every target, "intersect"
            the pairs found in both directions, "max" the best pairs of either direction, each sentence used once.
        k: Number of nearest neighbours that are candidates and that the margin uses.
        threshold: Lowest score of a pair; None keeps all.
        src_rows: Numbers of the source rows to select, ascending; None selects all.
        trg_rows: Like `src_rows`, for the target.
        least_mean: A mean cosine to the neighbours below this counts as this; -1 is the margin of the paper.
        texts: The sentences of all sources and of all targets. With them, texts with different numbers, such as 1987
            and 1997, or opposites, such as "open" and "fermé", are not paired, and a text is paired with its copy only
            if neither has a translation.
        show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.

    Returns:
        The pairs; their rows refer to `src` and `trg` as given.

    Raises:
        ValueError: A side has fewer than `k` rows, or the vectors cannot be compared.

    Example:
        >>> english, french = ["The cat sleeps.", "It rains."], ["Il pleut.", "Le chat dort."]
        >>> found = mine_bitext(encoder.encode(english), encoder.encode(french), k=1)
        >>> sorted((english[i], french[j]) for i, j in zip(found.src, found.trg))
        [('It rains.', 'Il pleut.'), ('The cat sleeps.', 'Le chat dort.')]
    """
    check_choice("retrieval", retrieval, get_args(Retrieval))
    threshold = None if threshold is None else real_number("threshold", threshold)
    left, right = present_rows(src, src_rows), present_rows(trg, trg_rows)
    k = check_neighbourhood(margin, k, len(left), len(right))
    rules = None if texts is None else PairRules(_chosen(texts[0], src, left), _chosen(texts[1], trg, right))
    forward, backward = nearest_both_ways(
        NormalizedBlocks(src, left),
        NormalizedBlocks(trg, right),
        k,
        apart=rules.copies if rules else None,
        show_progress_bar=show_progress_bar,
    )
    pairs = _retrieve(retrieval, partial(apply_margin, margin, least=least_mean), forward, backward, rules)
    if threshold is not None:
        pairs = pairs.at_least(threshold)
    pairs = pairs.best_first(one_to_one=retrieval == "max")
    return Bitext(left[pairs.src], right[pairs.trg], pairs.scores)


def align_documents(a: ArrayLike, b: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> list[DocumentPair]:
    """Align documents one to one, exactly.

    Unlike in `mine_bitext`, which drops a sentence whose best partner is taken, a document may get its second choice.

    Args:
        a: Vectors [n, D].
        b: Vectors [m, D]. Zero vectors, which empty documents have, are skipped on both sides.
        margin: "ratio", "distance" or "absolute", which is the cosine, see `margin_scores`.
        k: Number of nearest documents that are candidates and that the margin uses.

    Returns:
        The pairs, best first; ties are in the order of the documents.

    Raises:
        ValueError: A side has fewer than `k` non-empty documents; "absolute" accepts that.

    Example:
        >>> [(pair.a, pair.b) for pair in align_documents([[1, 0], [0, 1]], [[0, 1], [1, 0]], k=1)]
        [(0, 1), (1, 0)]
    """
    k = whole_number("k", k)
    left, right = present_rows(a), present_rows(b)
    check_neighbourhood(margin, k, len(left), len(right), of="non-empty documents")
    forward, backward = nearest_both_ways(
        NormalizedBlocks(a, left), NormalizedBlocks(b, right), min(k, len(left), len(right))
    )
    score = partial(apply_margin, margin, least=-1.0)  # vectors of documents are centred, so all means are low
    candidates = _candidates(score, forward, backward.means) + _candidates(score, backward, forward.means).swapped()
    pairs = candidates.best_first(one_to_one=True)
    return list(map(DocumentPair, left[pairs.src].tolist(), right[pairs.trg].tolist(), pairs.scores.tolist()))


def present_rows(vectors: ArrayLike, rows: ArrayLike | None = None) -> Ints:
    """Numbers of the rows, all or the given ones, whose vectors are not zero."""
    chosen = None if rows is None else _row_numbers(rows, len(NormalizedBlocks(vectors)))
    unit = NormalizedBlocks(vectors, chosen)
    blocks = [unit.block(start, _BLOCK).any(axis=1) for start in range(0, len(unit), _BLOCK)]
    present = np.flatnonzero(np.concatenate(blocks)) if blocks else np.empty(0, np.int64)
    return present if chosen is None else chosen[present]


def _row_numbers(rows: ArrayLike, count: int) -> Ints:
    with suppress(ValueError):  # not an array
        numbers = np.asarray(rows)
        if not numbers.size:
            return np.empty(0, np.int64)
        if numbers.ndim == 1 and numbers.dtype.kind in "iu" and 0 <= numbers.min() <= numbers.max() < count:
            return numbers.astype(np.int64)
    raise ValueError(f"rows = {rows!r:.80} must be whole numbers from 0 to {count - 1}")


def _chosen(texts: Iterable[str], vectors: ArrayLike, rows: Ints) -> list[str]:
    texts = text_list(texts)
    if len(texts) != len(NormalizedBlocks(vectors)):
        raise ValueError(f"{len(texts):,} texts for {len(NormalizedBlocks(vectors)):,} vectors; expected as many")
    return [texts[row] for row in rows.tolist()]


def _retrieve(retrieval: Retrieval, score: _Score, forward: TopK, backward: TopK, rules: PairRules | None) -> Bitext:
    """The pairs of one direction, or of both, that the rules allow."""
    if rules is None:
        return _directions(retrieval, score, forward, backward, rules)
    # First, because it finds the rows that are left over, which `forbidden` then refuses.
    copies = _copies(score, forward, backward, rules)
    found = _directions(retrieval, score, forward, backward, rules)
    free = np.ones(len(found), np.bool_)
    if retrieval != "bwd":
        free &= ~np.isin(found.src, copies.src)
    if retrieval != "fwd":
        free &= ~np.isin(found.trg, copies.trg)
    return found.take(free & (found.scores > -np.inf)) + copies


def _directions(retrieval: Retrieval, score: _Score, forward: TopK, backward: TopK, rules: PairRules | None) -> Bitext:
    """The pairs of one direction, or of both; those that the rules forbid have a score of minus infinity."""
    rows, columns = (np.indices(side.indices.shape)[0] for side in (forward, backward))
    if retrieval != "bwd":
        allowed = None if rules is None else ~rules.forbidden(rows, forward.indices)
        fwd = _candidates(score, forward, backward.means, best=True, allowed=allowed)
        if retrieval == "fwd":
            return fwd
    allowed = None if rules is None else ~rules.forbidden(backward.indices, columns)
    bwd = _candidates(score, backward, forward.means, best=True, allowed=allowed).swapped()
    if retrieval == "bwd":
        return bwd
    return fwd.take(bwd.src[fwd.trg] == fwd.src) if retrieval == "intersect" else fwd + bwd


def _copies(score: _Score, forward: TopK, backward: TopK, rules: PairRules) -> Bitext:
    """The copies that are pairs."""
    src, trg = rules.untranslated(forward, backward)
    one = np.ones(len(src), np.float32)
    return Bitext(src, trg, score(one, forward.means[src], backward.means[trg]))


def _candidates(
    score: _Score,
    neighbours: TopK,
    other_means: Floats,
    *,
    best: bool = False,
    allowed: NDArray[np.bool_] | None = None,
) -> Bitext:
    """Every row with each neighbour, or with the one of highest margin score; ties go to the nearest.

    Neighbours that are not `allowed` have a score of minus infinity.
    """
    scores = score(neighbours.scores, neighbours.means[:, None], other_means[neighbours.indices])
    if allowed is not None:
        scores = np.where(allowed, scores, np.float32(-np.inf))
    rows = np.arange(len(scores))
    if best:
        columns = scores.argmax(axis=1)
        return Bitext(rows, neighbours.indices[rows, columns], scores[rows, columns])
    return Bitext(rows.repeat(scores.shape[1]), neighbours.indices.ravel(), scores.ravel())
