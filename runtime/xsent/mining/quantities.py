"""Quantities of a text: its numbers, in digits and in words of the nine languages, with their signs and units."""

import re
import unicodedata
from collections import defaultdict
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from xsent.fractions import FRACTION, fraction_value
from xsent.mining.clock_words import clock_times
from xsent.mining.number_words import HALF, TABLES, both_halves, number_words
from xsent.numbers import DECIMAL, LETTERS, Forms, Number, find_numbers, value
from xsent.words import normalize

_HALF_MORE = (
    " (?:and a half|et demie?|[ye] (?:un |um )?(?:medi|mei|mezz)[ao]|en een half|с половиной)" + f"(?![{LETTERS}])"
)
_AND_HALF = re.compile(f"(?: ?[^\\W\\d_]{{1,12}})?{_HALF_MORE}|(?:時間|年|[かヶ]月)半")
_HALF_PAST = re.compile(f" (?:et demie?|[ye] (?:medi|mei|mezz)[ao])(?![{LETTERS}])")  # midi et demi
_ONE = re.compile(
    f"(?<!\\w)(?:(?:an?|one|une?|una|uma?|een) |un['’])(?=[^\\W\\d_]{{1,12}}{_HALF_MORE})"
)  # an hour and a half
# What is a number without digits: 半, and the words for a time of day.
_NAMED = [(re.compile("半(?=[分錠額日年個数月枚杯])"), (HALF,))]
_NAMED += [
    (re.compile(f"(?<![-{LETTERS}])(?:{words.replace(' ', '|')})(?![{LETTERS}])"), tuple(forms.split()))
    for forms, words in TABLES["times"].items()
]

_UNIT_OF = {
    name.replace("_", " "): unit for unit, names in TABLES["units"].items() for name in names.casefold().split()
}
_NAMES = "|".join(map(re.escape, sorted(_UNIT_OF, key=len, reverse=True)))
_UNIT_AFTER = re.compile(f"(?:[ '’-]|(?<=half) an? )?(?:d['’])?({_NAMES})(?![{LETTERS}'’])")
_UNIT_BEFORE = re.compile("([€$£¥]|eur|usd|chf|gbp|jpy|rub|大さじ|小さじ) ?$")
# A fraction with a slash may be a date: 1/2 and 1 1/2 are numbers before a word, 3/4 before a unit only.
_UNIT_OF_FRACTION = re.compile(f" ?(?:{_NAMES})(?![{LETTERS}])")
_WORD_OF_FRACTION = re.compile(" [^\\W\\d_]")
_NUMERATORS, _DENOMINATORS = (
    {word: number for number, words in TABLES[key].items() for word in words.split()}
    for key in ("numerators", "denominators")
)
_FRACTION_IN_WORDS = re.compile(  # three quarters of an hour, trois quarts d'heure
    f"(?<![{LETTERS}])({'|'.join(_NUMERATORS)})[ -]({'|'.join(_DENOMINATORS)}) (?:of (?:an? |the )?|d[ei] |d['’])?"
    f"(?={_UNIT_OF_FRACTION.pattern})"
)
_ROMANS = re.compile(  # II and more anywhere, "I" only after a word for a volume; in capitals
    "\\b(?=[IVX]{2}|[IVX]er? si)X{0,3}(?:IX|IV|V?I{0,3})(?=(?:er?|ème)?(?!\\w))"
    "|\\b(?i:vol(?:ume[ns]?|[.])?|b(?:an)?d[.]?|tom[eo]|deel|teil|part(?:ie|e)?|chapter|kapitel|chapitre|cap[íi]tulo|capitolo"
    "|hoofdstuk|том|часть|глава) [IVX](?!\\w)"
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")
_SCIENTIFIC = re.compile(  # 1.5 × 10^6, 10⁶, which the form NFKC makes 106, and 1.5e6
    "(?<![0-9A-Za-z.,^])(?<![0-9A-Za-z]-)"
    "(?:(?:<FACTOR> ?[×x·⋅*] ?)?10(?:\\^ ?|(?=[⁻⁺⁰¹²³⁴-⁹]))|<FACTOR>[eE])([-−+⁻⁺]?[0-9⁰¹²³⁴-⁹]{1,2})"
    "(?![0-9A-Za-z⁰¹²³⁴-⁹])".replace("<FACTOR>", "([0-9]{1,4}(?:[.,][0-9]{1,6})?)")
)
_MOST_DECIMALS = 9  # of a number, see `xsent.numbers`
_POWER = re.compile(f"(?<=[0-9])( ?(?:[ck]?m|ft|[кс]?м))\\^?([23])(?![0-9{LETTERS}])")  # m² in the form NFKC, or m^2
_MINUS = re.compile(  # before a number
    r"(?:(?:^|[\s(\[:=])[-−–]|\b(?:minus|negative|"
    r"(?<!au )moins|(?<!al |ao |lo |no )menos|meno|min|минус) |マイナス|零下|氷点下|紀元前)$"
)
_BELOW_ZERO = re.compile(  # after a temperature
    r" ?(?:°c?|c|grad(?:i|os|us)?|degr[eé]e?s|graus|graden|градус\w{0,2})? ?(?:celsius )?"
    r"(?:unter null|below (?:zero|freezing)|(?:sous|(?:en|au)[ -]dessous de) zéro|bajo cero|sotto (?:lo )?zero|"
    r"abaixo de zero|negativos|onder (?:nul|het vriespunt)|ниже нуля|мороза)(?!\w)"
)
_TENTHS = re.compile("([0-9一二三四五六七八九])割(?:([0-9一二三四五六七八九])分)?(?!合)")  # 3割 are 30%
_BEFORE_CHRIST = re.compile(  # after a year or a century
    r"(?:th|st|nd|rd|e|º)?[.]?(?: (?:[^\W\d_]{3,12}|г[.]))? ?"
    r"(?:bce?(?!\w)|b[.] ?c[.]|(?:before|vo?or|v[.]) ?chr(?:[.]|ist(?:us|i)?(?!\w))|a[.] ?c[.]|"
    r"a(?:vanti|ntes de) cristo|av(?:[.]|ant) (?:j[.]? ?-?c|jésus|notre ère)|до н(?:[.] ?э|ашей эры))"
)
_NOUN = re.compile("[ -]([^\\W\\d_]{4,40})| ?([-–:/])(?= ?[0-9])")  # 3:1 is not 1:3
_TIMES = re.compile("twice|thrice|\\w+maa?l|дважды|трижды|четырежды")
_LETTER_AFTER = re.compile(f"[a-z](?![0-9{LETTERS}])")
_NOUN_LETTERS = 4
_BEFORE = 16  # characters before a number that may be its sign or its currency
_OF_HALF = {"30", "50", "6", "12", "500"}  # without a unit: полчаса is 30 minutes, 半年 6 months


class Quantity(NamedTuple):
    """A number with its unit."""

    forms: frozenset[str]  # normal forms, see `xsent.numbers`
    also: frozenset[str]  # what it may be beside one of another notation: 6 at "6 p.m."
    unit: str  # empty if unknown
    noun: str = ""  # the word after a number without a unit, if it is not short; ":" after the first of 3:1 and 3–1
    is_article: bool = False  # "a" and "one", which say a number only beside the same noun: a tablet, two tablets


def differ(first: list[Quantity], second: list[Quantity]) -> bool:
    """Whether each text has a quantity that the other lacks, one of two texts with equally many, or another of a kind.

    Three rooms and two baths are not two rooms and three baths, nor three tablets twice a day "dreimal zwei Tabletten".
    """
    one, other = ([quantity for quantity in text if not quantity.is_article] for text in (first, second))
    lacking = _lacks(one, other), _lacks(other, one)
    if all(lacking) or (any(lacking) and len(one) == len(other)):
        return True
    counts, others = _counts(first), _counts(second)
    return any(counts[kind].isdisjoint(others[kind]) for kind in counts.keys() & others.keys())


def _counts(text: list[Quantity]) -> dict[str, set[str]]:
    """The numbers of each unit or noun of a text; nouns by their first letters, whatever their ending."""
    counts = defaultdict[str, set[str]](set)
    for quantity in text:
        if kind := quantity.unit or quantity.noun[:_NOUN_LETTERS]:
            counts[kind] |= quantity.forms | (quantity.also if quantity.unit else frozenset())
    return counts


def _lacks(first: list[Quantity], second: list[Quantity]) -> bool:
    """Whether a quantity of the first text has the form of none of the second, or another unit."""
    units, also = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for other in second:
        for table, forms in ((units, other.forms), (also, other.also)):
            for form in forms:
                table[form].add("" if " " in form else other.unit)
    for one in first:
        found = set[str]().union(*(units[form] for form in one.forms | one.also), *(also[form] for form in one.forms))
        if not found or (one.unit and not found & {"", one.unit}):
            return True
    return False


@lru_cache(1 << 12)  # of many duplicates, each is in many pairs
def quantities(text: str) -> list[Quantity]:
    """All quantities of a text, in digits or in words."""
    plain = _ROMANS.sub(_arabic, normalize("NFKC", _SCIENTIFIC.sub(_written_out, text)))
    folded = _FRACTION_IN_WORDS.sub(_in_digits, _ONE.sub("1 ", plain.casefold()))
    folded = FRACTION.sub(_decimal, folded)
    folded = _POWER.sub(lambda power: power[1] + "²³"[int(power[2]) - 2], folded)
    folded, times = clock_times(_TENTHS.sub(_percent, folded))
    numbers = find_numbers(folded)
    named = (Number("plain", *found.span(), (forms,)) for word, forms in _NAMED for found in word.finditer(folded))
    every = sorted([*numbers, *number_words(folded, numbers), *named, *times], key=lambda number: number.start)
    return [*chain.from_iterable(_read(folded, number) for number in every)]


def _written_out(scientific: re.Match[str]) -> str:
    """1.5 × 10^6 as 1500000; as it is if it has more decimals than numbers are read with."""
    factor, mantissa, exponent = scientific.groups("")
    number = (factor or mantissa or "1").replace(",", ".")
    written = f"{Decimal(f'{number}e{exponent.translate(_SUPERSCRIPTS)}'):f}"
    return written if len(written.partition(".")[2]) <= _MOST_DECIMALS else scientific[0]


def _percent(tenths: re.Match[str]) -> str:
    """3割5分 as 35%."""
    return "".join(str(int(unicodedata.numeric(digit))) for digit in tenths.groups("0")) + "%"


def _arabic(found: re.Match[str]) -> str:
    """Volume II as volume 2."""
    word, _, roman = found[0].rpartition(" ")
    values = [{"I": 1, "V": 5, "X": 10}[sign] for sign in roman]
    total = sum(-one if one < other else one for one, other in zip(values, [*values[1:], 0], strict=True))
    return f"{word} {total}".lstrip()


def _in_digits(fraction: re.Match[str]) -> str:
    """Three quarters of a unit as 3/4 of it."""
    return f"{_NUMERATORS[fraction[1]]}/{_DENOMINATORS[fraction[2]]} "


def _decimal(fraction: re.Match[str]) -> str:
    """2½ as 2.5, and a fraction that may be a date as it is."""
    text, end = fraction.string, fraction.end()
    is_number = "⁄" in fraction[0] or _UNIT_OF_FRACTION.match(text, end)
    if is_number or ((fraction[4] or fraction[0] == "1/2") and _WORD_OF_FRACTION.match(text, end)):
        return f" {fraction_value(fraction).replace(DECIMAL, '.')}"
    return fraction[0]


def _read(folded: str, number: Number) -> list[Quantity]:
    """The quantities of a number: two of a date with a year."""
    if number.kind not in ("plain", "amount", "decimal", "article"):
        return [Quantity(frozenset(forms), _hours(forms, number.kind), "") for forms in number.words]
    (forms,) = number.words
    forms = _with_half(folded, number.end, forms)
    before = folded[max(0, number.start - _BEFORE) : number.start]
    is_negative = _MINUS.search(before) or any(sign.match(folded, number.end) for sign in (_BEFORE_CHRIST, _BELOW_ZERO))
    if unit := _unit(folded, number, before):
        if number.kind == "decimal":  # 3.10 euros are 3.1, unlike versions
            forms = (*forms, value(*forms[0].split(DECIMAL)))
        steps = ((kind, steps[unit]) for kind, steps in enumerate(TABLES["steps"]) if unit in steps)
        digits = [form for form in forms if form.replace(DECIMAL, "").isdigit()]  # unlike 25k, and the time in 9.30
        forms = (*forms, *(f"{_times(form, factor)} {kind}" for kind, factor in steps for form in digits))
    elif number.kind == "plain" and not is_negative and (letter := _LETTER_AFTER.match(folded, number.end)):  # room 12a
        return [Quantity(frozenset({forms[0] + letter[0]}), frozenset(forms), "")]
    if is_negative:
        return [Quantity(frozenset(f"-{form}" for form in forms), frozenset(), unit)]
    also = _hours(forms, "plain") if unit in ("", "hour") else frozenset[str]()
    if unit == "min" and re.fullmatch("[0-9]{1,4}", forms[0]):  # 90 minutes are 1 h 30
        also |= {f"t{int(forms[0]) // 60:02}{int(forms[0]) % 60:02}"}
    if re.fullmatch("(?:1[5-9]|20)[0-9]0", forms[0]):  # the 1960s
        also |= {forms[0][2:]}
    if HALF in forms and not unit:
        also |= _OF_HALF
    noun = _NOUN.match(folded, number.end) if not unit else None
    return [Quantity(frozenset(forms), also, unit, (noun[1] or ":") if noun else "", number.kind == "article")]


def _with_half(folded: str, end: int, forms: Forms) -> Forms:
    """The forms of a number with the half that may follow it: "two and a half", "midi et demi"."""
    if forms[0].isdigit() and _AND_HALF.match(folded, end):
        return (f"{forms[0]}{DECIMAL}5",)
    if forms[0][0] == "t" and forms[0].endswith("00") and _HALF_PAST.match(folded, end):
        return tuple(f"{form[:3]}30" for form in forms)
    return forms


def _unit(folded: str, number: Number, before: str) -> str:
    if _TIMES.fullmatch(folded, number.start, number.end):
        return "times"
    named = _UNIT_AFTER.match(folded, number.end) or _UNIT_BEFORE.search(before)
    return _UNIT_OF[named[1]] if named else ""


def _times(form: str, factor: float) -> str:
    """The normal form of a value that is a multiple of another."""
    return value(*f"{Decimal(form.replace(DECIMAL, '.')) * int(factor):f}".split("."))


def _hours(forms: tuple[str, ...], kind: str) -> frozenset[str]:
    """The times that a plain number may be, or the hour of a time and the day of a date."""
    form = forms[0]
    if form.startswith("d"):
        return frozenset(str(int(day[3:])) for day in forms)
    if kind == "time":
        hour = int(form[1:3])
        return frozenset() if form.endswith("00") else frozenset({str(hour), str(hour % 12)})
    whole, _, fraction = form.partition(DECIMAL)
    if kind == "plain" and re.fullmatch("1?[0-9]|2[0-4]", whole) and fraction in ("", "5"):
        return frozenset(both_halves(60 * int(whole) + 30 * bool(fraction)))
    return frozenset()
