"""What the texts of two sides say about their pairs: other numbers, opposites, and copies, which nobody translated."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xsent.mining.opposites import Poles, exclude, poles_of
from xsent.mining.quantities import Quantity, differ, quantities
from xsent.similarity import Ints, TopK
from xsent.words import joined_keys, normalize

# A cosine that translations reach (19 of 20 in Tatoeba) and few other neighbours do.
_TRANSLATED = 0.65


class _Read(NamedTuple):
    """What the rules read in a text."""

    quantities: list[Quantity]
    poles: Poles


class PairRules:
    """Rules for pairs of texts: the sources [n] and the targets [m]."""

    def __init__(self, src: Sequence[str], trg: Sequence[str]) -> None:
        self._read = [[_read(text) for text in side] for side in (src, trg)]
        #: For every row of a side, the number of its words; -1 if no row of the other side has the same.
        self.copies = _common([*map(_words, src)], [*map(_words, trg)])
        self._left_over = tuple(np.zeros(len(side), np.bool_) for side in self.copies)

    def forbidden(self, src: Ints, trg: Ints) -> NDArray[np.bool_]:
        """Whether each pair of rows, in arrays of the same shape, has other numbers or opposites, or lacks a row (-1).

        Nor may a row be a pair that `untranslated` has found to be left over in the language of the other side.
        """
        left, right = self._read
        found = [i < 0 or j < 0 or _differ(left[i], right[j]) for i, j in zip(src.flat, trg.flat, strict=True)]
        return np.array(found, np.bool_).reshape(src.shape) | self._left_over[0][src] | self._left_over[1][trg]

    def untranslated(self, forward: TopK, backward: TopK) -> tuple[Ints, Ints]:
        """Copies that are all there is: neither row has a translation among its nearest neighbours, without copies.

        Returns:
            Rows of the sources and of the targets; of several copies of one text, the first with the first, and so on.
        """
        left, right = ([*zip(side.tolist(), _occurrences(side), strict=True)] for side in self.copies)
        place = {copy: row for row, copy in enumerate(right) if copy[0] >= 0}
        pairs = [(row, place[copy]) for row, copy in enumerate(left) if copy in place]
        src, trg = np.array(pairs, np.int64).reshape(-1, 2).T
        is_source = self._has_translation(src, forward, backward)
        is_target = self._has_translation(trg, backward, forward, swap=True)
        for side, copies, rows in zip(
            self._left_over, self.copies, (src[is_target & ~is_source], trg[is_source & ~is_target]), strict=True
        ):
            side |= np.isin(copies, copies[rows])
        alone = ~(is_source | is_target)
        return src[alone], trg[alone]

    def _has_translation(self, rows: Ints, there: TopK, back: TopK, *, swap: bool = False) -> NDArray[np.bool_]:
        """Whether a row and its nearest neighbour are the nearest of each other, and near."""
        nearest = there.indices[rows, 0]
        near = (there.scores[rows, 0] >= np.float32(_TRANSLATED)) & (back.indices[nearest, 0] == rows)
        differing = self.forbidden(*((nearest, rows) if swap else (rows, nearest)))
        found: NDArray[np.bool_] = near & ~differing
        return found


def _read(text: str) -> _Read:
    return _Read(quantities(text), poles_of(normalize("NFKC", text)))


def _differ(first: _Read, second: _Read) -> bool:
    return differ(first.quantities, second.quantities) or exclude(first.poles, second.poles)


def _words(text: str) -> str:
    """What two copies have in common: case, punctuation and spaces may differ."""
    return joined_keys(text) or text.strip()


def _common(src: list[str], trg: list[str]) -> tuple[Ints, Ints]:
    """Numbers of the texts that both sides have; -1 for the others."""
    number = {text: place for place, text in enumerate(sorted({*src} & {*trg}))}
    left, right = (np.array([number.get(text, -1) for text in side], np.int64) for side in (src, trg))
    return left, right


def _occurrences(numbers: Ints) -> list[int]:
    """How often the number of a row came before it."""
    seen: dict[int, int] = {}
    found = []
    for number in numbers.tolist():
        found.append(seen.get(number, 0))
        seen[number] = found[-1] + 1
    return found
