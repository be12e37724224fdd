"""Boilerplate: clauses that many texts repeat, such as greetings, sign-offs and footers, whatever their subject."""

import re
from collections import Counter
from collections.abc import Iterable

from xsent.languages import language_of
from xsent.tasks import text_list

_SHARE = 0.1  # of the texts of a language; a clause in at least this share is removed
_LEAST = 3  # fewest texts that repeat it
_MOST = 5000  # most texts that are counted
_WORDS = 3  # fewest words kept of a text; Chinese and Japanese characters count as words
# Clauses also end at a comma: "Hello, my parcel is late." A colon does not end one: "Refund: where is it?"
_ENDS = ".!?…,"
_CLAUSE = re.compile(rf"(?:[^\n{_ENDS}。！？、，]|[{_ENDS}](?!\s|$))*(?:[{_ENDS}。！？、，\n]\s*|$)")
_WORD = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\\W\\d_\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")

_Words = tuple[str, ...]  # words of a clause, without case and numbers


def strip_boilerplate(texts: Iterable[str]) -> list[str]:
    """Remove clauses that at least a tenth of the texts of a language, and at least three texts, contain.

    Numbers do not count: "My customer number is 17." repeats "My customer number is 23." The most frequent clauses are
    removed first, and at least three words of each text are kept, so that texts that are all alike stay whole. With
    more than 5,000 texts, only every second, third and so on is counted.

    Example:
        >>> mails = ["Hello, where is my parcel?", "Hello, the lamp is broken.", "Hello, I forgot my password."]
        >>> strip_boilerplate(mails)
        ['where is my parcel?', 'the lamp is broken.', 'I forgot my password.']
    """
    texts = text_list(texts)
    languages = [language_of(text) for text in texts]
    counted = slice(None, None, -(-len(texts) // _MOST) or 1)
    number = Counter(languages[counted])
    frequency = Counter[tuple[str, _Words]]()
    for language, text in zip(languages[counted], texts[counted], strict=True):
        frequency.update({(language, words) for clause in _clauses(text) if (words := _words(clause))})
    repeated = {one: count for one, count in frequency.items() if count >= max(_LEAST, _SHARE * number[one[0]])}
    if not repeated:
        return texts
    return [_without(text, language, repeated) for language, text in zip(languages, texts, strict=True)]


def _without(text: str, language: str, repeated: dict[tuple[str, _Words], int]) -> str:
    clauses = _clauses(text)
    words = [_words(clause) for clause in clauses]
    counts = [repeated.get((language, one), 0) for one in words]
    left = sum(map(len, words))
    for place in sorted(range(len(clauses)), key=lambda place: -counts[place]):
        if counts[place] and left - len(words[place]) >= _WORDS:
            left -= len(words[place])
            clauses[place] = ""
    return "".join(clauses).strip() if "" in clauses else text


def _clauses(text: str) -> list[str]:
    """The clauses and lines of a text; joined, they give the text back."""
    return [clause for clause in _CLAUSE.findall(text) if clause]


def _words(clause: str) -> _Words:
    return tuple(_WORD.findall(clause.casefold()))
