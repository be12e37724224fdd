"""Groups of texts on one subject, in any language, each with a name.

First the background of a collection is taken off: what its texts have in common, such as their field, says nothing
about its groups. Without it one threshold suits collections of one field and of many.

Shapes: n rows, D dimensions, c clusters.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from xsent.bundle import TOKENIZER, builtin_path
from xsent.errors import require_extra, whole_number
from xsent.mining.bitext import present_rows
from xsent.similarity import CANDIDATES, Floats, Ints, NormalizedBlocks, unit_rows
from xsent.tokenizer import Tokenizer
from xsent.words import word_keys

THRESHOLD = 0.05
SMALLEST = 5

_MOST = 5000  # texts compared with each other, which takes 200 MiB; it grows with the square
_NEAR = 0.5  # of the way from the mean cosine to 1: two texts whose cosine is higher say about the same
_LEAST = 0.2  # cosine to the centre below which a text belongs to no cluster
_EQUAL = 1e-3  # length of what is left of a vector without the background, below which it equals the background
_WORDS = 4  # of a name
_ASIAN = "\u3040"  # before all keys of Chinese and Japanese, which are pairs of characters
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Clusters:
    """The cluster of every row, the largest first."""

    labels: Ints  #: number of each row's cluster [n], from 0; -1 is none
    cosines: Floats  #: cosine of each row to the nearest centre [n], both without the background

    @property
    def count(self) -> int:
        """The number of clusters (c)."""
        return int(self.labels.max(initial=-1)) + 1


@dataclass(frozen=True)
class ClusterName:
    """What tells a cluster from the others."""

    words: tuple[str, ...]  #: those that are more frequent in it than elsewhere, the best first
    central: int  #: row of the text nearest to its centre
    size: int  #: number of texts

    def __str__(self) -> str:
        return ", ".join(self.words)


def cluster(
    vectors: ArrayLike, number: int | None = None, *, threshold: float = THRESHOLD, smallest: int = SMALLEST
) -> Clusters:
    """Find groups of texts on one subject, whatever their language; needs scikit-learn, and gives the same each time.

    Clusters are merged while the mean cosine of their members is at least the threshold (average linkage); with a
    number, k-means makes so many. Then every text goes to the nearest centre. It belongs to none if that cosine is
    below 0.2, or if the cluster is too small. Of more than 5,000 texts, the clusters are those of 5,000 drawn ones.

    Args:
        vectors: Vectors of any length [n, D]; may be a memory map, which is read in blocks. Zero vectors are in none.
        number: Number of clusters; None lets the threshold decide.
        threshold: Mean cosine, without the background, from which two clusters are one; higher gives more clusters.
        smallest: Texts of the smallest cluster, where the threshold decides.
    """
    smallest = whole_number("smallest", smallest)
    if not -1 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold} must lie between -1 and 1")
    vectors = np.asanyarray(vectors)
    present = present_rows(vectors)
    labels = np.full(len(vectors), -1, np.int64)
    cosines = np.zeros(len(vectors), np.float32)
    if number is not None:
        number = whole_number("number", number, most=max(1, min(len(present), _MOST)))
        smallest = 1
    drawn = present
    if len(present) > _MOST:
        drawn = np.sort(np.random.default_rng(0).choice(present, _MOST, replace=False))
    sample = NormalizedBlocks(vectors, drawn).block(0, _MOST)
    background = _background(sample)
    centres = _centres(_without(sample, background), number, threshold, smallest)
    rows = NormalizedBlocks(vectors, present)
    for start in range(0, len(rows) if len(centres) else 0, CANDIDATES):
        where = present[start : start + CANDIDATES]
        scores = _without(rows.block(start, CANDIDATES), background) @ centres.T
        cosines[where] = scores.max(axis=1)
        labels[where] = np.where(cosines[where] < _LEAST, -1, scores.argmax(axis=1))
    return Clusters(_by_size(labels, smallest), cosines)


def name_clusters(clusters: Clusters, texts: Sequence[str]) -> list[ClusterName]:
    """Name every cluster by the words that set it apart, and by its central text.

    The weight of a word is the share p of the cluster's texts that have it, times log(p / q), times log(1 / q), where q
    is its share of all texts: as in tf-idf, words that are everywhere weigh nothing. It is also times the root of
    the word's rarity in the languages of the built-in model: no cluster of German texts is named "der". Spellings of a
    word count as one.
    """
    if len(texts) != len(clusters.labels):
        raise ValueError(f"{len(texts):,} texts for {len(clusters.labels):,} rows of clusters; expected one for each")
    words = [{keys[0]: keys for keys in word_keys(text) if _is_telling(keys[0])} for text in texts]
    everywhere = Counter(key for found in words for key in found)
    rarity = Tokenizer(builtin_path() / TOKENIZER).rarity
    distinct = {key: keys for found in words for key, keys in found.items()}
    rare = {key: sqrt(rarity(keys)) for key, keys in distinct.items()}
    names = []
    for number in range(clusters.count):
        members = np.flatnonzero(clusters.labels == number).tolist()
        here = Counter(key for row in members for key in words[row])
        weights = {
            key: rare[key] * _weight(count / len(members), everywhere[key] / len(texts)) for key, count in here.items()
        }
        best = sorted(weights, key=lambda key: (-weights[key], key))[:_WORDS]
        spelled = _spelled(best, [texts[row] for row in members])
        names.append(ClusterName(spelled, members[clusters.cosines[members].argmax()], len(members)))
    return names


def _background(rows: Floats) -> Floats:
    """The mean [D] of rows of length 1 in which each subject has the same weight, however many texts it has.

    A row counts by one over the number of rows near to it. In a plain mean, a subject of most texts would be the
    background, and what is left of all others alike.
    """
    if not len(rows):
        return np.zeros(rows.shape[1], np.float32)
    common = float(np.square(rows.mean(axis=0)).sum())  # the mean cosine
    near = (rows @ rows.T > common + _NEAR * (1 - common)).sum(axis=1)
    return np.average(rows, axis=0, weights=1 / np.maximum(1, near)).astype(np.float32)


def _without(rows: Floats, background: Floats) -> Floats:
    """Rows of length 1 without the background, again of length 1."""
    rest = rows - background
    rest[np.linalg.norm(rest, axis=1) < _EQUAL] = 0
    return unit_rows(rest)


def _centres(rows: Floats, number: int | None, threshold: float, smallest: int) -> Floats:
    """Centres [c, D] of the clusters of rows without their background."""
    rows = rows[rows.any(axis=1)]
    with require_extra("cluster"):
        from sklearn.cluster import AgglomerativeClustering, KMeans
    if len(rows) < 2:  # all texts are equal
        return rows[:0]
    if number is not None:
        labels = KMeans(min(number, len(rows)), n_init=10, random_state=0).fit_predict(rows)
    else:
        distance = max(0, 1 - threshold)
        linkage = AgglomerativeClustering(None, metric="cosine", linkage="average", distance_threshold=distance)
        labels = linkage.fit_predict(rows)
    kept = np.flatnonzero(np.bincount(labels) >= smallest)
    return unit_rows(np.array([rows[labels == one].sum(axis=0) for one in kept]).reshape(-1, rows.shape[1]))


def _by_size(labels: Ints, smallest: int) -> Ints:
    """Clusters numbered by size, the largest first, of equal ones the first; those that are too small are none."""
    known, first, counts = np.unique(labels, return_index=True, return_counts=True)
    kept = (known >= 0) & (counts >= smallest)
    order = np.lexsort((first, -counts))
    numbers = np.full(len(known), -1, np.int64)
    numbers[order[kept[order]]] = np.arange(np.count_nonzero(kept))
    return numbers[np.searchsorted(known, labels)]


def _is_telling(key: str) -> bool:
    return (len(key) > 2 or key > _ASIAN) and not key.isdigit()


def _weight(share: float, everywhere: float) -> float:
    return share * log(share / everywhere) * log(1 / everywhere)


def _spelled(keys: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Words as most texts spell them; a key that is no word, such as two characters of Japanese, stays as it is."""
    spellings = {key: Counter[str]() for key in keys}
    for word in (word for text in texts for word in _WORD.findall(text)):
        key = next(word_keys(word), ("",))[0]
        if key in spellings:
            spellings[key][word] += 1
    return tuple(found.most_common(1)[0][0] if found and key < _ASIAN else key for key, found in spellings.items())
