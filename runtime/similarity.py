"""Cosine similarity and exact nearest neighbours, in blocks of bounded memory.

Shapes: q queries, c candidates, D dimensions.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_QUERIES = 1024  # queries scored at once: with 4,096 candidates a block of scores takes 16 MiB


def cosine_similarity(a: ArrayLike, b: ArrayLike) -> NDArray[np.float32]:
    """Cosine of every vector of `a` with every vector of `b`.

    Args:
        a: Vectors [n, D], or one [D].
        b: Vectors [m, D], or one [D].

    Returns:
        Cosines [n, m] between -1 and 1 up to rounding; 0 for a zero vector.

    Raises:
        TypeError: `a` or `b` is not made of numbers.
        ValueError: `a` and `b` differ in D.
    """
    left, right = _unit(a), _unit(b)
    _check_same_dim(left, right)
    return left @ right.T


def nearest(
    queries: ArrayLike, candidates: ArrayLike, k: int = 1, *, block: int = 4096
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the k candidates of highest cosine for every query, exactly.

    Args:
        queries: Vectors [q, D].
        candidates: Vectors [c, D]; may be a memory map, only `block` rows are read at once.
        k: Neighbours a query; at most c are found.
        block: Candidates scored at once.

    Returns:
        Indices [q, min(k, c)] and cosines of the same shape, best first; of equal cosines the lower index.

    Raises:
        ValueError: `k` or `block` is less than 1, or the dimensions differ.
    """
    if block < 1:
        raise ValueError(f"block = {block} must be at least 1")
    rows = candidates if isinstance(candidates, np.ndarray) else np.asarray(candidates, np.float32)
    search = NearestSearch(queries, k)
    for start in range(0, len(rows), block):
        search.add(rows[start : start + block])
    return search.indices, search.scores


class NearestSearch:
    """The k nearest candidates of every query while candidates stream by.

    Args:
        queries: Vectors [q, D].
        k: Neighbours a query.

    Raises:
        ValueError: `k` is less than 1.
    """

    def __init__(self, queries: ArrayLike, k: int = 1) -> None:
        if k < 1:
            raise ValueError(f"k = {k} must be at least 1")
        self._queries = _unit(queries)
        self._k = k
        self._seen = 0
        self.indices = np.empty((len(self._queries), 0), np.int64)
        self.scores = np.empty((len(self._queries), 0), np.float32)

    def add(self, candidates: ArrayLike) -> None:
        """Score the next candidates, [c, D]; their indices continue those before."""
        rows = _unit(candidates)
        _check_same_dim(self._queries, rows)
        parts = [self._merge(slice(i, i + _QUERIES), rows) for i in range(0, len(self._queries), _QUERIES)]
        if parts:
            self.indices, self.scores = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._seen += len(rows)

    def _merge(self, where: slice, rows: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        known = self.indices.shape[1]
        # What is known stands first and has the lower indices; argmax takes the first of equals.
        pool = np.concatenate([self.scores[where], self._queries[where] @ rows.T], axis=1)
        line = np.arange(len(pool))
        found = []
        scores = []
        for _ in range(min(self._k, pool.shape[1])):
            best = pool.argmax(axis=1)
            found.append(best)
            scores.append(pool[line, best])
            pool[line, best] = -np.inf
        order = np.stack(found, axis=1)
        indices = self._seen + order - known
        if known:
            old = np.take_along_axis(self.indices[where], np.minimum(order, known - 1), axis=1)
            indices = np.where(order < known, old, indices)
        return indices, np.stack(scores, axis=1)


def _unit(vectors: ArrayLike) -> NDArray[np.float32]:
    """Vectors as [n, D] of length 1; zero vectors stay zero."""
    array = np.atleast_2d(np.asarray(vectors))
    if array.dtype.kind not in "fiu":
        raise TypeError(f"expected vectors, got {array.dtype}; encode texts first")
    if array.ndim != 2:
        raise ValueError(f"expected vectors of shape [n, D], got {list(array.shape)}")
    rows = array.astype(np.float32)  # a copy
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norms > 0, norms, np.float32(1))
    return rows


def _check_same_dim(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"vectors of {a.shape[1]} and of {b.shape[1]} dimensions cannot be compared")
