"""The sentences of a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from xsent.errors import require_extra

TextOrSentences = str | Sequence[str]  # of one document

# Characters split at once. sentencex treats a quotation as one sentence, so a quotation mark that is never closed would
# hide all sentences up to the next one; and its time grows with the square of the length.
_WINDOW = 4000

_NUMBER = re.compile(r"\W*\d{1,3}[.)]\s*")  # of an item, before its sentence
# sentencex knows German dates, such as "am 3. Mai", but not "im 3. Stock".
_ORDINAL = re.compile(
    r"\b(?:am|im|vom|zu[mr]|beim|ins|de[rmns]|die|das|ab|bis|seit|und|oder"
    r"|(?:[mds]?ein|ihr|unser|eue?r|dies|jed|kein)(?:e[mnrs]?)?)\s\d{1,2}\.\s$",
    re.IGNORECASE,
)
_TITLE = re.compile(r"\.-\w{1,6}\.\s$")  # as in "Dipl.-Ing. Weber"
_LONGEST_BEFORE = 20  # characters of these


def split_sentences(text: str, *languages: str) -> list[str]:
    """Split a text into sentences; they are stripped, and empty ones are dropped.

    A line break ends a sentence only if a blank line follows. A sentence of more than 4,000 characters is cut.

    Args:
        text: The text.
        languages: The code of its language. With several, a sentence ends where the rules of all of them agree, which
            suits texts of an unknown language: "3. Mai" is not split if German is among them. A language that sentencex
            does not know is split by general rules.

    Raises:
        MissingExtraError: sentencex is not installed.
    """
    with require_extra("documents"):
        from sentencex import segment

    def ends(window: str) -> list[int]:
        # sentencex drops no characters, not even spaces
        every = [set(accumulate(map(len, segment(language, window)))) for language in languages or ("en",)]
        found = sorted(set.intersection(*every))
        return [end for end in found if end == len(window) or not _is_within(window, end, languages)]

    def pieces() -> Iterator[str]:
        start = 0
        while start < len(text):
            window = text[start : start + _WINDOW]
            found = ends(window)
            if start + _WINDOW < len(text) and len(found) > 1:
                found.pop()  # it may continue beyond the window
            yield from (window[first:end] for first, end in pairwise([0, *found]))
            start += found[-1]

    return _stripped(pieces())


def _is_within(text: str, place: int, languages: Sequence[str]) -> bool:
    """Whether a supposed end is within a sentence: within or after "Dipl.-Ing.", or after a number that begins it."""
    before = text[max(0, place - _LONGEST_BEFORE) : place]
    is_ordinal = "de" in languages and _ORDINAL.search(before)
    is_item = place == len(before) and _NUMBER.fullmatch(before)
    return text[place] == "-" or bool(is_ordinal or is_item or _TITLE.search(before))


def sentences_of(document: TextOrSentences, language: str) -> list[str]:
    """The sentences of a document, without empty ones; splits a text."""
    if isinstance(document, str):
        return split_sentences(document, language or "en") if document.strip() else []
    sentences = list(document)
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise TypeError(f"expected a text or its sentences, got {type(sentence).__name__} in a document")
    return _stripped(sentences)


def _stripped(sentences: Iterable[str]) -> list[str]:
    return [sentence.strip() for sentence in sentences if sentence.strip()]
