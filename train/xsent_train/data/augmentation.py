"""Augmented sentences of a batch: words swapped within and between pairs, and spellings of people who type.

A copy of a pair with words swapped in both languages has nearly the same words but another meaning. "The nurse called
the teacher" and its translation become "The teacher called the nurse" and the translation of that; "born in 1989"
becomes "born in 1998" if another pair of the batch has that year. Next to the original pair, such a copy is the hardest
possible negative, and nobody has to write it. Translations are found by their similar token rows.

Another spelling, without accents, with ae for ä, or with typing errors, keeps the meaning.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sentencepiece as spm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.words import SPELLED, without_accents
from xsent_train.tokens import Tokens, to_tokens, token_positions

Sides = tuple[Tokens, Tokens]
Pieces = NDArray[np.int64]
Pair = tuple[Pieces, Pieces]
Vectors = NDArray[np.float32]
Word = tuple[int, int]  # start and end among the pieces of its sentence

COMMON = 2e-3  # a piece with a larger share of all text is an article or the like
TRANSLATED = 0.6  # minimum cosine of a word and its translation; chance reaches lower values too
# Bounds for the cosine of two words to swap: below, they are words of different kinds; above, nearly synonyms, like a
# word and its plural.
ALIKE, SAME = 0.1, 0.7
JOINING = "▁and", "▁or", ",", "/"  # between the words of a list, whose order has no meaning
LIST = 3  # maximum number of pieces between two words of a list
NUMBERS = 1 / 3  # share of the copies that get the number of another pair
COUNTED = (  # English words for numbers, days and months that seldom mean something else
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million first third fourth fifth "
    "sixth seventh eighth ninth tenth monday tuesday wednesday thursday friday saturday sunday january february april "
    "june july august september october november december"
)
WORD = re.compile(r"[^\W\d_\u3040-\u9fff\uac00-\ud7af]{4,}")  # in scripts that are typed letter by letter
WORDS_PER_ERROR = 8
ALL = -1  # in place of a language: for numbers written the same way in all


class Copy(NamedTuple):
    """A changed copy of a pair."""

    number: int  # of the original pair in its batch
    english: Pieces
    translation: Pieces


class Words(NamedTuple):
    """The words of the sentences of a batch."""

    spans: NDArray[np.int64]  # start and end of each among the pieces of its sentence [W, 2]
    first: list[int]  # the number of each sentence's first word, and the number of all words [b + 1]
    vectors: Vectors  # of length 1 [W, D]

    def of(self, sentence: int) -> slice:
        """The words of a sentence."""
        return slice(self.first[sentence], self.first[sentence + 1])


class Aligned(NamedTuple):
    """The aligned words of a pair: word n of one side is the translation of word n of the other."""

    english: list[Word]
    translation: list[Word]
    own: Vectors  # of the English words [n, D]
    other: Vectors  # of their translations [n, D]


class Swap(NamedTuple):
    """Two words of a sentence that may be swapped, and their translations."""

    likeness: float  # their cosine; similar words fit into each other's places
    english: tuple[Word, Word]
    translation: tuple[Word, Word]


class Number(NamedTuple):
    """A number in a pair."""

    pair: int
    words: tuple[Word, Word]
    written: tuple[Pieces, Pieces]
    vector: Vectors  # [D]
    language: int  # of the translation; `ALL` if both sides write the number the same way


class Swaps:
    """Finds words that can be swapped, and copies pairs with these words swapped."""

    def __init__(self, table: Tensor, processor: spm.SentencePieceProcessor, letters: NDArray[np.bool_]) -> None:
        """Recognise translations by a trained table [V, D] for a SentencePiece model.

        `letters` are the pieces that are words or parts of words, see `maskable_pieces` [V].
        """
        self._rows = F.normalize(table.float() - table.float().mean(dim=0), dim=1)
        pieces = range(len(processor))
        self._begins = np.array([processor.id_to_piece(piece).startswith("▁") for piece in pieces])
        self._letters = letters
        digits = np.array([any(map(str.isdigit, processor.id_to_piece(piece))) for piece in pieces])
        self._digits = digits & self._letters  # a byte has digits in its name
        self._rare = ~(np.exp([processor.get_score(piece) for piece in pieces]) > COMMON)
        self._joining = {processor.piece_to_id(piece) for piece in JOINING}
        self._counted = {tuple(ids) for ids in processor.encode(COUNTED.split())}
        self._numeric = self._digits.copy()  # pieces that may be in a number
        self._numeric[[ids[0] for ids in self._counted]] = True

    def replace_last(self, sides: Sides, languages: Pieces, limit: int) -> tuple[Sides, Tensor]:
        """Replace up to `limit` pairs at the end of a batch by copies of others with words swapped.

        `languages` are the numbers of the translations' languages [b]. Returns the pairs, and the numbers of the copied
        ones [s]: those whose words are most similar, or fewer than `limit` if not enough pairs have words to swap.
        """
        english, translation = (np.split(side.ids.numpy(), side.offsets[1:].numpy()) for side in sides)
        pairs = list(zip(english, translation, strict=True))[: len(english) - limit]
        aligned = self.align((sides[0].part(0, len(pairs)), sides[1].part(0, len(pairs))))
        numbers = self._numbers(pairs, aligned, languages)
        copies = [*exchanged(pairs, numbers)[: int(NUMBERS * limit)], *self._within(pairs, aligned)][:limit]
        for place, copy in enumerate(copies, len(english) - len(copies)):
            english[place], translation[place] = copy.english, copy.translation
        return (_tokens(english), _tokens(translation)), torch.tensor([copy.number for copy in copies]).long()

    def align(self, sides: Sides) -> list[Aligned]:
        """For each pair, the words that are each other's nearest neighbours."""
        english, translation = map(self.words, sides)
        return [aligned(english, translation, pair) for pair in range(len(sides[0].lengths))]

    def words(self, tokens: Tokens) -> Words:
        """The words of sentences, without punctuation after them and without the most common words."""
        ids, offsets, count = tokens.ids.numpy(), tokens.offsets.numpy(), len(tokens.ids)
        begins = self._begins[ids]
        marks = begins.copy()
        marks[offsets[tokens.lengths.numpy() > 0]] = True  # a word ends with its sentence
        starts = marks.nonzero()[0]
        last = np.where(self._letters[ids], np.arange(count), -1)
        ends = np.maximum.reduceat(last, starts) + 1 if count else starts
        rare = np.concatenate([[0], self._rare[ids].cumsum()])
        kept = begins[starts] & (ends > starts) & (rare[ends] > rare[starts])
        starts, ends = starts[kept], ends[kept]
        sentence = np.searchsorted(offsets, starts, side="right") - 1
        first = np.searchsorted(sentence, np.arange(len(offsets) + 1)).tolist()
        spans = np.stack([starts, ends], axis=1) - offsets[sentence][:, None]
        return Words(spans, first, self._vectors(tokens.ids, torch.from_numpy(starts), torch.from_numpy(ends)))

    def _vectors(self, ids: Tensor, starts: Tensor, ends: Tensor) -> Vectors:
        """The mean rows of the pieces from each start to its end, of length 1."""
        lengths = ends - starts
        pieces = torch.repeat_interleave(starts, lengths) + token_positions(lengths)
        means = F.embedding_bag(ids[pieces], self._rows, lengths.cumsum(0) - lengths, mode="mean")
        vectors: Vectors = F.normalize(means, dim=1).numpy()
        return vectors

    def find(self, english: Pieces, words: Aligned) -> Swap | None:
        """The two most similar words of a pair, except for near-synonyms and words of a list."""
        alike = words.own @ words.own.T
        alike_in_both = np.maximum(alike, words.other @ words.other.T)
        one, other = ((alike > ALIKE) & (alike_in_both < SAME)).nonzero()
        one, other = one[one < other], other[one < other]
        for place in np.argsort(alike[one, other], kind="stable")[::-1].tolist():  # of equal ones, the last
            i, j = int(one[place]), int(other[place])
            if not self._in_list(english[words.english[i][1] : words.english[j][0]]):
                pairs = (words.english[i], words.english[j]), (words.translation[i], words.translation[j])
                return Swap(float(alike[i, j]), *pairs)
        return None

    def _within(self, pairs: Sequence[Pair], aligned: Sequence[Aligned]) -> list[Copy]:
        """Copies with two words swapped, the most similar words first."""
        found = ((n, self.find(pair[0], words)) for n, (pair, words) in enumerate(zip(pairs, aligned, strict=True)))
        alike = sorted(((swap, number) for number, swap in found if swap), reverse=True)
        return [
            Copy(n, swapped(pairs[n][0], *swap.english), swapped(pairs[n][1], *swap.translation)) for swap, n in alike
        ]

    def _numbers(self, pairs: Sequence[Pair], aligned: Sequence[Aligned], languages: Pieces) -> list[Number]:
        """The first number of each pair that has one, in digits or in words."""
        found = []
        for pair, ((english, translation), words) in enumerate(zip(pairs, aligned, strict=True)):
            if not self._numeric[english].any():
                continue
            for word, other, vector in zip(words.english, words.translation, words.own, strict=True):
                written = english[slice(*word)], translation[slice(*other)]
                if self._digits[written[0]].any() or tuple(written[0].tolist()) in self._counted:
                    language = ALL if np.array_equal(*written) else int(languages[pair])
                    found.append(Number(pair, (word, other), written, vector, language))
                    break
        return found

    def _in_list(self, between: Pieces) -> bool:
        """Whether the pieces between two words, if any, show that these are in a list."""
        return not len(between) or (len(between) <= LIST and not self._joining.isdisjoint(between.tolist()))


def aligned(english: Words, translation: Words, pair: int) -> Aligned:
    """The words of a pair that are each other's nearest neighbours."""
    here, there = english.of(pair), translation.of(pair)
    own, other = english.vectors[here], translation.vectors[there]
    if not len(own) or not len(other):
        return Aligned([], [], own[:0], other[:0])
    cosines = own @ other.T
    nearest = cosines.argmax(axis=1)
    mutual = cosines.argmax(axis=0)[nearest] == np.arange(len(own))
    known = (mutual & (cosines.max(axis=1) > TRANSLATED)).nonzero()[0]
    translated = nearest[known]
    first, second = english.spans[here][known].tolist(), translation.spans[there][translated].tolist()
    return Aligned([(a, b) for a, b in first], [(a, b) for a, b in second], own[known], other[translated])


def exchanged(pairs: Sequence[Pair], numbers: Sequence[Number]) -> list[Copy]:
    """Copies of pairs with the most similar number of another pair in the same language, the most similar first."""
    if not numbers:
        return []
    vectors = np.stack([number.vector for number in numbers])
    likeness = vectors @ vectors.T
    english, translation = (equal([number.written[side].tobytes() for number in numbers]) for side in (0, 1))
    likeness[english | translation | ~equal([number.language for number in numbers])] = -1
    best = likeness.argmax(axis=1)
    copies = []
    for place in np.argsort(-likeness.max(axis=1), kind="stable").tolist():
        one, other = numbers[place], numbers[best[place]]
        if likeness[place, best[place]] > ALIKE:
            copies.append(Copy(one.pair, *map(replaced, pairs[one.pair], one.words, other.written)))
    return copies


def equal(items: Sequence[Hashable]) -> NDArray[np.bool_]:
    """[n, n]: whether items i and j are equal."""
    kinds: dict[Hashable, int] = {}
    numbers = np.array([kinds.setdefault(item, len(kinds)) for item in items])
    return np.asarray(numbers[:, None] == numbers)


def swapped(pieces: Pieces, one: Word, other: Word) -> Pieces:
    """A sentence with two words swapped."""
    (a, b), (c, d) = sorted((one, other))
    return np.concatenate([pieces[:a], pieces[c:d], pieces[b:c], pieces[a:b], pieces[d:]])


def replaced(pieces: Pieces, word: Word, other: Pieces) -> Pieces:
    """A sentence with one word replaced."""
    return np.concatenate([pieces[: word[0]], other, pieces[word[1] :]])


def _tokens(sentences: list[Pieces]) -> Tokens:
    return Tokens(torch.from_numpy(np.concatenate(sentences)), torch.tensor([len(pieces) for pieces in sentences]))


@dataclass(frozen=True)
class Spellings:
    """Changes the spelling of some of the sentences of a batch."""

    processor: spm.SentencePieceProcessor
    share: float  # of the sentences
    max_tokens: int  # of a sentence

    def respell(self, tokens: Tokens, seed: list[int]) -> Tokens:
        """The batch with its respelled sentences, a function of the seed."""
        rng = np.random.default_rng(seed)
        sentences = [sentence.tolist() for sentence in torch.split(tokens.ids, tokens.lengths.tolist())]
        for number in np.flatnonzero(rng.random(len(sentences)) < self.share).tolist():
            text = other_spelling(self.processor.decode(sentences[number]), rng)
            sentences[number] = self.processor.encode(text)[: self.max_tokens] or sentences[number]
        return to_tokens(sentences)


def other_spelling(text: str, rng: np.random.Generator) -> str:
    """A text without accents, with umlauts as two letters, or with typing errors, each equally often."""
    spelled = dict.fromkeys([without_accents(text), without_accents(text.translate(SPELLED))])
    ways = [other for other in spelled if other != text]
    chosen = rng.integers(len(ways) + 1)
    return ways[chosen] if chosen < len(ways) else mistype(text, rng)


def mistype(text: str, rng: np.random.Generator) -> str:
    """A text in which one word of every eight has a letter missing, doubled, changed, or swapped with the next."""
    words = list(WORD.finditer(text))
    count = -(-len(words) // WORDS_PER_ERROR)
    for number in sorted(rng.choice(len(words), count, replace=False).tolist(), reverse=True) if words else ():
        place = int(rng.integers(words[number].start() + 1, words[number].end() - 1))
        rest = text[place:]
        strange = words[int(rng.integers(len(words)))][0][0]
        wrong = (rest[1:], rest[0] + rest, strange + rest[1:], rest[1] + rest[0] + rest[2:])
        text = text[:place] + wrong[rng.integers(len(wrong))]
    return text
