"""Groups of texts on one subject, in any language.

First, the background of a collection is subtracted: what all its texts have in common, such as their field, does not
separate groups. After that, one threshold suits collections from one field and from many. Each language has its own
background, such as how people address each other in it.

Shapes: n rows, D dimensions, c clusters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import real_number, require_extra, whole_number
from xsent.languages import language_of
from xsent.mining.bitext import present_rows
from xsent.similarity import CANDIDATES, Floats, Ints, NormalizedBlocks, unit_rows
from xsent.tasks import text_list
from xsent.words import has_words

THRESHOLD = 0.05
SMALLEST = 5

_MOST = 5000  # most texts compared with each other, which takes 200 MiB; memory grows with the square
_NEAR = 0.5  # of the way from the mean cosine to 1: two texts with a higher cosine say nearly the same
_LEAST = 0.2  # below this cosine to the centre a text belongs to no cluster
_EQUAL = 1e-3  # a vector equals the background if less than this length is left after subtracting it
_FEW = 10  # texts at which a language's own background counts half: the mean of a few is mostly chance


@dataclass(frozen=True)
class Clusters:
    """The cluster of every row; clusters are numbered by size, largest first."""

    labels: Ints  #: number of each row's cluster [n], from 0; -1 means none
    cosines: Floats  #: cosine of each row to the nearest centre [n], both after subtracting the background

    @property
    def count(self) -> int:
        """The number of clusters (c)."""
        return int(self.labels.max(initial=-1)) + 1


def cluster(
    vectors: ArrayLike,
    number: int | None = None,
    *,
    texts: Iterable[str] | None = None,
    threshold: float = THRESHOLD,
    smallest: int = SMALLEST,
) -> Clusters:
    """Find groups of texts on one subject, whatever their language; deterministic, needs scikit-learn.

    Clusters are merged while the mean cosine of their members is at least the threshold (average linkage); with a
    number, k-means finds that many. Then every text joins the nearest centre, or no cluster if that cosine is below
    0.2 or the cluster is too small. With more than 5,000 texts, clusters are built from a random sample of 5,000.

    Args:
        vectors: Vectors of any length [n, D]; may be a memory map, which is read in blocks. Zero vectors join no
            cluster. Greetings and sign-offs would form clusters: encode texts after `strip_boilerplate`.
        number: Number of clusters; None lets the threshold decide.
        texts: The texts [n], to detect their languages: what the texts of a language have in common is subtracted,
            too, so that clusters do not follow the language. Texts without words, such as "..." or
            "N/A", join no cluster.
        threshold: Mean cosine, after subtracting the background, from which two clusters are merged; higher values
            give more clusters.
        smallest: Fewest texts of a cluster when the threshold decides.

    Example:
        >>> cluster(encoder.encode(MAILS), texts=MAILS, smallest=2).labels.tolist()
        [0, 0, 1, 1]
    """
    smallest = whole_number("smallest", smallest)
    threshold = real_number("threshold", threshold, -1, 1)
    vectors = np.asanyarray(vectors)
    texts = None if texts is None else text_list(texts)
    languages = _languages(texts, len(vectors))
    present = _present(vectors, texts)
    labels = np.full(len(vectors), -1, np.int64)
    cosines = np.zeros(len(vectors), np.float32)
    if number is not None:
        number = whole_number("number", number, most=max(1, min(len(present), _MOST)))
        smallest = 1
    drawn = _drawn(present)
    sample = NormalizedBlocks(vectors, drawn).block(0, _MOST)
    backgrounds = _backgrounds(sample, languages[drawn])
    centres = _centres(_without(sample, languages[drawn], backgrounds), number, threshold, smallest)
    rows = NormalizedBlocks(vectors, present)
    for start in range(0, len(rows) if len(centres) else 0, CANDIDATES):
        where = present[start : start + CANDIDATES]
        scores = _without(rows.block(start, CANDIDATES), languages[where], backgrounds) @ centres.T
        cosines[where] = scores.max(axis=1)
        labels[where] = np.where(cosines[where] < _LEAST, -1, scores.argmax(axis=1))
    return Clusters(_by_size(labels, smallest), cosines)


def without_background(vectors: ArrayLike, texts: Iterable[str] | None = None) -> Floats:
    """Vectors [n, D] as `cluster` compares them: without the backgrounds of all texts and of languages, length 1.

    Vectors that are zero or equal the background become zero, as do those of texts without words.

    Example:
        >>> without_background(encoder.encode(MAILS), MAILS).shape
        (4, 384)
    """
    vectors = np.asanyarray(vectors)
    texts = None if texts is None else text_list(texts)
    languages = _languages(texts, len(vectors))
    present = _present(vectors, texts)
    rows = unit_rows(vectors[present])
    drawn = np.searchsorted(present, _drawn(present))
    rest = np.zeros(vectors.shape, np.float32)
    rest[present] = _without(rows, languages[present], _backgrounds(rows[drawn], languages[present[drawn]]))
    return rest


def _languages(texts: Sequence[str] | None, count: int) -> NDArray[np.str_]:
    """The language of each text [n]; empty if unknown."""
    if texts is None:
        return np.full(count, "")
    if len(texts) != count:
        raise ValueError(f"{len(texts):,} texts for {count:,} vectors; expected one per vector")
    return np.array([language_of(text) for text in texts], np.str_)


def _present(vectors: np.ndarray[Any, Any], texts: Sequence[str] | None) -> Ints:
    """Numbers of the rows that may belong to a cluster."""
    rows = present_rows(vectors)
    return rows if texts is None else rows[[has_words(texts[row]) for row in rows.tolist()]]


def _drawn(rows: Ints) -> Ints:
    """All rows, or a random sample of as many as can be compared with each other."""
    if len(rows) <= _MOST:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, _MOST, replace=False))


def _backgrounds(rows: Floats, languages: NDArray[np.str_]) -> dict[str, Floats]:
    """The background [D] of the rows of each language; the empty name has that of all rows."""
    common = _background(rows)
    found = {"": common}
    for language in sorted({*languages.tolist()} - {""}):
        own = rows[languages == language]
        found[language] = common + np.float32(len(own) / (len(own) + _FEW)) * (_background(own) - common)
    return found


def _background(rows: Floats) -> Floats:
    """The mean [D] of rows of length 1, weighting each subject equally, however many texts it has.

    A row's weight is one over the number of rows near it. In a plain mean, a subject with most of the texts would
    become the background, and all other subjects would look alike without it.
    """
    if not len(rows):
        return np.zeros(rows.shape[1], np.float32)
    common = float(np.square(rows.mean(axis=0)).sum())  # the mean cosine
    near = (rows @ rows.T > common + _NEAR * (1 - common)).sum(axis=1)
    return np.average(rows, axis=0, weights=1 / np.maximum(1, near)).astype(np.float32)


def _without(rows: Floats, languages: NDArray[np.str_], backgrounds: Mapping[str, Floats]) -> Floats:
    """Rows of length 1 minus the backgrounds of their languages, scaled back to length 1."""
    rest = rows - backgrounds[""]
    for language in {*languages.tolist()} & backgrounds.keys() - {""}:
        rest[languages == language] = rows[languages == language] - backgrounds[language]
    rest[np.linalg.norm(rest, axis=1) < _EQUAL] = 0
    return unit_rows(rest)


def _centres(rows: Floats, number: int | None, threshold: float, smallest: int) -> Floats:
    """Centres [c, D] of the clusters of rows from which the background was subtracted."""
    rows = rows[rows.any(axis=1)]
    with require_extra("cluster"):  # scikit-learn requires SciPy, which is imported in a third of its time
        if number is None:
            from scipy.cluster.hierarchy import fcluster, linkage
        else:
            from sklearn.cluster import KMeans
    if len(rows) < 2:  # all texts are equal
        return rows[:0]
    if number is None:
        labels = fcluster(linkage(rows, "average", "cosine"), max(0, 1 - threshold), "distance")
    else:
        labels = KMeans(min(number, len(rows)), n_init=10, random_state=0).fit_predict(rows)
    kept = np.flatnonzero(np.bincount(labels) >= smallest)
    return unit_rows(np.array([rows[labels == one].sum(axis=0) for one in kept]).reshape(-1, rows.shape[1]))


def _by_size(labels: Ints, smallest: int) -> Ints:
    """Number clusters by size, largest first, ties by first row; dissolve those that are too small."""
    known, first, counts = np.unique(labels, return_index=True, return_counts=True)
    kept = (known >= 0) & (counts >= smallest)
    order = np.lexsort((first, -counts))
    numbers = np.full(len(known), -1, np.int64)
    numbers[order[kept[order]]] = np.arange(np.count_nonzero(kept))
    return numbers[np.searchsorted(known, labels)]
