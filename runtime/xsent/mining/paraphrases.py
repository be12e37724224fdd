"""Near-duplicates, paraphrases and translations within one text: pairs by margin, and groups of them.

The score of a pair is its cosine over the mean cosine to other near sentences. These are the neighbours after the
widest gap among a sentence's neighbours; those before the gap are its duplicates. If all neighbours counted, as
between two texts (`margin_scores`), the members of a large group would lower each other's scores.

Vectors hardly separate "Smoking is allowed." from "Smoking is forbidden.". The rules of `difference` do, using only
words:

- Number: each text has a number that the other lacks, in any notation or in words, or the same one of another unit.
- Negation: one text has a word that negates or forbids in its language, and the other none, nor one that implies it.
- Opposite: one text has a word such as "before", "open" or "Monday", and the other one that excludes it; or the texts
  differ only in a prefix that negates a word ("stable", "unstable").
- Order: both have the same words, and more than one group of them has moved ("Anna paid Bert", "Bert paid Anna"); or
  both have the same two names in reverse order ("Anna a payé Bert"), and no word that marks a passive or a list.

Shapes: n rows, D dimensions, K neighbours, p pairs.
"""

import hashlib
import operator
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from xsent.errors import real_number
from xsent.mining.bitext import Bitext, present_rows
from xsent.mining.margin import compare_blocks
from xsent.mining.negation import negations_differ
from xsent.mining.opposites import opposed
from xsent.mining.quantities import differ, quantities
from xsent.similarity import Floats, Ints, NormalizedBlocks, TopK
from xsent.tasks import text_list
from xsent.words import has_words, normalize

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder

THRESHOLD = 1.25  # pairs a quarter nearer to each other than to other sentences

_NEIGHBOURS = 32  # per row
_BLOCK = 8192  # rows read at once to find equal ones
_AROUND = 4  # neighbours after the gap whose cosines are averaged
# The mean is clamped: from below, or isolated sentences would pair up; from above, or copies with small differences
# would not. At 1.25 a cosine below 0.75 is never enough, one above 0.94 always is.
_LEAST = 0.6
_MOST = 0.75

Difference = Literal["number", "negation", "opposite", "order"]

_WORD = re.compile(r"[^\W\d_]+")
# Words that are subjects by their form: "Gestern kam ich" is "Ich kam gestern".
_SUBJECTS = set("ich du er wir ik jij hij wij we".split())
_JAPANESE_ROLES = re.compile("(?>(.+?)[はが])(?>(.+?)[をに])(.+)", re.DOTALL)  # atomic, for linear time
_LIST = set("and et und y e or ou oder o и или".split())  # what is on both sides of these may be swapped
_ALIKE = 2  # most words with which both sides begin or end, such as an article
# Words that mark a passive or a list, in which names may come in another order.
_PASSIVE = _LIST | set("by par von da por pelo pela dal door en of".split())


def paraphrase_mining(
    encoder: "SentenceEncoder",
    sentences: Iterable[str],
    *,
    threshold: float = THRESHOLD,
    strict: bool = True,
    show_progress_bar: bool | None = False,
) -> list[tuple[float, int, int]]:
    """Find sentences that mean the same, across languages; results as in sentence-transformers.

    Args:
        encoder: The encoder of the sentences.
        sentences: Texts; equal ones are pairs, too, those without words, such as "N/A", are not.
        threshold: Lowest score of a pair, see `mine_paraphrases`.
        strict: Skip pairs that differ in a number, a negation, an opposite or who did what, see `split_pairs`.
        show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.

    Returns:
        Score and positions of each pair, best first.

    Example:
        >>> mails = ["My parcel is late.", "The invoice is wrong.", "Mon colis est en retard."]
        >>> [(i, j) for score, i, j in paraphrase_mining(encoder, mails, threshold=1.1)]
        [(0, 2)]
    """
    sentences = text_list(sentences, "sentence")
    vectors = encoder.encode(sentences, on_long="split", show_progress_bar=show_progress_bar)
    rows = [row for row, text in enumerate(sentences) if has_words(text)]
    pairs = mine_paraphrases(vectors, threshold=threshold, rows=rows, show_progress_bar=show_progress_bar)
    if strict:
        pairs, _ = split_pairs(pairs, sentences)
    return list(zip(pairs.scores.tolist(), pairs.src.tolist(), pairs.trg.tolist(), strict=True))


def mine_paraphrases(
    vectors: ArrayLike,
    *,
    threshold: float = THRESHOLD,
    rows: ArrayLike | None = None,
    show_progress_bar: bool | None = False,
) -> Bitext:
    """Find pairs of near-duplicates among vectors, exactly and in bounded memory.

    The score is the cosine over the mean cosine to other near sentences, clamped to 0.6 to 0.75. Of
    equal vectors, the first is paired with every other one and with near-duplicates, at most 32.

    Args:
        vectors: Vectors of any length [n, D]; may be a memory map, which is read in blocks. Zero vectors are skipped.
        threshold: Lowest score of a pair.
        rows: Numbers of the rows to select, ascending; None selects all.
        show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.

    Returns:
        The pairs, best first, each with its lower row first; rows refer to `vectors` as given.

    Example:
        >>> mails = ["My parcel is late.", "The invoice is wrong.", "Mon colis est en retard."]
        >>> found = mine_paraphrases(encoder.encode(mails), threshold=1.1)
        >>> list(zip(found.src.tolist(), found.trg.tolist()))
        [(0, 2)]
    """
    threshold = real_number("threshold", threshold)
    present = present_rows(vectors, rows)
    first = _first_equal(NormalizedBlocks(vectors, present))
    distinct, copies = np.flatnonzero(first == np.arange(len(first))), np.flatnonzero(first != np.arange(len(first)))
    pairs, around = _near_pairs(NormalizedBlocks(vectors, present[distinct]), threshold, show_progress_bar)
    places = np.searchsorted(distinct, first[copies])
    equal = Bitext(first[copies], copies, np.float32(1) / around[places])
    pairs = (Bitext(distinct[pairs.src], distinct[pairs.trg], pairs.scores) + equal).at_least(threshold)
    return Bitext(present[pairs.src], present[pairs.trg], pairs.scores).best_first(one_to_one=False)


def split_pairs(pairs: Bitext, texts: Iterable[str]) -> tuple[Bitext, Bitext]:
    """Split pairs into texts that mean the same and texts that differ by the rules of `difference`.

    Example:
        >>> texts = ["Pay 20 euros.", "Zahlen Sie 20 Euro.", "Zahlen Sie 30 Euro."]
        >>> same, apart = split_pairs(Bitext(np.array([0, 0]), np.array([1, 2]), np.ones(2, np.float32)), texts)
        >>> same.trg.tolist(), apart.trg.tolist()
        ([1], [2])
    """
    texts = text_list(texts)
    if (needed := int(max(pairs.src.max(initial=-1), pairs.trg.max(initial=-1))) + 1) > len(texts):
        raise ValueError(f"{len(texts):,} texts for pairs of {needed:,} or more rows; pass the texts of all rows")
    places = zip(pairs.src.tolist(), pairs.trg.tolist(), strict=True)
    apart = np.array([difference(texts[i], texts[j]) is not None for i, j in places], np.bool_)
    return pairs.take(~apart), pairs.take(apart)


def difference(first: str, second: str) -> Difference | None:
    """How two texts, each in one of the nine languages, differ; None if these rules find no difference.

    Example:
        >>> difference("The train leaves at nine.", "Der Zug fährt um zehn ab.")
        'number'
    """
    if differ(quantities(first), quantities(second)):
        return "number"
    texts = [normalize("NFKC", text) for text in (first, second)]
    if negations_differ(*texts):
        return "negation"
    if opposed(*texts):
        return "opposite"
    words = [_WORD.findall(text) for text in texts]
    return "order" if _reordered(*words) or _names_swapped(*words) or _roles_swapped(*texts) else None


def group_pairs(pairs: Iterable[tuple[int, int]], apart: Iterable[tuple[int, int]] = ()) -> list[list[int]]:
    """Groups connected by pairs, directly or through others: largest first, each in ascending order.

    Pairs come best first; a pair is skipped if it would bring two that are `apart` into one group.

    Example:
        >>> group_pairs([(0, 3), (3, 7), (1, 2)])
        [[0, 3, 7], [1, 2]]
    """
    rivals = defaultdict[int, set[int]](set)
    for one, other in apart:
        rivals[one].add(other)
        rivals[other].add(one)
    group_of: dict[int, list[int]] = {}
    for pair in pairs:
        try:
            left, right = map(operator.index, pair)  # numbers of NumPy, too, become ints
        except (TypeError, ValueError):
            raise TypeError(f"got {pair!r:.80}; expected pairs of rows, such as (i, j) for score, i, j") from None
        small, large = sorted((group_of.setdefault(member, [member]) for member in (left, right)), key=len)
        if small is not large and all(rivals[member].isdisjoint(large) for member in small if member in rivals):
            large += small
            group_of |= dict.fromkeys(small, large)
    groups = {id(group): sorted(group) for group in group_of.values() if len(group) > 1}
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def _near_pairs(rows: NormalizedBlocks, threshold: float, show_progress_bar: bool | None) -> tuple[Bitext, Floats]:
    """Pairs of rows [n] that differ, and the mean cosine around every row [n]."""
    if len(rows) < 2:
        none = np.empty(0, np.int64)
        return Bitext(none, none, np.empty(0, np.float32)), np.full(len(rows), _LEAST, np.float32)
    near = _neighbours(rows, show_progress_bar)
    places = np.arange(len(rows))[:, None]
    around = _around(near.scores)
    scores = near.scores * 2 / (around[:, None] + around[near.indices])
    found = scores >= np.float32(threshold)
    lower = np.minimum(places, near.indices)[found]
    higher = np.maximum(places, near.indices)[found]
    _, first = np.unique(lower * len(places) + higher, return_index=True)  # most are found from both sides
    return Bitext(lower[first], higher[first], scores[found][first]), around


def _first_equal(rows: NormalizedBlocks) -> Ints:
    """For every row [n] the first one that equals it: copies would take the places of other neighbours."""
    if not len(rows):
        return np.empty(0, np.int64)
    digests = [
        hashlib.blake2b(row.tobytes(), digest_size=16).digest()
        for start in range(0, len(rows), _BLOCK)
        for row in rows.block(start, _BLOCK)
    ]
    _, first, number = np.unique(np.array(digests, "V16"), return_index=True, return_inverse=True)
    firsts: Ints = first[number]
    return firsts


def _neighbours(rows: NormalizedBlocks, show_progress_bar: bool | None) -> TopK:
    """The nearest neighbours of every row, except itself."""
    best = TopK(len(rows), min(_NEIGHBOURS, len(rows) - 1))
    for top, first, scores in compare_blocks(rows, rows, show_progress_bar=show_progress_bar):
        own = np.arange(max(top, first), min(top + len(scores), first + scores.shape[1]))
        scores[own - top, own - first] = -np.inf  # itself
        best.add(top, first, scores)
    return best


def _around(cosines: Floats) -> Floats:
    """Mean cosine of every row [n] to the first neighbours after its duplicates, from the cosines of all [n, K]."""
    if cosines.shape[1] < _NEIGHBOURS:  # all other rows are neighbours
        cosines = np.pad(cosines, ((0, 0), (0, _AROUND)))
    ends = cosines.shape[1] - _AROUND
    gaps = cosines[:, :ends] / np.maximum(cosines[:, 1 : ends + 1], np.float32(_LEAST))
    after = gaps.argmax(axis=1)[:, None] + 1
    means = np.take_along_axis(cosines, after + np.arange(_AROUND), axis=1).mean(axis=1)
    clamped: Floats = np.clip(means, np.float32(_LEAST), np.float32(_MOST))
    return clamped


def _reordered(first: list[str], second: list[str]) -> bool:
    """Whether the same words are in another order; one group, or the sides of a list, may have moved."""
    left, right = ([word.casefold() for word in words] for words in (first, second))
    if left == right or sorted(left) != sorted(right):
        return False
    start = next(place for place, (one, other) in enumerate(zip(left, right, strict=True)) if one != other)
    end = next(place for place in range(len(left), 0, -1) if left[place - 1] != right[place - 1])
    if _sides_swapped(left, right, start, end):
        return False
    left, right = left[start:end], right[start:end]
    if _SUBJECTS & {left[0], left[-1], right[0], right[-1]}:
        return False
    turned, wanted = (f" {' '.join(words)} " for words in (left + left, right))
    return wanted not in turned


def _sides_swapped(left: list[str], right: list[str], start: int, end: int) -> bool:
    """Whether texts that differ from `start` to `end` have the sides of a list swapped: the cat and the dog."""
    return any(
        [*left[at + 1 : last], left[at], *left[first:at]] == right[first:last]
        for at in range(start, end)
        if left[at] in _LIST
        for first in range(max(0, start - _ALIKE), start + 1)
        for last in range(end, min(len(left), end + _ALIKE) + 1)
    )


def _names_swapped(first: list[str], second: list[str]) -> bool:
    names = [word for word in first if word[0].isupper() and len(word) > 2 and word in second]
    if len(names) != 2 or names[0] == names[1] or second.index(names[0]) < second.index(names[1]):
        return False
    return not _PASSIVE & {word.lower() for word in first + second}


def _roles_swapped(first: str, second: str) -> bool:
    """Whether two Japanese texts have the same subject and object, swapped."""
    left, right = _JAPANESE_ROLES.fullmatch(first), _JAPANESE_ROLES.fullmatch(second)
    return left is not None and right is not None and left.group(1, 2, 3) == right.group(2, 1, 3)
