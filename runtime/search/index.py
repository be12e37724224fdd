"""Semantic search: in arrays, and in an index on disk.

Shapes: q queries, c candidates, n rows, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError, MissingExtraError
from xsent.options import Vectors
from xsent.search.graph import NeighbourGraph
from xsent.search.held_file import HeldFile
from xsent.search.manifest import ROWS, TEXTS, VECTORS, IndexManifest, map_rows
from xsent.search.vectors import IndexVectors
from xsent.similarity import NearestSearch, UnitRows, check_same_dim, nearest

if TYPE_CHECKING:
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

    Raises:
        ValueError: `top_k` is less than 1, or the dimensions differ.
    """
    corpus = np.asanyarray(corpus)
    rows, scores = nearest(queries, corpus, min(top_k, max(len(UnitRows(corpus)), 1)))
    return [
        [{"corpus_id": row, "score": score} for row, score in zip(found, cosines, strict=True)]
        for found, cosines in zip(rows.tolist(), scores.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Hit:
    """A line that was found.

    Attributes:
        score: Its cosine with the query.
        line: Its number, from 1.
        text: What it says.
    """

    score: float
    line: int
    text: str


class SearchIndex:
    """An index on disk, opened for searching; made by `xsent.search.building.build_index` or `xsent index`.

    Vectors and texts stay on the disk and are read in blocks, or only where the graph leads. Its files stay open: once
    another index takes the place of this one, it still answers from this one.

    Args:
        path: The folder.

    Attributes:
        path: The folder.
        manifest: What the index says about itself.

    Raises:
        DataError: There is no index, it is damaged, or it was written by another version.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest = IndexManifest.open(self.path)
        self._hold()
        while (manifest := IndexManifest.open(self.path)) != self.manifest:  # it was replaced in between
            self.manifest = manifest
            self._hold()

    def __len__(self) -> int:
        return self.manifest.rows

    def __repr__(self) -> str:
        return f"SearchIndex({str(self.path)!r}, rows={len(self)}, dim={self.manifest.dim})"

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

        Raises:
            DataError: The index is damaged.
            FingerprintError: Another encoder made the index; names both fingerprints.
            MissingExtraError: The index has a graph, and usearch, which reads it, is not installed.
            TypeError: `queries` is one str.
            ValueError: `k` is less than 1.
        """
        if isinstance(queries, str):
            raise TypeError("search takes a list of queries, not one str")
        self.manifest.check_fingerprint(encoder.fingerprint, self.path)
        vectors = encoder.encode(queries, on_long="split")
        rows, scores = self.nearest(vectors, k, exact=exact)
        return [
            [self._hit(row, score) for row, score in zip(found, cosines, strict=True)] if vector.any() else []
            for vector, found, cosines in zip(vectors, rows.tolist(), scores.tolist(), strict=True)
        ]

    def nearest(
        self, vectors: Vectors, k: int = 10, *, exact: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Find the rows of highest cosine; whether the vectors are of the index's encoder is up to the caller.

        Args:
            vectors: Queries [q, D].
            k: Rows a query.
            exact: See `search`.

        Returns:
            Rows [q, min(k, n)] counted from 0 and their cosines, best first.

        Raises:
            DataError: The index is damaged.
            MissingExtraError: usearch is needed and not installed.
            ValueError: `k` is less than 1, or the dimensions differ.
        """
        check_same_dim(vectors.shape[1], self.manifest.dim)
        k = min(k, max(len(self), 1))  # less than 1 is refused where the rows are kept
        if exact or _SPARE * k >= self.manifest.graph:
            return self._exact(vectors, k)
        return self._approximate(vectors, k)

    def verify(self) -> None:
        """Read every file and compare it with its checksum.

        Raises:
            DataError: A file is damaged; names it.
        """
        for name, state in self.manifest.files.items():
            state.check(self.path / name)

    def _exact(self, vectors: Vectors, k: int, start: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best of the rows from `start` on."""
        search = NearestSearch(vectors, k)
        for block in self._vectors.blocks(start):
            search.add_unit(block)
        return start + search.indices, search.scores

    def _approximate(self, vectors: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best of what the graph proposes and of the rows that were added behind it."""
        if isinstance(graph := self._graph, Exception):
            raise graph.with_traceback(None)
        added, _ = self._exact(vectors, k, self.manifest.graph)
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

    def _hold(self) -> None:
        """Open all files of the manifest."""
        self._vectors = IndexVectors(self.path / VECTORS, len(self), self.manifest.dim)
        self._rows = map_rows(self.path, self.manifest)
        self._texts = HeldFile(self.path / TEXTS)
        self._graph = self._open_graph()

    def _open_graph(self) -> NeighbourGraph | DataError | MissingExtraError:
        """The graph, or what is wrong with it: that matters only to a search which needs it."""
        if not self.manifest.graph:
            return DataError(f"{self.path}: has no graph")
        try:
            return NeighbourGraph(self.path / self.manifest.graph_file, self.manifest.dim, self.manifest.graph)
        except (DataError, MissingExtraError) as error:
            return error.with_traceback(None)

    def _hit(self, row: int, score: float) -> Hit:
        (before, start), (line, end) = self._row(row - 1), self._row(row)
        if not (before < line < self._row(row + 1)[0] and start < end <= self.manifest.files[TEXTS].bytes):
            raise self._damaged(ROWS)
        raw = bytearray(end - start)
        if not self._texts.read_into(start, memoryview(raw)):
            raise self._damaged(TEXTS)
        try:
            text, feed, rest = raw.decode("utf-8").rpartition("\n")
        except UnicodeDecodeError as error:
            raise self._damaged(TEXTS) from error
        if rest or not feed:
            raise self._damaged(TEXTS)
        return Hit(score, line, text)

    def _row(self, row: int) -> tuple[int, int]:
        """Number of the line and end of the text; also for the row before the first and the one behind the last."""
        if row < 0:
            return 0, 0
        if row >= len(self):
            return self.manifest.lines + 1, self.manifest.files[TEXTS].bytes
        line, end = map(int, self._rows[row])
        return line, end

    def _damaged(self, name: str) -> DataError:
        return DataError(f"{self.path / name}: damaged; build the index again")
