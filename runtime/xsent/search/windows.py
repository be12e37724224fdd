"""Windows of long lines: a line has a vector for each of its windows, and the nearest one counts."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xsent.clean import BLOCK_TAG, clean_text
from xsent.words import display_width, has_words

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder

# Sentences are joined up to the first width in columns, and one of more characters than the second is cut. Of rows of
# ten passages each, questions about one passage find 28 to 34% first, and 9% by the mean of windows of 128 tokens.
_JOINED, _LONGEST = 100, 300
_SHORTEST = 30  # a shorter sentence, such as "Yes.", is not a window by itself

_END = re.compile(rf"(?<=[.!?…;])\s+|(?<=[。！？；])|\n|{BLOCK_TAG.pattern}", re.I)  # a paragraph of HTML, too
_PART = re.compile(rf"\S.{{0,{_LONGEST - 1}}}(?=\s|$)|\S.{{0,{_LONGEST - 1}}}", re.DOTALL)


def windows_of(text: str, encoder: "SentenceEncoder") -> list[str]:
    """The texts of the windows of a line: only the line itself, unless it is too long to be encoded at once."""
    if len(text) <= encoder.max_length:
        return [text]
    with suppress(ValueError):  # the encoder names the line
        if encoder.count_tokens(text) > encoder.max_length and has_words(text):  # a cut tag would look like words
            read = clean_text(text) if encoder.clean else text
            return [window for window in _joined(read) if has_words(window)] or [text]
    return [text]


def first_rows(windows: Sequence[int], rows: int) -> NDArray[np.int64]:
    """The row of the first window of each row's line [n]; `windows` are the rows of the other ones."""
    first = np.arange(rows)
    first[[*windows]] = 0
    return np.maximum.accumulate(first)


def _joined(text: str) -> Iterator[str]:
    """The sentences of a text, with short ones joined to their neighbours."""
    window = ""
    for sentence in filter(str.strip, _END.split(text)):
        for part in _PART.findall(sentence.strip()):
            length, added = display_width(window), display_width(part)
            most = _JOINED if added >= _SHORTEST else _JOINED + _SHORTEST
            if length >= _SHORTEST and length + added > most:
                yield window
                window = ""
            window = f"{window} {part}".lstrip()
    if window:
        yield window
