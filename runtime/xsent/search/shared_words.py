"""The score of the words that passages share with a query."""

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from xsent.search.store import IndexDatabase
from xsent.words import beginning, word_keys

_BEGINNING = 0.5  # weight of a word that only has a query word's beginning
_MOST_WORDS = 32  # a longer query is a text in itself, not a search for words
_COMMON = 4096  # a word in more rows is looked up only in passages found by other means


def shared_words(
    database: IndexDatabase,
    text: str,
    near: Iterable[int],
    *,
    most: int,
    rows: int,
    among: int,
    rarity: Callable[[tuple[str, ...]], float],
) -> dict[int, float]:
    """Rows that share words with a text, and a score for these words from 0 to 1.

    A word's weight is the square of its inverse document frequency among `among` passages (Robertson & Spärck Jones
    1976), relative to that of a word in one passage, times its rarity from 0 to 1 in the language. A row has a
    share of the weight of all words, including those that no passage has; a word that matches only by its
    beginning counts half. The score is the fourth power of that share, or the share with squared weights,
    whichever is larger: all words of a query score 1, one of several common words almost nothing, and a name
    more if it is a larger share of the query.

    Considers the first `rows` rows: those that are near in meaning, and `most` others with the highest scores.
    """
    words = {keys[0]: (keys, rare) for keys in word_keys(text) if (rare := rarity(keys))}.values()
    if not 0 < len(words) <= _MOST_WORDS:
        return {}
    found = _Shared()
    common: list[tuple[str, float]] = []
    for keys, rare in words:
        match = " OR ".join(f'"{key}"' for key in keys)
        having = database.first_rows_with(match, rows, _COMMON)
        begins = " OR ".join(f'"{start}" *' for start in map(beginning, keys) if start)
        same_beginning = database.first_rows_with(begins, rows, _COMMON) if begins else having
        count = float(len(same_beginning))
        if count == _COMMON:  # assume the same frequency in the other rows
            count *= rows / (same_beginning[-1] + 1)
        weight = (rare * _idf(max(count, 1), among) / _idf(1, among)) ** 2
        found.whole += weight
        if len(having) == _COMMON:
            common.append((match, weight))
            continue
        found.add(having, weight)
        if len(same_beginning) < _COMMON:
            found.add({*same_beginning}.difference(having), weight, part=_BEGINNING)
    kept = {*near, *heapq.nsmallest(most, found.shares, key=lambda row: (-found.score(row), row))}
    for match, weight in common:
        found.add(database.rows_with(match, kept), weight)
    return {row: found.score(row) for row in found.shares if row in kept}


@dataclass
class _Shared:
    """Words that rows share with a query."""

    whole: float = 0.0  # weight of all words of the query
    shares: dict[int, float] = field(default_factory=dict)  # by row: weight of its query words
    telling: dict[int, float] = field(default_factory=dict)  # the same, with each weight squared

    def add(self, rows: Iterable[int], weight: float, part: float = 1.0) -> None:
        """Add rows that contain a word, or share its beginning."""
        for row in rows:
            self.shares[row] = self.shares.get(row, 0.0) + part * weight
            self.telling[row] = self.telling.get(row, 0.0) + part * weight**2

    def score(self, row: int) -> float:
        """Score of the words that a row shares, see `shared_words`."""
        return max((self.shares[row] / self.whole) ** 4, self.telling[row] / self.whole)


def _idf(count: float, among: int) -> float:
    """Inverse document frequency of a word in `count` of `among` passages."""
    return math.log1p((max(among, count) - count + 0.5) / (count + 0.5))
