"""Rejoins words that are cut at the end of a line."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property

_COMPOUND = re.compile(r"\b(\w{1,40})-(?=(\w{1,40}))")
_SURE = "\u00ad\u00ac"  # soft hyphen, and the sign that some scanners write: never part of a word
HYPHENS = ("-", "\u2010", *_SURE)
_BEGINNING = re.compile(r"\w{1,40}$")
_REST = re.compile(r"\s*([^\W_]\w{0,39})")
# The rest of a word with its punctuation, and what follows up to the next word: a line that began with a number or a
# sign could be read as an item of a list.
_PULLED = re.compile(r"\s*+(\S++(?:\s++[^\s\w]\S*+|\s++\d\S*+)*+)\s*+")
_AND = frozenset("und oder bzw sowie and or et ou y o e u и".split())  # "Ein- und Ausgang" has no word to join


class Hyphens:
    """Rejoins the cut words of a text; words such as Anglo-Saxon keep their hyphen."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _compounds(self) -> list[tuple[str, str]]:
        """The halves of all words that have a hyphen within a line, in order."""
        return sorted(_COMPOUND.findall(self._text.casefold()))

    def rejoined(self, lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
        """The numbered lines of a paragraph; the rest of a cut word moves up to its beginning."""
        found = list[tuple[int, list[str]]]()  # pieces, because a line may get the rests of many
        for number, line in lines:
            pieces = found[-1][1] if found else [""]
            hyphen = self._hyphen(pieces[-1].rstrip(), line)
            if hyphen is None:
                found.append((number, [line]))
                continue
            pulled = _PULLED.match(line)
            assert pulled is not None  # _hyphen found a word
            pieces[-1] = pieces[-1].rstrip()[:-1] + hyphen
            pieces.append(pulled[1])
            if pulled.end() < len(line):
                found.append((number, [line[pulled.end() :]]))
        return [(number, "".join(pieces)) for number, pieces in found]

    def _hyphen(self, line: str, following: str) -> str | None:
        """What joins the word that two lines share: nothing or its hyphen; None if they share no word."""
        beginning = _BEGINNING.search(line[-41:-1]) if line.endswith(HYPHENS) else None
        rest = _REST.match(following) if beginning else None
        if beginning is None or rest is None or rest[1].casefold() in _AND:
            return None
        if line[-1] in _SURE:
            return ""
        halves = beginning[0].casefold(), rest[1].casefold()
        place = bisect_left(self._compounds, halves)
        is_known = place < len(self._compounds) and "-".join(self._compounds[place]).startswith("-".join(halves))
        return "" if beginning[0][-1].isalpha() and rest[1][0].islower() and not is_known else "-"
