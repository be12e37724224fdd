"""Text to piece ids by SentencePiece, which also normalises text, except for removing format characters."""

import re
from collections.abc import Iterable
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from xsent.clean import clean_text, remove_format
from xsent.errors import BundleError, lone_surrogate, not_text
from xsent.words import word_keys

_ACCENTED = re.compile("(?=.*[ß-\u024f])[a-zß-\u024f]+")
_FREQUENT, _RARE = -8.0, -12.0  # natural log-probabilities of words found nearly everywhere, and of rare words

# Languages whose text `expected_tokens` was measured on (docs/explanation/choosing.md).
MEASURED = frozenset(("en", "fr", "de", "es", "it", "pt", "nl", "ru", "ja"))
_ENOUGH = 20  # characters; a shorter text may be a name
_EXCESS = 1.5  # tokens beyond those expected, per square root of the characters
# A mark is a token. A list of words has more marks than the text that `expected_tokens` was measured on.
_MARK, _MARKS = 0.75, 0.035  # tokens that a mark has beyond other characters; usual share of marks in a text
_KANA, _JAPANESE = re.compile("[\u3041-\u30ff]"), 0.1  # no text with this share of kana is foreign, if it is old
_WORDS = 0.85  # smallest share of letters and spaces in a text to judge: no numbers, no code


def expected_tokens(text: str) -> float:
    """Expected number of tokens of a text in one of the `MEASURED` languages, from its characters and bytes.

    A hundred characters have 27 tokens in Latin letters (one byte each), 34 in Cyrillic ones, 77 in Japanese.
    """
    characters = len(text)
    size = len(text.encode())
    return max(0.18 * characters + 0.09 * size, 0.36 * size - 0.31 * characters)


def seems_foreign(text: str, tokens: int) -> bool:
    """Whether a text has far more tokens than one in a `MEASURED` language: its words are cut into small pieces."""
    length = len(text)
    excess, most = tokens - expected_tokens(text) + _MARK * _MARKS * length, _EXCESS * length**0.5
    if length < _ENOUGH or excess <= most:  # nearly every text
        return False
    marks = sum(not (sign.isalnum() or sign.isspace()) for sign in text)
    if excess - _MARK * marks <= most or len(_KANA.findall(text)) >= _JAPANESE * length:
        return False
    return sum(sign.isalpha() or sign == " " for sign in text) >= _WORDS * length


class Tokenizer:
    """A SentencePiece model; safe to share between threads. `clean` cleans texts first, see `clean_text`."""

    def __init__(self, path: str | Path, *, clean: bool = False) -> None:
        self._clean = clean
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise BundleError(f"{path}: not a SentencePiece model; copy the whole bundle again") from error
        # Weight of each piece [V] in `mostly_unknown`: above 0 for unknown characters, below 0 for known pieces.
        self._unknown_weight = np.full(self.vocab_size, -3, np.int8)  # in thirds
        # Byte pieces by name: asking every piece would take longer than opening the model.
        named = self._processor.piece_to_id([f"<0x{byte:02X}>" for byte in range(256)])
        # A character has two to four bytes; an emoji must not outweigh three words.
        self._unknown_weight[[piece for piece in named if self._processor.is_byte(piece)]] = 1
        self._unknown_weight[self._processor.piece_to_id("▁")] = 0  # neither
        self._unknown_weight[self._processor.unk_id()] = 3  # last: missing names above also get this id

    @property
    def vocab_size(self) -> int:
        """Number of pieces (V)."""
        return int(self._processor.get_piece_size())

    def encode(self, text: str) -> list[int]:
        """The piece ids of a text, without begin or end marks. Raises TypeError or ValueError if it is not text."""
        return self.read(text)[1]

    def read(self, text: str) -> tuple[str, list[int]]:
        """The text that is tokenised, without noise or format characters, and its piece ids; raises like `encode`."""
        if not isinstance(text, str):
            raise TypeError(not_text(text))
        read = remove_format(clean_text(text) if self._clean else text)
        try:
            ids: list[int] = self._processor.encode(str.encode(read))  # not the `encode` of a subclass
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{lone_surrogate(error, text)} is not valid text; "
                "decode the text again, as UTF-8 or with errors='replace'"
            ) from error
        return read, ids

    def mostly_unknown(self, ids: NDArray[np.int64]) -> bool:
        """Whether a text's pieces [T] contain more unknown characters than known pieces."""
        return bool(self._unknown_weight[ids].sum() > 0)

    def rarity(self, keys: Iterable[str]) -> float:
        """How rare a word with these keys (`word_keys`) is in the languages of the model: 0 for "the", 1 for a name."""
        if any(map(str.isdigit, "".join(keys))):
            return 1
        return _rarity(max(max(self._known.get(key, -inf), self._accented.get(key, -inf)) for key in keys))

    def piece_rarity(self, piece: int) -> float:
        """The same for a piece, by its id; 0 for one without letters and digits, and for one byte of a character."""
        named = any(map(str.isalnum, self._processor.id_to_piece(piece)))
        return _rarity(self._processor.get_score(piece)) if named else 0

    @cached_property
    def _known(self) -> dict[str, float]:
        """The words that are one piece, with their log-probabilities."""
        numbers = list(range(self.vocab_size))
        pieces = zip(self._processor.id_to_piece(numbers), self._processor.get_score(numbers), strict=True)
        return {piece[1:]: float(score) for piece, score in pieces if piece.startswith("▁")}

    @cached_property
    def _accented(self) -> dict[str, float]:
        """Words with accents by their spelling without, with the log-probability of the likeliest."""
        found: dict[str, float] = {}
        for word in filter(_ACCENTED.fullmatch, self._known):
            for key in next(word_keys(word), ()):
                found[key] = max(found.get(key, -inf), self._known[word])
        return found


def _rarity(probability: float) -> float:
    """The rarity of a word or piece by its log-probability; it is 0 for bytes, which have none."""
    return min(max((_FREQUENT - probability) / (_FREQUENT - _RARE), 0), 1)
