"""Words that exclude each other, in the nine languages: before and after, open and closed, days, months.

The groups are in words.json. Each has columns that exclude each other, with the words of all languages for each. An
asterisk stands for any ending, a point for the end of a clause, "_" for a space. Japanese may be anywhere in a text.
"""

import re
import unicodedata

from xsent.mining.number_words import TABLES

_JAPANESE = re.compile("[\u3041-\u30ff\u4e00-\u9fff]")
_WORD = re.compile("([^\\W\\d_]+(?:['-][^\\W\\d_]+)*)( *(?:[^\\w\\s]|$))?")
_SHORTEST = 3  # letters before an asterisk

Pole = tuple[int, int]  # numbers of a group and of a column


def _listed() -> dict[str, set[Pole]]:
    """The columns of every word, as it is listed."""
    found: dict[str, set[Pole]] = {}
    for group, row in enumerate(TABLES["opposites"]):
        for column, words in enumerate(row):
            for word in words.casefold().split():
                found.setdefault(word, set()).add((group, column))
    return found


_LISTED = _listed()
_PARTS = {word: poles for word, poles in _LISTED.items() if _JAPANESE.search(word)}
_PART = re.compile("|".join(sorted(_PARTS, key=len, reverse=True)))


def opposed(first: str, second: str) -> bool:
    """Whether the texts have words that exclude each other, each one that the other lacks."""
    one, other = _poles(first), _poles(second)
    return bool({group for group, _ in one - other} & {group for group, _ in other - one})


def _poles(text: str) -> set[Pole]:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    found = set[Pole]()
    previous = ""
    for word, end in (match.groups() for match in _WORD.finditer(folded)):
        keys = [word, f"{previous}_{word}", *([] if end is None else [f"{word}."])]
        if "'" in word:  # l'hiver
            keys.append(word.rpartition("'")[2])
        keys += (f"{word[:letters]}*" for letters in range(_SHORTEST, min(len(word), 20) + 1))
        found.update(*(_LISTED[key] for key in keys if key in _LISTED))
        previous = word
    return found.union(*(_PARTS[part] for part in _PART.findall(folded)))
