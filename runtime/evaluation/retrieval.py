"""Retrieval: how often the nearest sentence is the right one.

Works for anything that encodes; needs NumPy alone.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.models import SupportsEncode
from xsent.similarity import NearestSearch, nearest

_BLOCK = 4096  # candidates encoded and scored at once


@dataclass(frozen=True)
class Retrieval:
    """One search: so many queries among so many candidates."""

    queries: int
    candidates: int
    correct: int  # queries whose nearest candidate is the gold one
    same_text: int  # queries whose nearest candidate reads the same as the gold one

    @property
    def p_at_1(self) -> float:
        """Share of correct queries in percent."""
        return 100 * self.correct / self.queries

    @property
    def p_at_1_same_text(self) -> float:
        """The same if any candidate with the gold text counts."""
        return 100 * self.same_text / self.queries


def retrieve(
    encoder: SupportsEncode, queries: Sequence[str], candidates: Iterable[str], gold: Sequence[int]
) -> Retrieval:
    """Search the nearest candidate of every query; candidates are encoded in blocks and not kept.

    Args:
        encoder: What encodes.
        queries: q sentences, at least one.
        candidates: Any number of sentences, read as a stream.
        gold: For every query the index of its translation among the candidates [q].
    """
    search = NearestSearch(encoder.encode(list(queries)))
    hashes = array("q")  # 8 bytes a candidate are enough to see which texts are the same
    for block in _blocks(candidates):
        search.add(encoder.encode(block))
        hashes.extend(map(hash, block))
    return _judge(search.indices, hashes, gold)


def retrieve_rows(queries: ArrayLike, candidates: ArrayLike, texts: Sequence[str]) -> Retrieval:
    """Search the nearest candidate of every query, which should be that in the same row.

    Args:
        queries: Vectors [n, D].
        candidates: Vectors [n, D].
        texts: The candidates' texts [n].
    """
    return _judge(nearest(queries, candidates)[0], array("q", map(hash, texts)), range(len(texts)))


def _judge(indices: NDArray[np.int64], hashes: "array[int]", gold: Sequence[int]) -> Retrieval:
    """What was found [q, 1] against what should have been [q]."""
    found, right, texts = indices[:, 0], np.asarray(gold), np.frombuffer(hashes, np.int64)
    return Retrieval(
        queries=len(right),
        candidates=len(texts),
        correct=int((found == right).sum()),
        same_text=int((texts[found] == texts[right]).sum()),
    )


def _blocks(sentences: Iterable[str]) -> Iterator[list[str]]:
    source = iter(sentences)
    while block := list(islice(source, _BLOCK)):
        yield block
