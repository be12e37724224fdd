"""Numbers in words of the nine languages: "twelve hundred", "mil doscientos", "fünfundzwanzigste", "half"."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from xsent.numbers import DECIMAL, HALVES, SCALES, Forms, Number, shifted

HALF = f"0{DECIMAL}5"

# Words of numbers in the order of their values, of units, and of opposites; a language may have several rows.
TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
_SMALL, _TENS, _HUNDREDS = TABLES["small"], TABLES["tens"], TABLES["hundreds"]
_ONE = {*TABLES["one"].split()}  # an article, too: counts before "thousand", and after tens and hundreds
_ARTICLES = {*TABLES["articles"].split()}  # count before "thousand" only
_JOINTS = {*TABLES["joints"].split()}
_NO_ORDINALS = {*TABLES["no_ordinals"].split()}  # alone: "cuarto" is a room, "quarta" Wednesday
_ALONE = {*TABLES["alone"].split()}  # "thousand" is a number, "millions" is none
_HALVES = {*HALVES}
# Words for halves mean other things, too: "the media", "half past six", "por meio de".
_NO_HALF_AFTER = re.compile(f"(?<![^ ])(?:{TABLES['no_half_after'].replace(' ', '|')}) $")
_NO_HALF_BEFORE = re.compile(" ?[0-9]| (?:past|de|ambiente|[а-я]+ого)(?![a-zа-я])")
_MOST_PARTS, _LONGEST_WORD, _BEFORE = 20, 80, 16


def _glued() -> Iterator[tuple[str, int]]:
    """Words from 21 to 99 that are written as one, or sound so: fünfundzwanzig, vijfentwintig, venticinque."""
    for small, tens, first in ((2, 2, "ein"), (7, 6, "een")):
        ones = [first, *_SMALL[small].split()[:8]]
        for place, ten in enumerate(_TENS[tens].split(), 2):
            for number, one in enumerate(ones, 1):
                joint = "und" if small == 2 else "ën" if one.endswith("e") else "en"
                yield f"{one}{joint}{ten}", 10 * place + number
    for place, ten in enumerate(_TENS[4].split(), 2):
        for number, one in enumerate(["uno", *_SMALL[4].split()[:8]], 1):
            for spelled in (one, one.replace("tre", "tré"), one.replace("uno", "un")):
                yield (ten[:-1] if one[0] in "uo" else ten) + spelled, 10 * place + number
    for row in ("uno dós trés cuatro cinco séis siete ocho nueve", "ún dos tres cuatro cinco seis siete ocho nueve"):
        for number, one in enumerate(row.split(), 21):
            yield f"veinti{one}", number


def _ordinals() -> Iterator[tuple[str, int]]:
    """Ordinal numbers: fourth, vierten, ventunesimo."""
    for first, step, stems, endings in TABLES["ordinals"]:
        for place, stem in enumerate(stems.split()):
            yield from ((stem + ending, first + step * place) for ending in endings.split(" "))
    for word, number in _glued():
        yield from ((word + ending, number) for ending in ("ste", "sten", "ster", "stes", "stem"))
        yield from ((word[:-1] + ending, number) for ending in ("esimo", "esima"))


_WORDS: dict[str, int] = {
    **{word: number for row in _SMALL for number, word in enumerate(row.split(), 2)},
    **{word: 10 * number for row in _TENS for number, word in enumerate(row.split(), 2)},
    **{word: 100 * number for row in _HUNDREDS for number, word in enumerate(row.split(), 2)},
    **dict.fromkeys(TABLES["hundred"].split(), 100),
    **{word: 10**exponent for word, exponent in SCALES.items()},
    **dict(_glued()),
    "vingts": 20,
}
_WORDS = {word.casefold(): number for word, number in _WORDS.items()}
HOURS = {word: number for word, number in _WORDS.items() if number <= 12} | {"eins": 1, "één": 1, "час": 1}
HOURS |= dict.fromkeys(("un", "une", "una", "uma"), 1)
MINUTES = {word: number for word, number in _WORDS.items() if number in (5, 10, 15, 20, 25)}
_ORDINALS = {word.casefold(): number for word, number in _ordinals()}
_WORDS |= _ORDINALS
_ENGLISH = {*_SMALL[0].split()} - {"six"}
_KNOWN = {*_WORDS, *_ONE, *_ARTICLES, *_JOINTS, *_HALVES}
_GLUED_SCALE = re.compile("(hundert|tausend|honderd|duizend|cento(?!tt)|cent(?=ott)|mila|mille)(?:und|en)?")
_GLUED_HALF = re.compile("(.+?)(?:ein|[eë]n(?:een)?)hal(?:b|f|ve)(?:e[nrs]?)?")  # zweieinhalb, tweeënhalf
_WORD = re.compile("[^\\W\\d_]+")


class _Part(NamedTuple):
    """A word of a number, or a part of one such as "zweihundertfünfzig"."""

    start: int
    end: int
    word: str


def number_words(folded: str, numbers: Iterable[Number]) -> Iterator[Number]:
    """The numbers in words of a text in lower case, beside those that begin with digits."""
    end = 0
    for number in numbers:
        yield from _between(folded, end, number.start)
        end = number.end
    yield from _between(folded, end, len(folded))


def _between(folded: str, start: int, end: int) -> Iterator[Number]:
    words = _WORD.finditer(folded, start, end)
    parts = [_Part(*found.span(), piece) for found in words for piece in _pieces(found[0])]
    place = 0
    while place < len(parts):
        count, forms = _longest(folded, parts, place)
        if forms:
            last = parts[place + count - 1]
            yield Number("ordinal" if last.word in _ORDINALS else "plain", parts[place].start, last.end, (forms,))
        elif parts[place].word in _ONE | _ARTICLES and (not place or parts[place - 1].word not in _HALVES):
            yield Number("article", parts[place].start, parts[place].end, (("1",),))
        place += count


@lru_cache(4096)
def _pieces(word: str) -> list[str]:
    """A word, or the parts of it, if it may belong to a number."""
    if word in _KNOWN:
        return [word]
    if len(word) > _LONGEST_WORD:
        return []
    half = _GLUED_HALF.fullmatch(word)
    pieces = [half[1], "and", "half"] if half else [piece for piece in _GLUED_SCALE.split(word) if piece]
    pieces = TABLES["with_half"].get(word, "").split() or pieces
    return pieces if all(piece in _KNOWN for piece in pieces) else []


def _longest(folded: str, parts: list[_Part], place: int) -> tuple[int, Forms]:
    """How many parts the number at a place has, at least one, and its normal forms; empty if it is none."""
    total = current = count = last = 0
    before = ""
    for at, part in enumerate(parts[place : place + _MOST_PARTS], place):
        if before and not _adjoin(folded, parts[at - 1].end, part.start):
            break
        word, number = part.word, _WORDS.get(part.word, 0)
        one = word in _ONE or (word in _ARTICLES and not before)
        if word in _HALVES:
            return _half(folded, parts, place, at, total + current, count)
        if number == 100 and _multiplies(word, before, current):
            current = max(current, 1) * 100
        elif number >= 1000 and number != last:
            total = (total + current or 1) * number if total < number else total + max(current, 1) * number
            current, last = 0, number
        elif number == 20 and current % 100 == 4:  # quatre-vingts
            current += 76
        elif (one or number) and (number or 1) < _room(current, number, is_ordinal=word in _ORDINALS):
            current += number or 1
        elif not before or (word not in _JOINTS and word not in _ARTICLES):
            break
        else:  # "and"
            before = word
            continue
        before, count = word, at + 1 - place
    if count == 1 and _is_uncounted(folded, parts, place):
        return 1, ()
    return max(count, 1), (str(total + current),) if count else ()


_NOT_ALONE = {100, *(10**exponent for exponent in SCALES.values())}


def _is_uncounted(folded: str, parts: list[_Part], place: int) -> bool:
    """Whether a single word does not count as a number: "a", "millions", "a fifth", "first" (see the opposites)."""
    word = parts[place].word
    if word in _ORDINALS:
        before = parts[place - 1] if place else None
        is_fraction = before and before.word in _ONE | _ARTICLES and _adjoin(folded, before.end, parts[place].start)
        return bool(is_fraction) or _ORDINALS[word] <= 3 or word in _NO_ORDINALS
    return word in _ONE or word in _ARTICLES or (_WORDS[word] in _NOT_ALONE and word not in _ALONE)


def _half(folded: str, parts: list[_Part], place: int, at: int, whole: int, count: int) -> tuple[int, Forms]:
    """The number that has a word for half: "two and a half", "half", "a half"; also "half past six", "halb sieben"."""
    words = [part.word for part in parts[place:at]]
    if count and any(word in _JOINTS for word in words[count:]):
        scale = _scale(folded, parts, at)
        return scale[0] + 1 - place, (shifted(f"{whole}{DECIMAL}5", scale[1]),)
    if any(word not in _ONE and word not in _ARTICLES for word in words):
        return max(count, 1), (str(whole),) if count else ()
    scale = _scale(folded, parts, at)
    if scale[1]:  # half a million
        return scale[0] + 1 - place, (shifted(HALF, scale[1]),)
    half = parts[at]
    later = parts[at + 1].word if at + 1 < len(parts) else ""
    hour = 1 if later in ("one", "eins") else _WORDS.get(later, 13)
    between = folded[half.end : parts[at + 1].start] if hour <= 12 else ""
    if between in (" ", " past ", "-past "):
        hour -= between == " " and later not in _SMALL[0].split()  # "half seven" is another hour in English
        return at + 2 - place, both_halves(60 * hour + 30)
    other = _NO_HALF_BEFORE.match(folded, half.end) or _NO_HALF_AFTER.search(
        folded[max(0, half.start - _BEFORE) : half.start]
    )
    return at + 1 - place, () if other else (HALF,)


def both_halves(minutes: int) -> Forms:
    """The normal forms of a time in minutes, in both halves of the day unless its hour says which."""
    hour, minute = divmod(minutes if minutes >= 0 else minutes + 720, 60)  # below 0: a quarter to 0
    hours = (hour,) if hour > 12 else (0, 12, 24) if hour % 12 == 0 else (hour, hour + 12)
    return tuple(f"t{one:02}{minute:02}" for one in hours)


def _scale(folded: str, parts: list[_Part], at: int) -> tuple[int, int]:
    """The place and the exponent of a word such as "million" after one for half, or the half's place and 0."""
    for place in range(at + 1, min(at + 3, len(parts))):
        if not _adjoin(folded, parts[place - 1].end, parts[place].start):
            break
        if parts[place].word not in _ARTICLES:
            exponent = SCALES.get(parts[place].word, 0)
            return (place, exponent) if exponent else (at, 0)
    return at, 0


def _multiplies(word: str, before: str, current: int) -> bool:
    """Whether a word for hundred belongs to the number before it: "twelve hundred", but not "five cents"."""
    if word in ("cent", "cents"):
        return 1 < current < 17 and before not in _ENGLISH if current else word == "cent"
    return current < 10 or (current < 100 and word[0] == "h")


def _room(current: int, number: int, *, is_ordinal: bool) -> int:
    """What comes next in a number is less than this: nine after twenty, nineteen after quatre-vingt."""
    if not current:
        return 1000
    if current % 100 == 0:
        return 100
    if current % 100 in (60, 80):
        return 20
    if current % 100 == 10 and (number > 6 or is_ordinal):  # dix-sept, décimo quinto
        return 10
    return 10 if current % 10 == 0 and current % 100 >= 20 else 0


def _adjoin(folded: str, end: int, start: int) -> bool:
    return start <= end or folded[end:start] in (" ", "-")
