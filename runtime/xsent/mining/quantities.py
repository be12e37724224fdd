"""Quantities of a text: its numbers, in digits and in words of the nine languages, with their signs and units."""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from xsent.numbers import DECIMAL, LETTERS, Number, find_numbers, value

_LONGEST = 24  # digits of a value that a word such as "million" multiplies

# Words of numbers in the order of their values, and of units; a language may have several rows.
TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
_SMALL, _TENS, _HUNDREDS = TABLES["small"], TABLES["tens"], TABLES["hundreds"]
_SCALES = {int(scale): words for scale, words in TABLES["scales"].items()}
_ONE = {*"one un une ein eins uno una um uma een één один одна".split()}  # an article, too: counts after tens only
_JOINTS = {*"and et und y e en".split()}
_ALONE = {
    *"hundred thousand hundert tausend honderd duizend сто тысяча".split()
}  # "thousand" is one, "millions" is none


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
            yield (ten[:-1] if one[0] in "uo" else ten) + one.replace("tre", "tré"), 10 * place + number
            yield (ten[:-1] if one[0] in "uo" else ten) + one, 10 * place + number
    for number, one in enumerate("uno dós trés cuatro cinco séis siete ocho nueve".split(), 21):
        yield f"veinti{one}", number


_WORDS: dict[str, int] = {
    **{word: number for row in _SMALL for number, word in enumerate(row.split(), 2)},
    **{word: 10 * number for row in _TENS for number, word in enumerate(row.split(), 2)},
    **{word: 100 * number for row in _HUNDREDS for number, word in enumerate(row.split(), 2)},
    **{word: scale for scale, row in _SCALES.items() for word in row.split()},
    **dict(_glued()),
    "vingts": 20,
}
_WORDS = {word.casefold(): number for word, number in _WORDS.items()}
_GLUED_SCALE = re.compile("(hundert|tausend|honderd|duizend)(?:und|en)?")
_WORD = re.compile("[^\\W\\d_]+")
_KANJI = re.compile(
    "(?<![一二三四五六七八九十百千])[一二三四五六七八九十百千]{1,12}(?=[人匹本個枚冊台時年月日回杯階歳つ万億円分]|キロ|メートル)"
)
_KANJI_DIGITS, _KANJI_TENS = "一二三四五六七八九", {"十": 10, "百": 100, "千": 1000}
_JAPANESE_SCALES = {"千": 10**3, "万": 10**4, "億": 10**8}

_UNIT_OF = {name: unit for unit, names in TABLES["units"].items() for name in names.casefold().split()}
_NAMES = "|".join(map(re.escape, sorted(_UNIT_OF, key=len, reverse=True)))
_UNIT_AFTER = re.compile(f"[ -]?(?:d['’])?({_NAMES}|(?:per|pour) cent|por ciento|por cento|per cento)(?![{LETTERS}'’])")
_UNIT_BEFORE = re.compile("([€$£¥]|eur|usd|chf|gbp|jpy|rub) ?$")
_MINUS = re.compile(
    r"(?:(?:^|[\s(\[:=])[-−–]|\b(?:minus|negative|"
    r"(?<!au )moins|(?<!al |ao |lo |no )menos|meno|min|минус) |マイナス|零下)$"
)
_SHORT_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9}  # behind currencies
_SHORT_SCALE, _LETTER_AFTER = (re.compile(f"(?:{one})(?![0-9{LETTERS}])") for one in ("k|mn?|bn", "[a-z]"))
_BEFORE = 16  # characters before a number that may be its sign or its currency


class Quantity(NamedTuple):
    """A number with its unit."""

    forms: frozenset[str]  # normal forms, see `xsent.numbers`
    also: frozenset[str]  # what it may be beside one of another notation: 6 at "6 p.m."
    unit: str  # empty if unknown


def differ(first: list[Quantity], second: list[Quantity]) -> bool:
    """Whether each text has a quantity that the other lacks."""
    return _lacks(first, second) and _lacks(second, first)


def _lacks(first: list[Quantity], second: list[Quantity]) -> bool:
    """Whether a quantity of the first text has the form of none of the second, or another unit."""
    units, also = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for other in second:
        for table, forms in ((units, other.forms), (also, other.also)):
            for form in forms:
                table[form].add(other.unit)
    for one in first:
        found = set[str]().union(*(units[form] for form in one.forms | one.also), *(also[form] for form in one.forms))
        if not found or (one.unit and not found & {"", one.unit}):
            return True
    return False


def quantities(text: str) -> list[Quantity]:
    """All quantities of a text, in digits or in words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [*chain.from_iterable(_read(folded, number) for number in _combined(folded))]


class _Part(NamedTuple):
    """A number, or a word of one."""

    start: int
    end: int
    word: str
    number: Number | None


def _combined(folded: str) -> Iterator[Number]:
    """Numbers in digits, and those in words: "2 million", "twenty-five"."""
    numbers = find_numbers(folded)
    yield from map(_of_kanji, _KANJI.finditer(folded))
    parts = [_Part(number.start, number.end, "", number) for number in numbers]
    for found in _WORD.finditer(folded):
        parts += _parts_of_word(found)
    parts.sort(key=lambda part: part.start)
    place = 0
    while place < len(parts):
        end, number = _longest(folded, parts, place)
        if number:
            yield number
        place = end


def _parts_of_word(found: re.Match[str]) -> list[_Part]:
    """A word, or the parts of one such as "zweihundertfünfzig", if it may belong to a number."""
    word = found[0]
    if word in _WORDS or word in _ONE or word in _JOINTS:
        return [_Part(*found.span(), word, None)]
    pieces = [piece for piece in _GLUED_SCALE.split(word) if piece] if len(word) < 80 else []
    if len(pieces) > 1 and all(piece in _WORDS or piece in ("ein", "een") for piece in pieces):
        return [_Part(*found.span(), piece, None) for piece in pieces]
    return []


def _longest(folded: str, parts: list[_Part], place: int) -> tuple[int, Number | None]:
    """The number that begins at a part, if any, and the place after its last part."""
    first = parts[place]
    if first.number is not None:
        form = first.number.words[0][0]
        if first.number.kind not in ("plain", "amount", "decimal") or len(form) > _LONGEST or form.count(".") > 0:
            return place + 1, first.number
    elif first.word not in _WORDS:
        return place + 1, None
    whole = Decimal(first.number.words[0][0].replace(DECIMAL, ".")) if first.number else Decimal(_WORDS[first.word])
    total, end, last = _sum(folded, parts, place, whole)
    if end == place + 1 and (first.number or (first.word not in _ALONE and _WORDS[first.word] in _SCALES)):
        return end, first.number
    text, _, fraction = f"{total.normalize():f}".partition(".")
    return end, Number("plain", first.start, last, ((value(text, fraction),),))


def _sum(folded: str, parts: list[_Part], place: int, current: Decimal) -> tuple[Decimal, int, int]:
    """The value of the number that begins at a part, the place after its last part, and its end in the text."""
    digits = parts[place].number is not None
    total, end, last = Decimal(0), place + 1, parts[place].end
    for at in range(place + 1, min(place + 20, len(parts))):
        part = parts[at]
        if part.number or not _adjoin(folded, parts[at - 1].end, part.start):
            break
        number = 1 if part.word in _ONE else _WORDS.get(part.word, 0)
        if not number:  # "and"
            continue
        if number >= 1000:
            total, current = ((total + current) * number, Decimal(0)) if total < number else (total, current)
        elif number == 100 and not digits and 1 < current < 10:
            current *= 100
        elif number == 20 and current % 100 == 4 and not digits:  # quatre-vingts
            current += 76
        elif not digits and number < _room(total, current, number):
            current += number
        else:
            break
        if not (total + current):
            break
        end, last = at + 1, part.end
    return total + current, end, last


def _room(total: Decimal, current: Decimal, number: int) -> int:
    """What comes next in a number is less than this: nine after twenty, nineteen after quatre-vingt."""
    if not current:
        return 1000 if total else 0
    if current % 100 == 0:
        return 100
    if current % 100 in (60, 80):
        return 20
    if current % 100 == 10 and number > 6:  # dix-sept
        return 10
    return 10 if current % 10 == 0 and current % 100 >= 20 else 0


def _adjoin(folded: str, end: int, start: int) -> bool:
    return start <= end or folded[end:start] in (" ", "-", ". ")


def _of_kanji(found: re.Match[str]) -> Number:
    total = digit = 0
    for sign in found[0]:
        if sign in _KANJI_TENS:
            total += max(digit, 1) * _KANJI_TENS[sign]
            digit = 0
        else:
            digit = _KANJI_DIGITS.index(sign) + 1
    return Number("plain", *found.span(), ((str(total + digit),),))


def _read(folded: str, number: Number) -> list[Quantity]:
    """The quantities of a number: two of a date with a year."""
    if number.kind not in ("plain", "amount", "decimal"):
        return [Quantity(frozenset(forms), _hours(forms, number.kind), "") for forms in number.words]
    (forms,) = number.words
    before = folded[max(0, number.start - _BEFORE) : number.start]
    end = number.end
    ahead = _UNIT_BEFORE.search(before)
    short = _SHORT_SCALE.match(folded, end) if ahead else None  # $3.5m
    scale = _SHORT_SCALES[short[0]] if short else _JAPANESE_SCALES.get(folded[end : end + 1])
    if scale and len(forms[0]) <= _LONGEST:
        whole, _, fraction = f"{Decimal(forms[0].replace(DECIMAL, '.')) * scale:f}".partition(".")
        forms, end = (value(whole, fraction),), end + len(short[0] if short else "万")
    after = _UNIT_AFTER.match(folded, end)
    unit = ""
    if after or ahead:
        unit = _UNIT_OF.get(after[1], "%") if after else _UNIT_OF[ahead[1]] if ahead else ""
        if number.kind == "decimal":  # 3.10 euros are 3.1, unlike versions
            forms = (*forms, value(*forms[0].split(DECIMAL)))
    elif number.kind == "plain" and (letter := _LETTER_AFTER.match(folded, end)):  # room 12a
        return [Quantity(frozenset({forms[0] + letter[0]}), frozenset(forms), "")]
    if _MINUS.search(before):
        return [Quantity(frozenset(f"-{form}" for form in forms), frozenset(), unit)]
    also = _hours(forms, "plain")
    if folded.startswith("s", end) and re.fullmatch("[0-9]{3}0", forms[0]):  # the 1960s
        also |= {forms[0][2:]}
    return [Quantity(frozenset(forms), also, unit)]


def _hours(forms: tuple[str, ...], kind: str) -> frozenset[str]:
    """The times that a plain number may be, or the hour of a time and the day of a date."""
    form = forms[0]
    if form.startswith("d"):
        return frozenset(str(int(day[3:])) for day in forms)
    if kind == "time":
        hour = int(form[1:3])
        return frozenset() if form.endswith("00") else frozenset({str(hour), str(hour % 12)})
    if kind == "plain" and len(form) <= 2 and form.isdigit() and int(form) <= 24:
        return frozenset({f"t{int(form):02}00", f"t{int(form) + 12}00"})
    return frozenset()
