"""Pairs made of others by swapping words, in both languages alike: nearly the same words, and another meaning.

"The nurse called the teacher" and its translation become "The teacher called the nurse" and the translation of that;
"born in 1989", beside "born in 1998", becomes that. Next to the pair that it was made from, such a pair is the hardest
of negatives, and nobody has to write it. Which words translate each other is asked of the table, where they lie close.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import sentencepiece as spm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.train.data.vocabulary import maskable_pieces
from xsent.train.tokens import Tokens

Sides = tuple[Tokens, Tokens]
Pieces = NDArray[np.int64]
Word = tuple[int, int]  # where it begins and ends among the pieces of its sentence

COMMON = 2e-3  # share of all text from which on a piece is an article or the like
TRANSLATED = 0.6  # cosine of a word and its translation, at least; below, chance meets too
# Cosines of two words that can change places: below they are no words of a kind, above they say nearly the same, as a
# word and its plural do.
ALIKE, SAME = 0.1, 0.7
JOINING = "▁and", "▁or", ",", "/"  # between the words of a list, whose order says nothing
LIST = 3  # pieces between two words of a list, at most
NUMBERS = 1 / 3  # of the copies, with the number of another pair


class Copy(NamedTuple):
    """A changed copy of a pair."""

    number: int  # of the pair in its batch
    english: Pieces
    translation: Pieces


class Swap(NamedTuple):
    """Two words of a pair that can change places."""

    likeness: float  # their cosine: words that are alike fit into each other's places
    english: tuple[Word, Word]
    translation: tuple[Word, Word]


class Swaps:
    """Finds such words and makes such pairs."""

    def __init__(self, table: Tensor, processor: spm.SentencePieceProcessor) -> None:
        """Tell translations by a trained table [V, D], of the pieces of a SentencePiece model."""
        self._rows: NDArray[np.float32] = F.normalize(table.float() - table.float().mean(dim=0), dim=1).numpy()
        pieces = range(len(processor))
        self._begins = np.array([processor.id_to_piece(piece).startswith("▁") for piece in pieces])
        self._letters = maskable_pieces(processor)
        digits = np.array([any(map(str.isdigit, processor.id_to_piece(piece))) for piece in pieces])
        self._digits = digits & self._letters  # a byte has digits in its name
        self._common = np.exp([processor.get_score(piece) for piece in pieces]) > COMMON
        self._joining = [processor.piece_to_id(piece) for piece in JOINING]

    def replace_last(self, sides: Sides, most: int) -> tuple[Sides, Tensor]:
        """The same number of pairs, the last of them, at most so many, copies of others with words swapped.

        Gives the pairs and the numbers of those that were copied [s]: the ones whose words are likest; fewer than
        `most` where fewer have words that can be swapped.
        """
        english, translation = (np.split(side.ids.numpy(), side.offsets[1:].numpy()) for side in sides)
        pairs = list(zip(english, translation, strict=True))[: len(english) - most]
        found = ((number, self.find(*pair)) for number, pair in enumerate(pairs))
        likest = sorted(((swap, number) for number, swap in found if swap), reverse=True)
        within = [
            Copy(n, swapped(pairs[n][0], *swap.english), swapped(pairs[n][1], *swap.translation)) for swap, n in likest
        ]
        copies = [*self.with_numbers_of_others(pairs)[: int(NUMBERS * most)], *within][:most]
        for place, copy in enumerate(copies, len(english) - len(copies)):
            english[place], translation[place] = copy.english, copy.translation
        return (_tokens(english), _tokens(translation)), torch.tensor([copy.number for copy in copies]).long()

    def with_numbers_of_others(self, pairs: Sequence[tuple[Pieces, Pieces]]) -> list[Copy]:
        """Copies of the pairs with a number that both languages write alike, each with the likest of another's."""
        found = [(number, words) for number, pair in enumerate(pairs) if (words := self._number(*pair))]
        if not found:
            return []
        written = [pairs[number][0][slice(*ours)] for number, (ours, _) in found]
        vectors = np.concatenate([self._vectors(pieces, [(0, len(pieces))]) for pieces in written])
        cosines = vectors @ vectors.T
        cosines[cosines > 1 - 1e-5] = -1  # itself, and the same number elsewhere
        nearest, likeness = cosines.argmax(axis=1), cosines.max(axis=1)
        return [
            Copy(number, *map(partial(replaced, other=written[nearest[place]]), pairs[number], words))
            for place in np.argsort(-likeness, kind="stable").tolist()
            if likeness[place] > ALIKE
            for number, words in [found[place]]
        ]

    def _number(self, english: Pieces, translation: Pieces) -> tuple[Word, Word] | None:
        """The first number of a pair that stands in both languages, and where."""
        there = {tuple(translation[slice(*word)].tolist()): word for word in self._words(translation)}
        for word in self._words(english):
            pieces = english[slice(*word)]
            if self._digits[pieces].any() and (other := there.get(tuple(pieces.tolist()))):
                return word, other
        return None

    def find(self, english: Pieces, translation: Pieces) -> Swap | None:
        """The two words of a pair that are most alike, of those whose translations are known and not the same."""
        ours, theirs = self._words(english), self._words(translation)
        if min(len(ours), len(theirs)) < 2:
            return None
        own, other = self._vectors(english, ours), self._vectors(translation, theirs)
        cosines = own @ other.T
        nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
        translated = (back[nearest] == np.arange(len(ours))) & (cosines.max(axis=1) > TRANSLATED)
        alike, alike_there = own @ own.T, other @ other.T
        swaps = [
            Swap(float(alike[i, j]), (ours[i], ours[j]), (theirs[nearest[i]], theirs[nearest[j]]))
            for i, j in combinations(translated.nonzero()[0].tolist(), 2)
            if ALIKE < alike[i, j]
            and max(alike[i, j], alike_there[nearest[i], nearest[j]]) < SAME
            and not self._in_list(english[ours[i][1] : ours[j][0]])
        ]
        return max(swaps, default=None)

    def _words(self, pieces: Pieces) -> list[Word]:
        """The words of a sentence without the signs after them, but for the most common ones."""
        starts = self._begins[pieces].nonzero()[0].tolist()
        spans = (
            (start, start + int(self._letters[pieces[start:end]].nonzero()[0].max(initial=-1)) + 1)
            for start, end in pairwise([*starts, len(pieces)])
        )
        return [(start, end) for start, end in spans if end > start and not self._common[pieces[start:end]].all()]

    def _vectors(self, pieces: Pieces, words: list[Word]) -> NDArray[np.float32]:
        means = np.stack([self._rows[pieces[start:end]].mean(axis=0) for start, end in words])
        vectors: NDArray[np.float32] = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors

    def _in_list(self, between: Pieces) -> bool:
        """Whether the pieces between two words say that these may change places, or there are none."""
        return not len(between) or (len(between) <= LIST and bool(np.isin(between, self._joining).any()))


def swapped(pieces: Pieces, one: Word, other: Word) -> Pieces:
    """A sentence in which two words have changed places."""
    (a, b), (c, d) = sorted((one, other))
    return np.concatenate([pieces[:a], pieces[c:d], pieces[b:c], pieces[a:b], pieces[d:]])


def replaced(pieces: Pieces, word: Word, other: Pieces) -> Pieces:
    """A sentence with another word in the place of one."""
    return np.concatenate([pieces[: word[0]], other, pieces[word[1] :]])


def _tokens(sentences: list[Pieces]) -> Tokens:
    return Tokens(torch.from_numpy(np.concatenate(sentences)), torch.tensor([len(pieces) for pieces in sentences]))
