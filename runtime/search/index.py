"""Semantic search: in arrays, and in an index on disk.

Shapes: q queries, c candidates, n rows, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError, XsentError
from xsent.options import Vectors
from xsent.search.database import VECTORS, IndexDatabase, Passage
from xsent.search.graph import NeighbourGraph, check_graph
from xsent.search.vectors import BLOCK, IndexVectors
from xsent.similarity import NearestSearch, UnitRows, check_same_dim, nearest

if TYPE_CHECKING:  # searching vectors needs no encoder
    from xsent.encoder import SentenceEncoder

_PROPOSED = 100  # rows that the graph proposes a query, at least
_SPARE = 4  # and at least so many for every one that is asked for


def semantic_search(queries: ArrayLike, corpus: ArrayLike, top_k: int = 10) -> list[list[dict[str, int | float]]]:
    """Find the vectors of highest cosine, in the form of sentence-transformers' function of that name.

    Args:
        queries: Vectors [q, D], or one [D].
        corpus: Vectors [n, D]; may be a memory map, which is read in blocks.
        top_k: Results a query; all n if there are fewer.

    Returns:
        For every query its results, best first: `{"corpus_id": row of the corpus, "score": cosine}`.
    """
    corpus = np.asanyarray(corpus)
    rows, scores = nearest(queries, corpus, min(top_k, max(len(UnitRows(corpus)), 1)))
    return [
        [{"corpus_id": row, "score": score} for row, score in zip(found, cosines, strict=True)]
        for found, cosines in zip(rows.tolist(), scores.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Hit:
    """A line that was found."""

    score: float  # its cosine with the query
    line: int  # its number, from 1
    text: str
    source: str = ""  # where it comes from, such as a file


class SearchIndex:
    """An index on disk, opened for searching; made by `xsent.build_index` or `xsent index`.

    Vectors and texts stay on the disk and are read in blocks, or only where the graph leads. What is opened is the
    index as it is now: it answers from that also while lines are added, or once another one takes its place.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open()
        while not self._database.path.exists():  # it was replaced in between
            self._open()

    def __len__(self) -> int:
        return self.state.rows

    def __repr__(self) -> str:
        return f"SearchIndex({str(self.path)!r}, rows={len(self)}, dim={self.state.dim})"

    def search(
        self, encoder: "SentenceEncoder", queries: Sequence[str], k: int = 10, *, exact: bool = False
    ) -> list[list[Hit]]:
        """Find the lines that mean most nearly what the queries mean.

        Args:
            encoder: The one that made the index.
            queries: Texts in any of its languages; an empty one finds nothing.
            k: Hits a query; all lines if there are fewer.
            exact: Leave the graph aside, if there is one.

        Returns:
            The hits of every query, best first; of equal scores the earlier line.
        """
        if isinstance(queries, str):
            raise TypeError("search takes a list of queries, not one str")
        self.state.check_fingerprint(encoder.fingerprint, self.path)
        vectors = encoder.encode(queries, on_long="split")
        rows, scores = self.nearest(vectors, k, exact=exact)
        scores[~vectors.any(axis=1)] = -np.inf
        return [self._hits(*pair) for pair in zip(rows.tolist(), scores.tolist(), strict=True)]

    def nearest(
        self, vectors: Vectors, k: int = 10, *, exact: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows [q, min(k, n)] of highest cosine with vectors [q, D] of the index's encoder, and cosines, best first."""
        check_same_dim(vectors.shape[1], self.state.dim)
        k = min(k, max(len(self), 1))  # less than 1 is refused where the rows are kept
        if exact or self._graph is None or _SPARE * k >= self.state.graph:
            return self._exact(vectors, k)
        return self._approximate(self._graph, vectors, k)

    def verify(self) -> None:
        """Read everything and compare it with its checksums; a DataError names what is damaged."""
        for first in range(0, len(self), BLOCK):
            for row, passage in enumerate(self._database.passages(first, min(BLOCK, len(self) - first)), first):
                self._check(row, passage)
            self._vectors.let_go()
        check_graph(self.path, self.state)

    def _exact(self, vectors: Vectors, k: int, start: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best of the rows from `start` on."""
        search = NearestSearch(vectors, k)
        for block in self._vectors.blocks(start):
            search.add_unit(block)
        return start + search.indices, search.scores

    def _approximate(
        self, graph: NeighbourGraph | XsentError, vectors: Vectors, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best of what the graph proposes and of the rows that were added behind it."""
        if isinstance(graph, XsentError):
            raise graph.with_traceback(None)
        added, _ = self._exact(vectors, k, self.state.graph)
        indices = np.empty((len(vectors), k), np.int64)
        scores = np.empty((len(vectors), k), np.float32)
        for place, (vector, others) in enumerate(zip(vectors, added, strict=True)):
            rows = np.concatenate([graph.propose(vector, max(_SPARE * k, _PROPOSED)), np.sort(others)])
            if len(rows) < k:  # of a graph with parts that no path leads to
                return self._exact(vectors, k)
            search = NearestSearch(vector, k)
            search.add_unit(self._vectors.take(rows))
            indices[place] = rows[search.indices[0]]
            scores[place] = search.scores[0]
        return indices, scores

    def _open(self) -> None:
        self._database = IndexDatabase(self.path)
        if (state := self._database.state()) is None:
            raise DataError(f"{self.path}: an unfinished index; xsent index --resume goes on with it")
        self.state = state  # what the index says about itself
        self._vectors = IndexVectors(self.path / VECTORS, state.rows, state.dim)
        self._graph: NeighbourGraph | XsentError | None = None
        if state.graph:
            try:
                self._graph = NeighbourGraph(self.path / state.graph_file, state.dim, state.graph)
            except XsentError as error:  # matters only to a search which needs it
                self._graph = error.with_traceback(None)

    def _hits(self, rows: list[int], scores: list[float]) -> list[Hit]:
        hits = []
        for row, score in zip(rows, scores, strict=True):
            if score > -np.inf:  # not of an empty query
                (passage,) = self._database.passages(row)
                self._check(row, passage)
                hits.append(Hit(score, passage.line, passage.text, passage.source))
        self._vectors.let_go()
        return hits

    def _check(self, row: int, passage: Passage) -> None:
        if Passage.of(*passage[:3], self._vectors.stored(row)).digest != passage.digest:
            raise self._database.damaged(f"row {row:,} of it or of {VECTORS} is not what it was")
