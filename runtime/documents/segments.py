"""Texts to sentences, with `sentencex`.

Why that library: the Wikimedia Foundation keeps it and releases often; it has rules for over 30 languages and general
ones for the rest; its wheels (1.2 MB, aarch64 too, MIT) bring no other package. Of news in nine languages it found 95
to 99 % of the ends of lines, with no more false ones than pysbd, sentence-splitter and yasbd-lib, at least ten times as
fast. What it does badly: French titles before a name ("M. Dupont") are cut off.
"""

from collections.abc import Iterable, Iterator, Sequence

from xsent.errors import needing

Document = str | Sequence[str]

# Characters split at once. The library takes what stands between quotation marks for one sentence, so in a long
# paragraph one that is never closed swallows all up to the next; and its time grows with the square of the length.
_WINDOW = 4000


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a text without the space around them, none of them empty.

    Where the language is not known, the rules are general. A line break ends a sentence only where a blank line
    follows. A sentence of more than 4,000 characters is cut.
    """
    with needing("documents"):
        from sentencex import segment

    def pieces() -> Iterator[str]:
        start = 0
        while start < len(text):
            found = segment(language or "en", text[start : start + _WINDOW])
            if start + _WINDOW < len(text) and len(found) > 1:
                found.pop()  # it may go on beyond the window
            yield from found
            start += sum(map(len, found))  # nothing is dropped, space neither

    return _present(pieces())


def sentences_of(document: Document, language: str) -> list[str]:
    """The sentences of a document: a text, which is split, or sentences, of which empty ones are left out."""
    if isinstance(document, str):
        return split_sentences(document, language) if document.strip() else []
    sentences = list(document)
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise TypeError(f"expected a text or its sentences, got {type(sentence).__name__} in a document")
    return _present(sentences)


def _present(sentences: Iterable[str]) -> list[str]:
    return [sentence.strip() for sentence in sentences if sentence.strip()]
