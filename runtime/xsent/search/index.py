"""Semantic search: in arrays, and in an index on disk.

Shapes: q queries, n rows, D dimensions.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.clean import clean_text
from xsent.errors import DataError, real_number, whole_number
from xsent.precision import Vectors
from xsent.search.shared_words import shared_words
from xsent.search.store import IndexDatabase, Passage, StoredDocument
from xsent.search.vectors import VECTORS, Float16Rows
from xsent.search.windows import first_rows
from xsent.similarity import TopK, check_same_dim, clipped, cosines_with, exact_products, nearest, unit_rows
from xsent.tasks import text_list

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder
    from xsent.known_words import KnownWords

_JOINED = 100  # nearest rows, at least, that are joined with rows found by words
_BY_WORDS = 1000  # rows found by words, at most
# Added to the score of a passage that has all words of a query: enough to find it by its words, but hardly more than
# a translation's lead over other near passages (docs/contributing/findings.md).
_WORDS = 0.5
_NEAR_WORDS = 0.25  # added for words that are as near as the same ones, in any language
_READ_AGAIN = 20  # best passages, whose words are compared with those of the query
_BLOCK = 2048  # passages read at once
_QUERIES = 256  # queries of a scan
_WINDOWS = 4096  # windows of lines that share words, read at once
_REPLACED = 0.02  # seconds that replacing a folder takes: for a moment, no folder has its name
_TRIES = 6  # to open an index that several processes replace one after the other
# Fewer than one in a hundred unrelated sentences reach this cosine with six layers: 0.8% (FLORES, 70 lines in each of
# nine languages). With three layers, more do.
CLOSE = 0.35


def semantic_search(queries: ArrayLike, corpus: ArrayLike, top_k: int = 10) -> list[list[dict[str, int | float]]]:
    """Find the vectors of highest cosine; results as in sentence-transformers' `semantic_search`.

    Args:
        queries: Vectors [q, D], or one [D].
        corpus: Vectors [n, D]; may be a memory map, which is read in blocks.
        top_k: Results per query; all n if there are fewer.

    Returns:
        For each query a list, best first, of dictionaries: `corpus_id` is the row, `score` its cosine.

    Example:
        >>> [[hit]] = semantic_search(encoder.encode("Où est le chat ?"), encoder.encode(NOTES), top_k=1)
        >>> hit["corpus_id"]
        1
    """
    rows, scores = nearest(queries, corpus, whole_number("top_k", top_k))
    return [
        [{"corpus_id": row, "score": score} for row, score in zip(found, cosines, strict=True)]
        for found, cosines in zip(rows.tolist(), scores.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Hit:
    """A search result."""

    score: float  #: cosine with the query, plus up to 0.75 for words if `words` is on
    line: int  #: line number, from 1
    text: str  #: the text
    source: str = ""  #: where it comes from, such as a file
    close: bool = True  #: whether the score is at least `CLOSE`, which unrelated texts rarely reach
    context: str = ""  #: what a passage of a document is about, see `Document`
    id: str = ""  #: the id of its row, if it comes from a table with ids


def no_match_message(hits: Sequence[Hit]) -> str:
    """A message for people if there are hits but none is close; otherwise an empty string.

    Example:
        >>> no_match_message([Hit(0.2, 1, "The cat needs food.", close=False)])
        'No close match: best score 0.20; unrelated texts score up to 0.35.'
    """
    if not hits or any(hit.close for hit in hits):
        return ""
    best = min(hits[0].score, CLOSE - 0.01)  # 0.349 is not 0.35
    return f"No close match: best score {best:.2f}; unrelated texts score up to {CLOSE:.2f}."


class SearchIndex:
    """An index on disk, opened for searching; created by `xsent.build_index` or `xsent index`.

    Vectors and texts stay on disk; vectors are read in blocks. It answers from the index as it was when opened, even
    while lines are added or after another index replaces it; `has_changed` returns whether to open it again. Threads
    that share one need a lock around `search`, which reopens an index whose documents have changed.

    Example:
        >>> state = build_index("notes.index", NOTES, encoder)
        >>> [[hit]] = SearchIndex("notes.index").search(encoder, ["Wann ist das Treffen?"], k=1)
        >>> hit.line, hit.text, hit.close
        (1, 'The meeting is on Friday.', True)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open()

    def __len__(self) -> int:
        return int(np.count_nonzero(self.live)) - self._windows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database now, as `with` does; a Ctrl-C during garbage collection would be lost."""
        self._database.close()

    def __repr__(self) -> str:
        return f"SearchIndex({str(self.path)!r}, rows={len(self)}, dim={self.state.dim})"

    def search(
        self,
        encoder: "SentenceEncoder",
        queries: Iterable[str],
        k: int = 10,
        *,
        words: bool = True,
        least: float | None = None,
        space: str | None = None,
    ) -> list[list[Hit]]:
        """Find the lines that are nearest in meaning to the queries.

        Args:
            encoder: The encoder that the index was built with, at any depth.
            queries: Texts in any of its languages; an empty one finds nothing.
            k: Hits per query; all lines if there are fewer.
            words: Add up to 0.5 to a passage's score for query words that it contains; rare words add more, and only
                all words of a query together add 0.5. Up to 0.25 is added for words that are near to those of the
                query, such as their translations.
            least: Lowest score of a hit.
            space: The other model's space that the index was built in, if any.

        Returns:
            The hits of every query, best first; ties keep the order of the lines.

        Raises:
            FingerprintError: The index was built with another encoder.
            DataError: A passage among the hits is damaged.
        """
        if isinstance(queries, str):
            raise TypeError("search takes a list of queries, not one str")
        queries, k = text_list(queries, "query"), whole_number("k", k)
        self.state.check_fingerprint(encoder.fingerprint_of(space), self.path)
        queries = [clean_text(query) for query in queries] if self.state.clean else queries
        vectors = encoder.encode(queries, on_long="split", space=space)
        known = encoder.words if words else None
        least = -np.inf if least is None else real_number("least", least)
        try:
            return self.find(queries, vectors, k, words=known, least=least)
        except DataError:
            if self._database.version() == self._version:
                raise
        self._open()  # a document among the hits was removed or replaced in the meantime
        return self.find(queries, vectors, k, words=known, least=least)

    def nearest(self, vectors: Vectors, k: int = 10) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows [q, min(k, n)] nearest to vectors [q, D] of the index's encoder, and their cosines, best first.

        A line of several windows has the cosine of its nearest one, and the row of its first one.
        """
        units, k = unit_rows(vectors), min(whole_number("k", k), len(self))
        check_same_dim(units.shape[1], self.state.dim)
        count = k
        while True:
            rows, cosines = self._nearest_windows(units, count)
            if not self._windows:
                return rows, cosines
            lines = self._first[rows]
            places = [np.sort(np.unique(row, return_index=True)[1])[:k] for row in lines]
            if count == self.state.rows or all(len(place) == k for place in places):
                best = np.array(places, np.int64).reshape(len(rows), k)
                return np.take_along_axis(lines, best, axis=1), np.take_along_axis(cosines, best, axis=1)
            count = min(4 * count, self.state.rows)  # too many windows of the same lines

    def _nearest_windows(self, units: NDArray[np.float32], found: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows [q, k] of highest cosine with vectors of length 1 [q, D], and their cosines."""
        best = TopK(len(units), max(found, 1))
        for line in range(0, len(units), _QUERIES):
            queries = units[line : line + _QUERIES]
            for first, cosines in self._vectors.cosines(queries):
                live = self.live[first : first + cosines.shape[1]]
                if not live.all():
                    cosines[:, ~live] = -np.inf
                rows = partial(self._vectors.take, first=first)
                best.add(line, first, cosines, exact=partial(exact_products, queries, rows))
        return best.indices[:, :found], clipped(best.scores[:, :found])

    def has_changed(self) -> bool:
        """Whether the index was replaced or written to since it was opened; a cheap check."""
        return not self._database.path.exists() or self._database.version() != self._version

    def verify(self) -> None:
        """Check passages and vectors against their checksums, and words against texts.

        Raises DataError, which names the damaged file.
        """
        self.check_passages()
        self._database.check_words()

    def check_passages(self) -> None:
        """Check all passages and vectors against their checksums. Raises DataError, which names the damaged file."""
        for _ in self.passages():
            pass

    def passages(self) -> Iterator[tuple[Passage, Vectors]]:
        """All passages, each with its vector [D] as stored. Raises DataError, which names the damaged file."""
        for first in range(0, self.state.rows, _BLOCK):
            for row, passage in self._passages(first, min(_BLOCK, self.state.rows - first)).items():
                yield passage, self._vectors.stored(row)
            self._vectors.release_pages()

    def documents(self) -> dict[str, str]:
        """Names and stamps of the documents from `update_index`; an incomplete one has an empty stamp."""
        return {document.name: document.stamp for document in self.stored_documents()}

    def stored_documents(self) -> list[StoredDocument]:
        """The documents with their rows."""
        return self._database.documents()

    def document(self, name: str) -> list[Hit]:
        """The passages of a document in order, each with score 1; empty if there is no such document."""
        stored = [found for found in self.stored_documents() if found.name == name]
        return [self._hit(row, 1.0) for found in stored for row in range(found.first, found.first + found.passages)]

    def find(
        self,
        queries: Sequence[str],
        vectors: Vectors,
        k: int,
        *,
        words: "KnownWords | None" = None,
        least: float = -np.inf,
    ) -> list[list[Hit]]:
        """The hits of queries with known vectors [q, D], see `search`; `words` turns on scoring by words."""
        rows, cosines = self.nearest(vectors, max(k, _JOINED) if words else k)
        found = []
        for query, vector, near, scores in zip(queries, vectors, rows.tolist(), cosines.tolist(), strict=True):
            hits = dict(zip(near, scores, strict=True)) if vector.any() else {}
            if words and hits:
                hits = self._join(query, vector, near, words)
            found.append([self._hit(row, score) for row, score in list(hits.items())[:k] if score >= least])
        self._vectors.release_pages()
        return found

    def _join(self, query: str, vector: Vectors, near: Iterable[int], words: "KnownWords") -> dict[int, float]:
        """Scores including words, best first, of rows near in meaning and rows that share words."""
        shares = shared_words(
            self._database, query, near, most=_BY_WORDS, rows=len(self.live), among=len(self), rarity=words.rarity
        )
        rows = np.array(sorted({*near, *(row for row in shares if self.live[row])}), np.int64)
        cosines = self._cosines_with(vector, rows)
        found = zip(rows.tolist(), cosines.tolist(), strict=True)
        scores = _best_first({row: cosine + _WORDS * shares.get(row, 0.0) for row, cosine in found})
        least = min([*scores.values()][:_READ_AGAIN])
        best = [row for row, score in scores.items() if score >= least]  # with all of equal scores
        passages = [self._passages(row)[row] for row in best]
        nearness = words.nearness(query, [f"{passage.context} {passage.text}" for passage in passages])
        for row, near_words in zip(best, nearness.tolist(), strict=True):
            scores[row] += _NEAR_WORDS * near_words
        return _best_first(scores)

    def _cosines_with(self, vector: Vectors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The cosine [r] of a vector [D] with each row, or with the nearest window of its line."""
        if not self._windows:
            return cosines_with(vector, self._vectors.take(rows))
        asked = np.zeros(self.state.rows, bool)
        asked[rows] = True
        windows = np.flatnonzero(asked[self._first])
        best = np.full(self.state.rows, -np.inf, np.float32)
        for start in range(0, len(windows), _WINDOWS):
            part = windows[start : start + _WINDOWS]
            np.maximum.at(best, self._first[part], cosines_with(vector, self._vectors.take(part)))
        return best[rows]

    def _open(self) -> None:
        """Open the index at this path; try again if it is being replaced."""
        for left in reversed(range(_TRIES)):
            try:
                self._open_once()
                if self._database.path.exists():
                    return
            except (DataError, OSError):
                if not left:
                    raise
                time.sleep(_REPLACED)

    def _open_once(self) -> None:
        self._database = IndexDatabase(self.path)
        self._version = self._database.version()  # first: later writes count as a change
        state = self._database.state()
        self._database.check_rows()
        if not state.dim:
            raise self._database.damaged("vectors of no dimension")
        self.state = state
        self._vectors = Float16Rows(self.path / VECTORS, state.rows, state.dim)
        self.live = np.ones(state.rows, bool)  # rows [n] that do not belong to a removed document
        for first, count in self._database.removed():
            self.live[first : first + count] = False
        windows = self._database.windows(state.rows)
        if windows[:1] == [0]:
            raise self._database.damaged("it begins with a second window")
        self._windows = len(windows)  # without the first ones of lines
        self._first = first_rows(windows, state.rows) if windows else np.zeros(0, np.int64)

    def _hit(self, row: int, score: float) -> Hit:
        passage = self._passages(row)[row]
        place = passage.source, score >= CLOSE, passage.context, passage.id
        return Hit(score, passage.line, passage.text, *place)

    def _passages(self, first: int, count: int = 1) -> dict[int, Passage]:
        """Passages by row, starting at `first`, checked against their digests."""
        found = self._database.passages(first, count)
        if list(found) != (first + np.flatnonzero(self.live[first : first + count])).tolist():
            raise self._database.damaged("passages are missing")
        for row, passage in found.items():
            if Passage.of(self._vectors.stored(row).tobytes(), *passage[:-1]) != passage:
                raise self._database.damaged(f"its row {row:,}, or that of {VECTORS}, has changed")
        return found


def _best_first(scores: dict[int, float]) -> dict[int, float]:
    """Scores by row, the highest first; ties keep the order of the rows."""
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
