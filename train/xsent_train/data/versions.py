"""Content in several languages: the rows of a store by content and language."""

import numpy as np
from numpy.typing import NDArray

from xsent_train.data.store import Store

Rows = NDArray[np.int64]


class Versions:
    """The rows of a store by content and by language; rows with the same number in `Store.group` have the same content.

    A language is the first word of a cell's second part. Contents and languages are counted from 0: G contents, L
    languages.
    """

    def __init__(self, store: Store) -> None:
        """Sort the rows of a store."""
        codes = [language.partition(" ")[0] for _, language in store.cells]
        self.languages = list(dict.fromkeys(codes))
        number = np.array([self.languages.index(code) for code in codes], np.int64)
        _, first, self.content = np.unique(store.group, return_index=True, return_inverse=True)
        self.first = first.astype(np.int64)  # a row of each content [G]
        self.language = number[store.cell]  # of each row [rows]
        key = self.content * len(self.languages) + self.language
        self._rows = np.argsort(key, kind="stable")
        counts = np.bincount(key, minlength=len(first) * len(self.languages))
        self._starts = (np.cumsum(counts) - counts).reshape(len(first), -1)
        self._counts = counts.reshape(len(first), -1)
        self.there = self._counts > 0  # which languages each content is in [G, L]

    def row(self, rng: np.random.Generator, contents: Rows, languages: Rows) -> Rows:
        """A row for each content in a language that it has [n]; a random one if there are several."""
        at = np.floor(rng.random(len(contents)) * self._counts[contents, languages]).astype(np.int64)
        rows: Rows = self._rows[self._starts[contents, languages] + at]
        return rows

    def any_language(self, rng: np.random.Generator, contents: Rows) -> Rows:
        """A random language for each content, out of those that it has [n]."""
        lots = np.where(self.there[contents], rng.random((len(contents), len(self.languages))), -1)
        languages: Rows = lots.argmax(axis=1)
        return languages
