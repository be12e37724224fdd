"""Words as an index and a search compare them: different spellings of a word become equal."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

from xsent.clean import remove_format, without_markup
from xsent.fractions import find_fractions
from xsent.numbers import Number, find_numbers

_SHORTEST, _ENDING = 4, 3  # fewest letters of a beginning, most letters of an ending

_SELECTORS = re.compile("[\ufe00-\ufe0f]")  # of variants of a character
# Accents are removed, but not the voicing marks of kana nor the breve that makes й another letter than и.
_ACCENTS = re.compile("(?<!и)[\u0300-\u036f]")
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "ß": "ss"})
SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})  # as people type them without the key

# What programs write where a value is missing. Words that people write, such as "none" or "no", are texts.
_NOTHING = re.compile(
    r"(?i:n\s?/\s?[ad]\.?|[nk]\.\s?a\.?|[(\[]?(?:null|undefined)[)\]]?|[(\[](?:none|blank|empty|deleted|removed)[)\]]|#n/?a|#nv)"
    r"|#[A-Z/0]+[!?]|NaN|nan|NA|None|\\N"
)

# Chinese and Japanese write no spaces: a run of one script is cut into pairs of characters.
# A word may be in either kind of kana.
_HIRAGANA = {sign: sign - 0x60 for sign in (*range(0x30A1, 0x30F7), 0x30FD, 0x30FE)}
_SCRIPTS = "\u3041-\u309fー", "\u30a1-\u30ff", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々"
_LETTER = f"[^\\W_{''.join(_SCRIPTS)}]"
_WORD = f"{_LETTER}++(?:[\u0300-\u036f]+{_LETTER}*+)*+"  # possessive: a long word takes no memory
_WHOLE = ("iban", "date", "time", "phone", "amount")  # numbers that a query has as one word
_RUN = re.compile("|".join([*(f"([{script}]+)" for script in _SCRIPTS), _WORD]))

# Unicode's normal forms sort a run of combining marks in quadratic time. Text that is safe to normalize has at most 30
# in a row (Unicode Standard Annex 15, "stream-safe"). All of them match \W, except two of half-width kana.
_MOST_MARKS = 30
_MAYBE_MARKS = re.compile(f"[\\W\uff9e\uff9f]{{{_MOST_MARKS + 1},}}")


def display_width(text: str) -> int:
    """Columns of a terminal that a text takes; Chinese and Japanese characters, which say more, take two."""
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide


def word_keys(text: str) -> Iterator[tuple[str, ...]]:
    """The search keys of every word of a text; two words are equal if they share a key.

    A key has no case, accents or compatibility forms, and ss for ß. A word with an umlaut has two keys: "Müller" is
    found as "muller" and as "mueller", but "neue" is not "neü". Katakana have the keys of hiragana: "りんご" finds
    "リンゴ". Dates, times, phone numbers, IBANs, large amounts and fractions have the keys of their normal forms
    (`xsent.numbers`): "48,210" is found as "48210", and "half a cup" as "½ cup". "XK-42" is also found as "XK42".
    """
    plain = folded(text)
    return _keys(plain, _whole(plain))


def _whole(plain: str) -> list[Number]:
    """The numbers of a folded text that are one word each, and its fractions and codes beside them."""
    whole = [number for number in find_numbers(plain) if number.kind in _WHOLE]
    taken = {place for number in whole for place in range(number.start, number.end)}
    more = [number for number in find_fractions(plain) if taken.isdisjoint(range(number.start, number.end))]
    return sorted([*whole, *more], key=lambda number: number.start) if more else whole


def _keys(plain: str, numbers: Iterable[Number]) -> Iterator[tuple[str, ...]]:
    """The keys of a folded text with these numbers."""
    end = 0
    for number in numbers:
        yield from _written_keys(plain, end, number.start)
        yield from number.words
        end = number.end
    yield from _written_keys(plain, end, len(plain))


def _written_keys(plain: str, start: int, end: int) -> Iterator[tuple[str, ...]]:
    """The keys of the words between two places, as they are written."""
    for found in _RUN.finditer(plain, start, end):
        word = found[0]
        if found.lastindex:
            word = word.translate(_HIRAGANA)
            yield from ((word[place : place + 2],) for place in range(len(word) - 1 or 1))
        elif word.isascii():
            yield (word,)
        else:
            yield tuple(dict.fromkeys(map(without_accents, (word, word.translate(SPELLED)))))


def folded(text: str) -> str:
    """A text without case, format characters and compatibility forms."""
    plain = _SELECTORS.sub("", remove_format(text)).casefold()
    return plain if plain.isascii() else normalize("NFKC", plain).casefold()


def beginning(key: str) -> str:
    """What a key shares with inflected forms and compounds: all but its last three letters, at least four.

    Empty for a key with fewer letters or with a digit.
    """
    if len(key) < _SHORTEST or any(map(str.isdigit, key)):
        return ""
    return key[: max(_SHORTEST, len(key) - _ENDING)]


def joined_keys(text: str) -> str:
    """All keys of a text, separated by spaces, as in the table of words; also those of its numbers and beside them."""
    plain = folded(text)
    written = [*chain.from_iterable(_written_keys(plain, 0, len(plain)))]
    if numbers := _whole(plain):
        known = {*written}
        written += dict.fromkeys(key for key in chain.from_iterable(_keys(plain, numbers)) if key not in known)
    return " ".join(written)


def has_words(text: str) -> bool:
    """Whether a text has words: a letter or a digit outside of HTML tags, and not just a sign for nothing like "N/A".

    A text without words, such as "...", "<p>&nbsp;</p>" or a row of emoji, is never found, is always `unknown`,
    joins no cluster, and has no translation and no duplicate.
    """
    plain = without_markup(text)
    return _RUN.search(folded(plain)) is not None and not _NOTHING.fullmatch(remove_format(plain).strip())


def without_accents(text: str) -> str:
    """A lower-case text without accents and other marks on its letters; kana and й keep theirs."""
    plain = _ACCENTS.sub("", normalize("NFD", text.translate(_LETTERS)))
    return unicodedata.normalize("NFC", plain)


def normalize(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """A normal form of a text, without combining marks beyond what one letter can have."""
    return unicodedata.normalize(form, _MAYBE_MARKS.sub(_limited, text) if len(text) > _MOST_MARKS else text)


def _limited(found: re.Match[str]) -> str:
    """The matched characters, with only the first of the combining marks in a row."""
    kept = []
    marks = 0
    for sign in found[0]:
        marks = marks + 1 if unicodedata.combining(unicodedata.normalize("NFKD", sign)[0]) else 0
        if marks <= _MOST_MARKS:
            kept.append(sign)
    return "".join(kept)
