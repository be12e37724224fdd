"""Text to piece ids by SentencePiece, which also does all text normalisation but the removal of format characters."""

import re
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from xsent.clean import clean_text
from xsent.errors import BundleError

# Characters that say how text is laid out and are no part of it: Unicode's category Cf without those that are visible
# (signs around numbers in Arabic, Syriac, Kaithi and hieroglyphs), U+034F and the selectors of rare variants. Those
# before emoji (U+FE00 to U+FE0F) stay: they are pieces of the vocabulary. The class is written with the characters
# themselves, so that other tools can read it too.
FORMAT = (
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e0fff]"
)
_FORMAT = re.compile(FORMAT)

# Languages whose text `expected_tokens` was measured on (docs/choosing.md).
MEASURED = frozenset(("en", "fr", "de", "es", "it", "pt", "nl", "ru", "ja"))
_EXCESS = 1.6  # tokens above those expected, over the root of the characters
_WORDS = 0.85  # share of letters and spaces in what is judged: no numbers, no code


def remove_format(text: str) -> str:
    """A text without format characters: soft hyphens, zero-width spaces and joiners, marks of order and direction."""
    return text if str.isascii(text) else _FORMAT.sub("", text)


def expected_tokens(text: str) -> float:
    """Tokens that a text in one of the `MEASURED` languages has, by its characters and their bytes.

    A hundred characters have 27 tokens in Latin letters (one byte each), 34 in Cyrillic ones, 77 in Japanese.
    """
    characters = len(text)
    size = len(text.encode())
    return max(0.18 * characters + 0.09 * size, 0.36 * size - 0.31 * characters)


def seems_foreign(text: str, tokens: int) -> bool:
    """Whether a text has far more tokens than one in a `MEASURED` language: its words are cut into small pieces."""
    if tokens - expected_tokens(text) <= _EXCESS * len(text) ** 0.5:
        return False
    return sum(sign.isalpha() or sign == " " for sign in text) >= _WORDS * len(text)


class Tokenizer:
    """A SentencePiece model; safe to share between threads. `clean` is whether texts are cleaned, see `clean_text`."""

    def __init__(self, path: str | Path, *, clean: bool = False) -> None:
        self._clean = clean
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise BundleError(f"{path}: not a SentencePiece model; copy the whole bundle again") from error
        # Weight of each piece [V] in `mostly_unknown`: above 0 for unknown characters, below 0 for known pieces.
        self._unknown_weight = np.full(self.vocab_size, -1, np.float32)
        # Byte pieces by name: asking every piece would take longer than opening the model.
        named = self._processor.piece_to_id([f"<0x{byte:02X}>" for byte in range(256)])
        # A character has two to four bytes; an emoji must not outweigh three words.
        self._unknown_weight[[piece for piece in named if self._processor.is_byte(piece)]] = 1 / 3
        self._unknown_weight[self._processor.piece_to_id("▁")] = 0  # neither
        self._unknown_weight[self._processor.unk_id()] = 1  # last: it is also the id of any name above that is missing

    @property
    def vocab_size(self) -> int:
        """Number of pieces (V)."""
        return int(self._processor.get_piece_size())

    def encode(self, text: str) -> list[int]:
        """The piece ids of a text, without begin or end marks. Raises TypeError or ValueError if it is no text."""
        if not isinstance(text, str):
            raise TypeError(f"expected str, got {type(text).__name__}")
        if self._clean:
            text = clean_text(text)
        try:
            ids: list[int] = self._processor.encode(str.encode(remove_format(text)))  # not the `encode` of a subclass
        except UnicodeEncodeError as error:
            raise ValueError(
                f"a lone surrogate ({error.object[error.start]!r} at {error.start}) is no text; "
                "decode the text again, as UTF-8 or with errors='replace'"
            ) from error
        return ids

    def mostly_unknown(self, ids: NDArray[np.int64]) -> bool:
        """Whether the pieces [T] have more unknown characters than known pieces."""
        return bool(self._unknown_weight[ids].sum() > 0)
