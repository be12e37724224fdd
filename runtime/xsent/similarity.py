"""Cosine similarity and exact nearest neighbours, in blocks of bounded memory.

Shapes: q queries, c candidates, D dimensions.
"""

import mmap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import whole_number
from xsent.precision import as_float32

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Rows of two sides that are scored at once; their scores take 16 MiB, so the next passes find them in the cache.
QUERIES = 1024
CANDIDATES = 4096

# The most by which two float32 products of the same rows, of length 1, may differ: 2^-23 for each of up to 1,024
# numbers. In practice it is less than a hundredth of that.
_ROUNDING = 2.0**-13
_PAIRS = 4096  # pairs of rows whose products are computed at once

_TINY = np.float32(1e-15)  # the squares of a shorter vector lose digits or become 0

_EVEN = 64  # rows: products of a multiple of this many give equal rows equal scores, others may differ by rounding
_MANY = 4  # times k: if a line has more hits than this, they are cut to k before sorting


def cosine_similarity(a: ArrayLike, b: ArrayLike) -> Floats:
    """Cosine of every vector of `a` with every vector of `b`.

    Args:
        a: Vectors [n, D], or one [D].
        b: Vectors [m, D], or one [D].

    Returns:
        Cosines [n, m] between -1 and 1; 0 for a zero vector.

    Example:
        >>> cosine_similarity([[1, 0], [0, 2]], [[3, 0]]).tolist()
        [[1.0], [0.0]]
    """
    left, right = unit_rows(a), unit_rows(b)
    check_same_dim(left.shape[1], right.shape[1])
    return clipped(left @ right.T)


cos_sim = cosine_similarity  # the name in sentence-transformers


def row_cosines(a: ArrayLike, b: ArrayLike) -> Floats:
    """Cosine [n] of every vector of `a` [n, D] with the vector of `b` in the same row; 0 for a zero vector."""
    left, right = unit_rows(a), unit_rows(b)
    if left.shape != right.shape:
        raise ValueError(f"vectors {list(left.shape)} and {list(right.shape)} cannot be paired; expected equal shapes")
    return clipped(np.einsum("nd,nd->n", left, right))


def cosines_with(vector: ArrayLike, rows: Floats) -> Floats:
    """Cosine [n] of a vector [D] with rows [n, D] whose length is known to be 1; bit for bit as in `nearest`."""
    query = unit_rows(vector)
    return clipped(np.einsum("nd,nd->n", np.broadcast_to(query, rows.shape), rows))


def nearest(queries: ArrayLike, candidates: ArrayLike, k: int = 1) -> tuple[Ints, Floats]:
    """Find the k candidates of highest cosine for every query, exactly.

    Args:
        queries: Vectors [q, D].
        candidates: Vectors [c, D]; may be a memory map, which is read in blocks.
        k: Neighbours per query, at most c.

    Returns:
        Indices [q, min(k, c)] and cosines of the same shape, best first; ties keep the lower index.

    Example:
        >>> rows, cosines = nearest(encoder.encode(["Wann treffen wir uns?"]), encoder.encode(NOTES), k=1)
        >>> NOTES[rows[0, 0]]
        'The meeting is on Friday.'
    """
    rows = NormalizedBlocks(candidates)
    search = NearestSearch(queries, min(whole_number("k", k), len(rows) or 1))
    for start in range(0, len(rows), CANDIDATES):
        search.add_unit(rows.block(start, CANDIDATES))
    return search.indices, search.scores


class NearestSearch:
    """The k nearest candidates of every query [q, D], for candidates that arrive in blocks."""

    def __init__(self, queries: ArrayLike, k: int = 1) -> None:
        self._queries = unit_rows(queries)
        self._best = TopK(len(self._queries), k)
        self._product = BlockProduct()
        self._seen = 0

    @property
    def indices(self) -> Ints:
        """Indices [q, min(k, seen)], best first; ties keep the lower index."""
        return self._best.indices[:, : self._seen]

    @property
    def scores(self) -> Floats:
        """Cosines of the same shape."""
        return clipped(self._best.scores[:, : self._seen])

    def add(self, candidates: ArrayLike) -> None:
        """Score the next candidates, [c, D]; their indices continue the earlier ones."""
        self.add_unit(unit_rows(candidates))

    def add_unit(self, candidates: Floats) -> None:
        """Like `add`, for candidates whose length is known to be 1."""
        check_same_dim(self._queries.shape[1], candidates.shape[1])
        for first in range(0, len(candidates), CANDIDATES):
            block = candidates[first : first + CANDIDATES]
            for line in range(0, len(self._queries), QUERIES):
                queries = self._queries[line : line + QUERIES]
                scores = self._product(queries, block)
                self._best.add(
                    line, self._seen + first, scores, exact=partial(exact_products, queries, block.__getitem__)
                )
        self._seen += len(candidates)


class NormalizedBlocks:
    """Vectors [n, D] that are read in blocks and scaled to length 1; zero vectors stay zero.

    Only one block of a memory map is held at a time. `rows` selects rows and their order; n is then their number.
    """

    def __init__(self, vectors: ArrayLike, rows: Ints | None = None) -> None:
        self._vectors = np.asanyarray(vectors)
        _check_vectors(self._vectors)
        self._rows = rows

    def __len__(self) -> int:
        return len(self._vectors) if self._rows is None else len(self._rows)

    @property
    def dim(self) -> int:
        """Length of a vector (D)."""
        return int(self._vectors.shape[1])

    def block(self, start: int, size: int) -> Floats:
        """Rows `start` to `start + size`, or as many as there are."""
        where = slice(start, start + size)
        _check_mapped(self._vectors)
        unit = unit_rows(self._vectors[where if self._rows is None else self._rows[where]])
        release_pages(self._vectors)
        return unit


class TopK:
    """The k best scores of every line and their columns, for a score matrix that arrives in blocks.

    Columns of a line must arrive in ascending order: of equal scores, the first is kept.
    """

    def __init__(self, lines: int, k: int) -> None:
        self._k = k = whole_number("k", k)
        self.indices = np.full((lines, k), -1, np.int64)  # columns, best first; -1 while there are fewer
        self.scores = np.full((lines, k), -np.inf, np.float32)

    @property
    def means(self) -> Floats:
        """Mean of the best scores of every line; 0 if it has none."""
        found = self.indices >= 0
        totals = np.where(found, self.scores, np.float32(0)).sum(axis=1)
        means: Floats = totals / np.maximum(found.sum(axis=1), 1).astype(np.float32)
        return means

    def add(
        self,
        line: int,
        column: int,
        scores: Floats,
        *,
        lines_are_columns: bool = False,
        exact: Callable[[Ints, Ints], Floats] | None = None,
    ) -> None:
        """Add a block of scores, C-contiguous, that starts at this line and column.

        Args:
            line: The line of its first row.
            column: The column of its first one.
            scores: The block.
            lines_are_columns: Whether it is transposed.
            exact: Computes exact scores for rows and columns of the block, for scores that are rounded by up to
                `_ROUNDING`.
        """
        across = 1 - lines_are_columns  # the axis along which a line runs
        kept = slice(line, line + scores.shape[1 - across])
        slack = np.float32(0 if exact is None else _ROUNDING)
        bar = np.nextafter(self.scores[kept, -1], np.float32(np.inf)) - slack  # a tie with the last kept comes too late
        hits = np.flatnonzero(scores >= np.expand_dims(bar, across))
        if len(hits) > _MANY * self._k * len(bar):  # in a first block all are hits, but only k can stay
            k = min(self._k, scores.shape[across])
            bar = np.maximum(bar, np.partition(scores, -k, axis=across).take(-k, axis=across) - slack)
            hits = np.flatnonzero(scores >= np.expand_dims(bar, across))
        if len(hits):
            places = np.divmod(hits, scores.shape[1])
            found = scores[places] if exact is None else exact(*places)
            self._merge(line + places[1 - across], column + places[across], found)

    def _merge(self, lines: Ints, columns: Ints, scores: Floats) -> None:
        """Merge scores into the kept ones of their lines; scores of the same line are in the order of their columns."""
        touched, number = np.unique(lines, return_inverse=True)
        numbers = np.concatenate([np.repeat(np.arange(len(touched)), self._k), number])
        scores = np.concatenate([self.scores[touched].ravel(), scores])
        columns = np.concatenate([self.indices[touched].ravel(), columns])
        order = np.lexsort((-scores, numbers))  # stable: of equal scores the first is kept
        first = np.searchsorted(numbers[order], np.arange(len(touched)))
        best = order[first[:, None] + np.arange(self._k)]
        self.scores[touched] = scores[best]
        self.indices[touched] = columns[best]


def exact_products(a: Floats, b: Callable[[Ints], Floats], rows: Ints, columns: Ints) -> Floats:
    """Inner products of rows of `a` with rows that `b` returns by number; equal rows give bit-identical products.

    In one large product, rounding may differ with the place of a row and with the number of rows.
    """
    found = np.empty(len(rows), np.float32)
    for first in range(0, len(rows), _PAIRS):
        pairs = slice(first, first + _PAIRS)
        others = b(columns[pairs])
        own = a[rows[pairs]] if len(a) > 1 else np.broadcast_to(a, others.shape)
        np.einsum("nd,nd->n", own, others, out=found[pairs])
    return found


class BlockProduct:
    """Products of two blocks of vectors in reused memory: fresh memory would cost a quarter of the time."""

    def __init__(self) -> None:
        self._memory = np.empty(QUERIES * CANDIDATES, np.float32)

    def __call__(self, a: Floats, b: Floats) -> Floats:
        """Inner products of at most `QUERIES` rows with at most `CANDIDATES`; valid until the next call."""
        if missing := -len(b) % _EVEN:
            even = np.concatenate([b, np.zeros((missing, b.shape[1]), b.dtype)])
            return np.ascontiguousarray((a @ even.T)[:, : len(b)])
        out = self._memory[: len(a) * len(b)].reshape(len(a), len(b))
        return np.matmul(a, b.T, out=out)


def unit_rows(vectors: ArrayLike) -> Floats:
    """Vectors as [n, D] of length 1; zero vectors stay zero."""
    array = np.atleast_2d(np.asarray(vectors))
    _check_vectors(array)
    with np.errstate(over="ignore"):  # infinities are rejected below
        rows = as_float32(array)
        norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    if not np.isfinite(norms).all():
        raise ValueError(
            "vectors contain numbers that are infinite, NaN or too large to be squared; encode the texts again"
        )
    tiny = np.flatnonzero(norms < _TINY)
    tiny = tiny[rows[tiny].any(axis=1)]
    rows[tiny] /= np.abs(rows[tiny]).max(axis=1, keepdims=True, initial=0)
    norms[tiny] = np.sqrt(np.einsum("nd,nd->n", rows[tiny], rows[tiny]))
    rows /= np.where(norms > 0, norms, np.float32(1))[:, None]
    return rows


def _check_vectors(array: NDArray[Any]) -> None:
    if array.dtype == np.uint8:
        raise TypeError("expected vectors, got packed bits; compare binary vectors with SentenceEncoder.similarity")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"expected vectors, got {array.dtype}; encode texts first")
    if array.ndim != 2:
        raise ValueError(f"expected vectors of shape [n, D], got {list(array.shape)}")


def clipped(cosines: Floats) -> Floats:
    """The cosines within [-1, 1]: rounding may give 1.0000002."""
    return np.clip(cosines, -1, 1)


def check_same_dim(a: int, b: int) -> None:
    """Raise ValueError if vectors of these lengths cannot be compared."""
    if a != b:
        raise ValueError(f"vectors of {a} and of {b} dimensions cannot be compared")


def _map_of(vectors: NDArray[Any]) -> mmap.mmap | None:
    """The map of an array that is mapped into memory."""
    base: object = vectors
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None


def _check_mapped(vectors: NDArray[Any]) -> None:
    """Raise ValueError if a mapped file was truncated: the system kills a process that reads past its end."""
    mapped = _map_of(vectors)
    if mapped is not None and mapped.size() < len(mapped):
        raise ValueError(f"the file of {len(vectors):,} vectors was truncated while it was open; open it again")


def release_pages(array: NDArray[Any]) -> None:
    """Release the pages of a mapped array that were read, so that they stop counting toward this process's memory.

    Arrays in memory and writable ones, whose changes would be lost, are left alone.
    """
    owner = array
    while isinstance(owner.base, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if not owner.flags.writeable and (mapped := _map_of(owner)):
        mapped.madvise(mmap.MADV_DONTNEED)
