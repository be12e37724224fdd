"""Sentences as people type them: without accents, with ae for ä, with typing errors. Their meaning stays."""

import re
from dataclasses import dataclass

import numpy as np
import sentencepiece as spm
import torch

from xsent.words import SPELLED, without_accents
from xsent_train.tokens import Tokens

WORD = re.compile(r"[^\W\d_\u3040-\u9fff\uac00-\ud7af]{4,}")  # in scripts whose letters are typed one by one
WORDS_PER_ERROR = 8


@dataclass(frozen=True)
class Spellings:
    """Spells some of the sentences of a batch in another way."""

    processor: spm.SentencePieceProcessor
    share: float  # of the sentences
    most: int  # tokens of a sentence

    def respell(self, tokens: Tokens, seed: list[int]) -> Tokens:
        """The batch with its respelled sentences, a function of the seed."""
        rng = np.random.default_rng(seed)
        sentences = [sentence.tolist() for sentence in torch.split(tokens.ids, tokens.lengths.tolist())]
        for number in np.flatnonzero(rng.random(len(sentences)) < self.share).tolist():
            text = other_spelling(self.processor.decode(sentences[number]), rng)
            sentences[number] = self.processor.encode(text)[: self.most] or sentences[number]
        ids = torch.tensor([piece for sentence in sentences for piece in sentence], dtype=torch.int64)
        return Tokens(ids, torch.tensor([len(sentence) for sentence in sentences], dtype=torch.int64))


def other_spelling(text: str, rng: np.random.Generator) -> str:
    """A text without its accents, with its umlauts as two letters, or with typing errors: each way equally often."""
    spelled = dict.fromkeys([without_accents(text), without_accents(text.translate(SPELLED))])
    ways = [other for other in spelled if other != text]
    chosen = rng.integers(len(ways) + 1)
    return ways[chosen] if chosen < len(ways) else mistype(text, rng)


def mistype(text: str, rng: np.random.Generator) -> str:
    """A text in which a word of every eight has a letter too few, doubled, changed, or in the place of the next."""
    words = list(WORD.finditer(text))
    count = -(-len(words) // WORDS_PER_ERROR)
    for number in sorted(rng.choice(len(words), count, replace=False).tolist(), reverse=True) if words else ():
        place = int(rng.integers(words[number].start() + 1, words[number].end() - 1))
        rest = text[place:]
        strange = words[int(rng.integers(len(words)))][0][0]
        wrong = (rest[1:], rest[0] + rest, strange + rest[1:], rest[1] + rest[0] + rest[2:])
        text = text[:place] + wrong[rng.integers(len(wrong))]
    return text
