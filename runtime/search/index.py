"""Semantic search: in arrays, and in an index on disk.

Shapes: q queries, c candidates, n rows, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError
from xsent.options import Vectors
from xsent.search.graph import NeighbourGraph
from xsent.search.manifest import TEXTS, VECTORS, IndexManifest, map_rows
from xsent.search.vectors import IndexVectors
from xsent.similarity import NearestSearch, check_same_dim, nearest

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
    rows, scores = nearest(queries, corpus, top_k)
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

    Vectors and texts stay on the disk and are read in blocks, or only where the graph leads.

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
        self._vectors = IndexVectors(self.path / VECTORS, len(self), self.manifest.dim)
        self._rows = map_rows(self.path, self.manifest)

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
        with (self.path / TEXTS).open("rb") as texts:
            return [
                [self._hit(texts, row, score) for row, score in zip(found, cosines, strict=True)]
                if vector.any()
                else []
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
        added, _ = self._exact(vectors, k, self.manifest.graph)
        indices = np.empty((len(vectors), k), np.int64)
        scores = np.empty((len(vectors), k), np.float32)
        for place, (vector, others) in enumerate(zip(vectors, added, strict=True)):
            rows = np.concatenate([self._graph.propose(vector, max(_SPARE * k, _PROPOSED)), np.sort(others)])
            if len(rows) < k:  # of a graph with parts that no path leads to
                return self._exact(vectors, k)
            search = NearestSearch(vector, k)
            search.add_unit(self._vectors.take(rows))
            indices[place] = rows[search.indices[0]]
            scores[place] = search.scores[0]
        return indices, scores

    @cached_property
    def _graph(self) -> NeighbourGraph:
        return NeighbourGraph(self.path / self.manifest.graph_file, self.manifest.dim, self.manifest.graph)

    def _hit(self, texts: BinaryIO, row: int, score: float) -> Hit:
        start = int(self._rows[row - 1, 1]) if row else 0
        line, end = map(int, self._rows[row])
        try:
            if not start < end <= self.manifest.files[TEXTS].bytes:
                raise ValueError(f"line {line:,} lies nowhere")
            texts.seek(start)
            text, feed, rest = texts.read(end - start).decode("utf-8").rpartition("\n")
            if rest or not feed:
                raise ValueError(f"line {line:,} does not end where it should")
        except ValueError as error:
            raise DataError(f"{self.path / TEXTS}: damaged ({error}); build the index again") from error
        return Hit(score, line, text)
