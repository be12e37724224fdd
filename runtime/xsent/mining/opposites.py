"""Words that exclude each other, in the nine languages: before and after, open and closed, days, months.

The groups are in words.json. Each has columns that exclude each other; a column has the words of every language, in the
order of `LANGUAGES`. An asterisk stands for any ending, "#" for a number, "_" for a space. A point stands for the end
of a clause, where "on" counts; elsewhere it counts only between texts that differ in nothing else. A tilde follows a
word with other meanings, such as "voor" (before, for): in this group, it counts only between texts of one language. A
plus follows a direction, which counts before the same word: to Rome, from Rome. Japanese may be anywhere in a text.
Beside the groups, single letters exclude each other, as in group A and group B.
"""

import re
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from xsent.languages import likely_languages
from xsent.mining.number_words import TABLES
from xsent.numbers import PARTS

LANGUAGES = "en de fr es it pt nl ru ja".split()

_LETTERS = "[^\\W\\d_]+(?:['-][^\\W\\d_]+)*"
_ARTICLES = "(?:the|an?|der|die|das|de[mns]?|zum|les?|la|une?|el|l[ao]s|una|il|al|alle|os?|as|het|een) "
_WORD = re.compile(  # a word, the sign at its end, and a number or a word that follows
    f"({_LETTERS})( *(?:[^\\w\\s]|$))?(?= ?(?:{_ARTICLES})?(?:((?:(?:{PARTS['NAME']}) )?[0-9])|({_LETTERS}))?)"
)
_NEGATING = re.compile(  # prefixes
    r"\b(?:un|dis|non ?|de|in|im|il|ir|mis|des|dés|mé|on|ont|ent|nicht|niet|не|без)+(?=\w{3})|[不未非]"
)
_AN = re.compile(r"\ban\b")  # a stable system, an unstable one
_NAMING = re.compile(  # a letter or a size that sets apart: group B, size XL, ビタミンC
    "(?:(?<=[^\\W\\d_] )|(?<=[ァ-ヶー一-龠]))(?:[A-HJ-UWYZ]|X{1,3}[SL])(?![a-zà-ÿA-Z0-9'’°&/+-]|[.] ?\\w)"
)
_SHORTEST, _LONGEST = 3, 20  # letters before an asterisk
_WORDS = 3  # of a phrase, at most
# A short text may be in any language that has half the function words of the likeliest one. A single one says nothing:
# "plus" is one in French.
_LIKELY = 0.5

Pole = tuple[int, int, str]  # numbers of a group and of a column, and the word after a direction


class _Listed(NamedTuple):
    """Words of a language that exclude others."""

    strong: dict[str, set[tuple[int, int]]]  # by word
    weak: dict[str, set[tuple[int, int]]]  # of words that have other meanings, too
    words: set[str]
    begin: set[str]  # words that begin a phrase


def _listed(place: int) -> _Listed:
    strong = defaultdict[str, set[tuple[int, int]]](set)
    weak = defaultdict[str, set[tuple[int, int]]](set)
    for group, row in enumerate(TABLES["opposites"]):
        for column, words in enumerate(row):
            for written in words.split(" | ")[place].casefold().split():
                word = written.removesuffix("~")
                (strong if word == written else weak)[word].add((group, column))
    listed = {*strong, *weak}
    return _Listed({**strong}, {**weak}, listed, {word.partition("_")[0] for word in listed if "_" in word})


_LISTED = {language: _listed(place) for place, language in enumerate(LANGUAGES)}
_JAPANESE = _LISTED["ja"]
_PART = re.compile("|".join(sorted(_JAPANESE.words, key=len, reverse=True)))


class Poles(NamedTuple):
    """What of a text excludes words of another."""

    languages: list[str]  # in which it may be; empty if unknown
    strong: set[Pole]
    weak: set[Pole]  # of words that have other meanings, too


def opposed(first: str, second: str) -> bool:
    """Whether texts in the form NFKC have words that exclude each other, each one that the other lacks.

    Also two texts that differ only in the prefix of a word, such as stable and unstable, 公開 and 非公開, or in a word
    such as on and off.
    """
    words = [re.findall(r"\w+", text.casefold()) for text in (first, second)]
    return _negated(*words) or _switched(*words) or exclude(poles_of(first), poles_of(second))


def exclude(first: Poles, second: Poles) -> bool:
    """Whether each text has a word that excludes one of the other, and that the other lacks."""
    same = not first.languages or not second.languages or not {*first.languages}.isdisjoint(second.languages)
    one, other = (text.strong | text.weak if same else text.strong for text in (first, second))
    groups = [{(group, word) for group, _, word in lacking} for lacking in (one - other, other - one)]
    return not groups[0].isdisjoint(groups[1])


def _negated(first: list[str], second: list[str]) -> bool:
    """Whether the only difference of two texts is a prefix that negates a word."""
    one, other = (_AN.sub("a", " ".join(words)) for words in (first, second))
    if len(one.replace(" ", "")) == len(other.replace(" ", "")):
        return False
    return _NEGATING.sub("", one) == _NEGATING.sub("", other)


def _switched(first: list[str], second: list[str]) -> bool:
    """Whether the only difference of two texts is a word such as on or off, which elsewhere ends a clause."""
    differing = [words for words in zip(first, second, strict=False) if words[0] != words[1]]
    if len(first) != len(second) or len(differing) != 1:
        return False
    one, other = differing[0]
    ends = [(table.strong.get(f"{one}.", set()), table.strong.get(f"{other}.", set())) for table in _LISTED.values()]
    return any(not {group for group, _ in left}.isdisjoint(group for group, _ in right) for left, right in ends)


def poles_of(text: str) -> Poles:
    """The columns of the words of a text in the form NFKC, in its languages, or in all if none is known."""
    languages = likely_languages(text, _LIKELY, above=1)
    folded = text.casefold().replace("’", "'")
    found = Poles(languages, set(), set())
    for part in _PART.findall(folded):
        found.strong.update((*pole, "") for pole in _JAPANESE.strong.get(part, ()))
        found.weak.update((*pole, "") for pole in _JAPANESE.weak.get(part, ()))
    found.strong.update((-1, int(name, 36), "") for name in _NAMING.findall(text))  # each letter excludes the others
    tables = [_LISTED[language] for language in languages or LANGUAGES if language in _LISTED]
    words = [(match[1], match[2] is not None, match[3] is not None, match[4] or "") for match in _WORD.finditer(folded)]
    place = 0
    while place < len(words):
        taken = 1
        for table in tables:
            keys, count = _keys(words[place : place + _WORDS], table)
            taken = max(taken, count)
            for key in keys:
                ahead = words[place][3] if key.endswith("+") else ""
                found.strong.update((*pole, ahead) for pole in table.strong.get(key, ()))
                found.weak.update((*pole, ahead) for pole in table.weak.get(key, ()))
        place += taken
    return found


def _keys(words: list[tuple[str, bool, bool, str]], table: _Listed) -> tuple[list[str], int]:
    """What a table lists of the first words, and how many words that takes: the longest phrase, or one."""
    word, end, number, ahead = words[0]
    for count in range(len(words), 1, -1) if word in table.begin else ():
        phrase = "_".join(word for word, *_ in words[:count])
        if phrase in table.words:
            return [phrase], count
    return [key for key in _forms(word, "." * end + "#" * number + "+" * bool(ahead)) if key in table.words], 1


@lru_cache(4096)
def _forms(word: str, marks: str) -> list[str]:
    """How a word may be listed."""
    forms = [word, *(word + mark for mark in marks)]
    forms += (f"{word[:letters]}*" for letters in range(_SHORTEST, min(len(word), _LONGEST) + 1))
    return [*forms, *_forms(word.rpartition("'")[2], marks)] if "'" in word else forms  # l'hiver
