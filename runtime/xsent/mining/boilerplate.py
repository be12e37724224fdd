"""What repeats in many texts, such as greetings, sign-offs and footers: it says nothing about their subjects."""

import re
from collections import Counter
from collections.abc import Sequence

from xsent.languages import language_of

_SHARE = 0.1  # of the texts of a language; a clause that more of them have is left out
_LEAST = 3  # texts that have it
_MOST = 5000  # texts that are counted
_WORDS = 3  # of a text that are kept at least; signs of Chinese and Japanese count as words
# Clauses end at a comma too: "Hello, my parcel is late." A colon does not end one: "Refund: where is it?"
_ENDS = ".!?…,"
_CLAUSE = re.compile(rf"(?:[^\n{_ENDS}。！？、，]|[{_ENDS}](?!\s|$))*(?:[{_ENDS}。！？、，\n]\s*|$)")
_WORD = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\\W\\d_\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")

_Words = tuple[str, ...]  # of a clause, without case and numbers


def strip_boilerplate(texts: Sequence[str]) -> list[str]:
    """Leave out the clauses that a tenth of the texts of a language or more have, at least three texts.

    Numbers do not count: "My customer number is 17." repeats "My customer number is 23." The most frequent clauses go
    first, and three words of each text stay, so that texts that all say the same stay whole.
    Of more than 5,000 texts, every second, third and so on is counted.
    """
    languages = [language_of(text) for text in texts]
    counted = slice(None, None, -(-len(texts) // _MOST) or 1)
    number = Counter(languages[counted])
    frequency = Counter[tuple[str, _Words]]()
    for language, text in zip(languages[counted], texts[counted], strict=True):
        frequency.update({(language, words) for clause in _clauses(text) if (words := _words(clause))})
    repeated = {one: count for one, count in frequency.items() if count >= max(_LEAST, _SHARE * number[one[0]])}
    if not repeated:
        return [*texts]
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
    """The clauses and lines of a text, which together are the text."""
    return [clause for clause in _CLAUSE.findall(text) if clause]


def _words(clause: str) -> _Words:
    return tuple(_WORD.findall(clause.casefold()))
