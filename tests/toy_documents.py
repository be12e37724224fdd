"""Made-up documents, and encoders: one with a bias towards the language, one of letters, one of angles."""

import re
from collections.abc import Iterable, Iterator
from zlib import crc32

import numpy as np

DIM = 24


class ToyEncoder:
    """Sentences are words such as `en12`: numbers carry the meaning, letters the language, together a little noise.

    Args:
        bias: How far languages lie from where they have nothing to do with each other.
        fingerprint: Identity of its vectors.
    """

    dim = DIM

    def __init__(self, bias: float = 1.0, fingerprint: str = "toy") -> None:
        self.fingerprint = fingerprint
        self._bias = bias
        self.policies: set[str] = set()
        self.ended = 0  # streams that were read to their end

    def encode_iter(self, sentences: Iterable[str], /, *, on_long: str) -> Iterator[np.ndarray]:
        """See `SentenceEncoder.encode_iter`."""
        self.policies.add(on_long)
        yield from map(self.vector, sentences)
        self.ended += 1

    def vector(self, sentence: str) -> np.ndarray:
        """The vector [D] of one sentence."""
        words = sentence.split()
        language = random_vector(words[0].rstrip("0123456789"))
        meaning = sum(random_vector(word.lstrip("enfrd")) + random_vector(word) / 5 for word in words)
        vector = self._bias * language + meaning / len(words)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class Letters:
    """A text is the count of its letters, whatever their case, so that anagrams are translations."""

    def __init__(self, *languages: str) -> None:
        if languages:
            self.languages = languages

    def encode(self, sentences: list[str], /) -> np.ndarray:
        """Vectors [n, 26]."""
        return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in sentences], np.float64)


class Angles:
    """A text is the direction in degrees that its digits say, 0 without any, and of length 2.

    Args:
        turn: Degrees that are added.
        dim: Dimensions; all but two are 0.
    """

    languages = ("en", "fr", "de")

    def __init__(self, turn: int = 0, dim: int = 2) -> None:
        self._turn, self._dim = turn, dim

    def encode(self, sentences: list[str], /) -> np.ndarray:
        """Vectors [n, dim]."""
        angles = np.radians([int(re.sub(r"\D", "", text) or 0) + self._turn for text in sentences])
        return np.pad(2 * np.stack([np.cos(angles), np.sin(angles)], axis=1), [(0, 0), (0, self._dim - 2)])


def random_vector(name: str) -> np.ndarray:
    """Always the same random vector [D] for a name."""
    return np.random.default_rng(crc32(name.encode())).normal(size=DIM)


def toy_documents(language: str, count: int = 60, seed: int = 0) -> list[list[str]]:
    """Documents of 3 to 6 sentences of 4 words; the same in every language but for the letters of the words."""
    random = np.random.default_rng(seed)
    return [
        [" ".join(f"{language}{word}" for word in random.integers(0, 300, 4)) for _ in range(random.integers(3, 7))]
        for _ in range(count)
    ]
