"""Pairs of made-up words, as many as wanted, written as they are made."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xsent.files import atomic_file

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
CHUNK = 10_000  # pairs made at a time
SPREAD = 0.75  # deviation of the logarithm of a sentence's length; 0.77 in 100,000 real pairs
LONGEST = 100  # words


def made_up_words(count: int) -> list[str]:
    """Different words of two to four syllables, the shortest first."""
    base = len(SYLLABLES)
    words = []
    for number in range(base, base + count):
        word = ""
        while number:
            number, syllable = divmod(number, base)
            word += SYLLABLES[syllable]
        words.append(word)
    return words


def made_up_lines(pairs: int, *, words: int, length: float, seed: int) -> Iterator[bytes]:
    """Lines of a corpus; a translation has the words of the English side with another ending, in reverse.

    Args:
        pairs: How many.
        words: Different words a language; the n-th is about n times rarer than the first (Zipf).
        length: Mean words of a sentence; lengths are log-normal, as those of real sentences are.
        seed: Seed of all chance.
    """
    english = made_up_words(words)
    other = [word + "x" for word in english]
    rng = np.random.default_rng(seed)
    likely = np.cumsum(1 / (10 + np.arange(words)))
    scale = np.log(length) - SPREAD**2 / 2
    for start in range(0, pairs, CHUNK):
        count = min(CHUNK, pairs - start)
        lengths = np.clip(np.round(rng.lognormal(scale, SPREAD, count)), 2, LONGEST).astype(int)
        drawn = np.searchsorted(likely, rng.random(int(lengths.sum())) * likely[-1]).tolist()
        ends = np.cumsum(lengths)
        for begin, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
            sentence = drawn[begin:end]
            sides = " ".join([english[i] for i in sentence]), " ".join([other[i] for i in reversed(sentence)])
            yield f"made-up\txx\t{sides[0]}\t{sides[1]}\n".encode()


def write_made_up(path: Path, pairs: int, *, words: int, length: float, seed: int = 1) -> None:
    """Write a corpus of made-up pairs, once; see `made_up_lines`."""
    if path.exists():
        return
    with atomic_file(path) as file:
        file.writelines(made_up_lines(pairs, words=words, length=length, seed=seed))
