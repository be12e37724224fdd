"""Numbers of a text, read once for search, duplicates and mining: equal in every notation.

A number has a normal form: the value of an amount without separators, the day and the year of a date, a time on the
24-hour clock, the digits of a phone number, an IBAN without spaces. An ambiguous notation has several: 3/12 is in March
or in December, 1.234 is a thousand or one and a bit. A word that multiplies belongs to its number: 2,5 Mio., 2万5千.

The notations are in notations.js, which the page of `xsent web` reads, too:

- Months from January. The abbreviations only count with a year, because "out" and "set" are some.
- Words that multiply a number before them, by the exponent of ten. "Billion" has the English value; "_" is a space. The
  glued ones count in "25k", not in "25 k"; those of money beside a currency: "$3.5m", "2 M€".
- Parts of patterns; `<NAME>` stands for an earlier one. A number is not next to LETTERS, but may be next to Chinese and
  Japanese ones. Signs for digits count only before COUNTERS, before 万 or if there are four, unlike 千葉; NO_NUMBER has
  words such as "enough".
- Notations: kind, reader and pattern. The first that matches claims a number. Every repetition has a limit, so that all
  of them take linear time.
"""

import json
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

Kind = Literal["iban", "date", "time", "phone", "amount", "decimal", "plain", "ordinal", "article", "fraction", "code"]
Forms = tuple[str, ...]  # normal forms of one number; two numbers are equal if they share one
Reader = Callable[..., tuple[Forms, ...]]  # of the groups of a pattern

DECIMAL = "\u066b"  # the point of a normal form; unlike ".", it separates no words in an index

NOTATIONS = Path(__file__).with_name("notations.js")
_TABLES: dict[str, Any] = json.loads(NOTATIONS.read_text(encoding="utf-8").removeprefix("export default "))
MONTHS = {
    name: month
    for key in ("months", "short_months")
    for month, row in enumerate(_TABLES[key], 1)
    for name in row.split()
}


def _exponents(table: str) -> dict[str, int]:
    return {word.replace("_", " "): exponent for exponent, words in _TABLES[table] for word in words.split()}


SCALES, _GLUED_SCALES, _MONEY_SCALES = map(_exponents, ("scales", "glued_scales", "money_scales"))
_JAPANESE_SCALES: dict[str, int] = _TABLES["japanese_scales"]
_EXPONENTS = {**SCALES, **_GLUED_SCALES, **_MONEY_SCALES, "千万": 7, "百万": 6, **_JAPANESE_SCALES}
_KANJI: dict[str, str] = _TABLES["kanji"]
HALVES: list[str] = _TABLES["halves"].split()


def pattern(template: str) -> str:
    """A pattern with its parts."""
    return re.sub("<([A-Z_]+)>", lambda part: PARTS[part[1]], template)


PARTS = {
    "NAME": "|".join(" ".join(_TABLES["months"]).split()),
    "SHORT": "|".join(" ".join(_TABLES["short_months"]).split()),
    "SCALE": "|".join(SCALES),
    "GLUED_SCALE": "|".join(_GLUED_SCALES),
    "MONEY_SCALE": "|".join(_MONEY_SCALES),
    "DIGITS": "".join(_KANJI),
    "SCALE_SIGNS": "".join(_JAPANESE_SCALES),
    "HALVES": "|".join(HALVES),
    "INITIALS": "".join(dict.fromkeys(word[0] for word in HALVES)),  # looked for first, because few places have one
}
for _name, _template in _TABLES["parts"].items():
    PARTS[_name] = pattern(_template)
LETTERS = PARTS["LETTERS"]


class Number(NamedTuple):
    """A number in a text."""

    kind: Kind
    start: int
    end: int
    words: tuple[Forms, ...]  # the normal forms of one number; of a date with a year two, the day and the year


def find_numbers(text: str) -> list[Number]:
    """The numbers of a text, in their order; the text is in lower case and in the form NFKC."""
    found: list[Number] = []

    def claim(first: int, kind: Kind, read: Reader, match: re.Match[str]) -> str:
        found.append(Number(kind, first + match.start(), first + match.end(), read(*match.groups(""))))
        return "\0" * len(match[0])  # the other notations do not see it

    for first, end in _near_digits(text):
        part = text[first:end]
        for kind, notation, read in _notations():
            part = notation.sub(partial(claim, first, kind, read), part)
    return sorted(found, key=lambda number: number.start)


def _near_digits(text: str) -> list[tuple[int, int]]:
    """The parts of a text that may have numbers; most of a text has no digit."""
    parts: list[tuple[int, int]] = []
    for digits in _DIGIT.finditer(text):
        first, end = max(digits.start() - _REACH, 0), digits.end() + _REACH
        if parts and first <= parts[-1][1]:
            first = parts.pop()[0]
        parts.append((first, end))
    return parts


def value(whole: str, fraction: str = "") -> str:
    """The normal form of a decimal number: without zeros that do not count."""
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (DECIMAL + fraction if fraction else "")


def shifted(form: str, exponent: int) -> str:
    """The normal form of a value that is ten to the power of `exponent` times another."""
    whole, _, fraction = form.partition(DECIMAL)
    return value(whole + fraction[:exponent].ljust(exponent, "0"), fraction[exponent:])


def time_of_day(hour: str, minute: str = "", half: str = "") -> tuple[Forms, ...]:
    """A time; `half` is what says which half of the day it is in."""
    number = int(hour)
    if re.fullmatch(PARTS["EVENING"], half):
        number = number % 12 + 12
    elif re.fullmatch(PARTS["MORNING"], half):
        number %= 12
    return ((f"t{number:02}{(minute or '00').zfill(2)}",),)


def _iban(written: str) -> tuple[Forms, ...]:
    return ((re.sub("[ -]", "", written),),)


def _date(year: str, *days: tuple[str, str]) -> tuple[Forms, ...]:
    """A date; `days` are its readings, each of a month and a day."""
    forms = tuple(dict.fromkeys(f"d{int(month):02}{int(day):02}" for month, day in days))
    if len(year) == 2:
        year = ("20" if year < "50" else "19") + year
    return (forms, (year,)) if year else (forms,)


def _either(one: str, sign: str, other: str, year: str) -> tuple[Forms, ...]:
    """12/3/2024: the day comes first, or the month unless there are points."""
    day_first = [(other, one)] * (int(other) <= 12)
    return _date(year, *day_first, *[(one, other)] * (int(one) <= 12 and (sign != "." or not day_first)))


def _named(day: str, month: str, year: str) -> tuple[Forms, ...]:
    return _date(year, (str(MONTHS[month]), day))


def _japanese_date(year: str, month: str, day: str) -> tuple[Forms, ...]:
    return _date(_integer(year) if year else "", (_integer(month), _integer(day)))


def _era(era: str, year: str, month: str, day: str) -> tuple[Forms, ...]:
    """A year or a date of an emperor's reign, whose first year is 元年."""
    whole = str(_TABLES["eras"][era] + (1 if year == "元" else int(_integer(year))))
    return _date(whole, (_integer(month), _integer(day))) if month else ((whole,),)


def _japanese_time(half: str, hour: str, minute: str, thirty: str) -> tuple[Forms, ...]:
    return time_of_day(_integer(hour), "30" if thirty else minute and _integer(minute), half)


def _integer(written: str) -> str:
    """The value of an integer in Japanese, in digits, kanji or both: 2万5千, 二〇二四, 十二."""
    total = section = 0
    digits = ""
    for sign in written.replace(",", ""):
        exponent = _JAPANESE_SCALES.get(sign, 0)
        if not exponent:
            digits += _KANJI.get(sign, sign)
            continue
        number, digits = int(digits or 0), ""
        if exponent < 4:
            section += (number or 1) * 10**exponent
        else:
            total, section = total + (section + number or 1) * 10**exponent, 0
    return str(total + section + int(digits or 0))


def _phone(written: str) -> tuple[Forms, ...]:
    """The digits without zeros at the beginning; a second form lacks the country code."""
    digits = re.sub("[^0-9]", "", written)
    whole = digits.lstrip("0")
    code = 0
    if "+" in written or digits.startswith("00"):
        code = 1 if whole[:1] in ("1", "7") else 2 if _TWO_DIGITS.match(whole) else 3
    elif len(digits) == 11 and digits[0] in "178":  # of North America and Russia
        code = 1
    own = whole[code:].lstrip("0")  # "+49 (0)170"
    return (tuple(dict.fromkeys((whole[:code] + own, own))) if own else (value(digits),),)


_TWO_DIGITS = re.compile("2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]")  # country codes, ITU-T E.164


def _grouped(first: str, sign: str, others: str, fraction: str) -> tuple[Forms, ...]:
    """Digits in groups; one group after a point or a comma may be a fraction, unless it ends with a zero."""
    groups = re.sub("[^0-9]", "", others)
    whole = value(first + groups, fraction)
    return (
        (whole, value(first, groups))
        if sign in ".," and re.fullmatch("..[1-9]", groups) and not fraction
        else (whole,),
    )


def _scaled(first: str, sign: str, others: str, fraction: str, scale: str) -> tuple[Forms, ...]:
    """2.5 million; 4k may also be a name."""
    forms = tuple(shifted(form, _EXPONENTS[scale]) for form in _grouped(first, sign, others, fraction)[0])
    return ((*forms, first + scale) if scale in _GLUED_SCALES and not others and not fraction else forms,)


def _amount(whole: str, fraction: str) -> tuple[Forms, ...]:
    return ((value(re.sub("[^0-9]", "", whole), fraction),),)


def _decimal(whole: str, sign: str, fraction: str, end: str) -> tuple[Forms, ...]:
    """2.5 and 2,5. After a point, a zero at the end may count; 9.30 may be a time, 12.3. and 15.05 dates."""
    written = f"{value(whole)}{DECIMAL}{fraction}"
    if sign == ",":
        return ((value(whole, fraction), written),)
    forms = [written] if fraction.endswith("0") and fraction.strip("0") else [value(whole, fraction), written]
    if _CLOCK.fullmatch(f"{whole}.{fraction}"):
        forms += time_of_day(whole, fraction)[0]
    if _DAY_AND_MONTH.fullmatch(f"{whole}.{fraction}{end}"):
        forms += _date("", (fraction, whole))[0]
    return (tuple(forms),)


_CLOCK, _DAY_AND_MONTH = map(re.compile, map(pattern, ("<HOUR>[.]<MINUTE>", "<DAY>[.](?:<MONTH>[.]|<MM>)")))
_DIGIT = re.compile(pattern("[0-9元<DIGITS_AND_SCALES>]+"))
_REACH = 48  # characters: more than a notation has before its first digit, between two, or after its last one

_READERS: dict[str, Reader] = {
    "iban": _iban,
    "numeric": lambda year, month, day: _date(year, (month, day)),
    "japaneseDate": _japanese_date,
    "era": _era,
    "either": _either,
    "named": _named,
    "monthFirst": lambda month, day, year: _named(day, month, year),
    "japaneseTime": _japanese_time,
    "timeOfDay": time_of_day,
    "phone": _phone,
    "japanese": lambda written: ((_integer(written),),),
    "scaled": _scaled,
    "grouped": _grouped,
    "amount": _amount,
    "decimalAmount": _amount,
    "version": lambda written: ((written,),),
    "decimal": _decimal,
    "plain": lambda digits: ((value(digits),),),
}


@cache
def _notations() -> list[tuple[Kind, re.Pattern[str], Reader]]:
    """Compiled at the first number: that takes as long as importing half of this package."""
    return [(kind, re.compile(pattern(template)), _READERS[read]) for kind, read, template in _TABLES["notations"]]
