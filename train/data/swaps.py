"""Pairs in which two words have changed places, in both languages alike: the same words, and another meaning.

"The nurse called the teacher" and its translation become "The teacher called the nurse" and the translation of that.
Beside the pair that it was made from, such a pair is the hardest of negatives, and nobody has to write it. Which words
translate each other is asked of the table, where they lie close.
"""

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
        self._common = np.exp([processor.get_score(piece) for piece in pieces]) > COMMON
        self._joining = [processor.piece_to_id(piece) for piece in JOINING]

    def replace_last(self, sides: Sides, most: int) -> tuple[Sides, Tensor]:
        """The same number of pairs, the last of them, at most so many, copies of others with two words swapped.

        Copied are the pairs whose words are likest [s]; fewer than `most` where fewer have any.
        """
        english, translation = (np.split(side.ids.numpy(), side.offsets[1:].numpy()) for side in sides)
        kept = len(english) - most
        found = [self.find(*pair) for pair in zip(english[:kept], translation[:kept], strict=True)]
        likest = sorted((-swap.likeness, number, swap) for number, swap in enumerate(found) if swap)[:most]
        for place, (_, number, swap) in enumerate(likest, len(english) - len(likest)):
            english[place] = swapped(english[number], *swap.english)
            translation[place] = swapped(translation[number], *swap.translation)
        return (_tokens(english), _tokens(translation)), torch.tensor([number for _, number, _ in likest]).long()

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


def _tokens(sentences: list[Pieces]) -> Tokens:
    return Tokens(torch.from_numpy(np.concatenate(sentences)), torch.tensor([len(pieces) for pieces in sentences]))
