"""Numbers of a text, read once for search, duplicates and mining: equal in every notation.

A number has a normal form: the value of an amount without separators, the day and the year of a date, a time on the
24-hour clock, the digits of a phone number, an IBAN without spaces. An ambiguous notation has several: 3/12 is in March
or in December, 1.234 is a thousand or one and a bit. A word that multiplies belongs to its number: 2,5 Mio., 2万5千.

The page of `xsent web` reads the same notations: numbers.js.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Literal, NamedTuple

Kind = Literal["iban", "date", "time", "phone", "amount", "decimal", "plain", "fraction", "code"]
Forms = tuple[str, ...]  # normal forms of one number; two numbers are equal if they share one

DECIMAL = "\u066b"  # the point of a normal form; unlike ".", it separates no words in an index

# Months in nine languages, from January; the abbreviations only count with a year, because "out" and "set" are some.
_MONTHS = (
    "january janvier januar enero gennaio janeiro januari января",
    "february février fevrier februar febrero febbraio fevereiro februari февраля",
    "march mars märz maerz marzo março marco maart марта",
    "april avril abril aprile апреля",
    "may mai mayo maggio maio mei мая",
    "june juin juni junio giugno junho июня",
    "july juillet juli julio luglio julho июля",
    "august août aout agosto augustus августа",
    "september septembre septiembre setiembre settembre setembro сентября",
    "october octobre oktober octubre ottobre outubro октября",
    "november novembre noviembre novembro ноября",
    "december décembre decembre dezember diciembre dicembre dezembro декабря",
)
_SHORT_MONTHS = (
    "jan janv ene gen янв",
    "feb févr fevr fev фев",
    "mar mär mrz mrt мар",
    "apr avr abr апр",
    "mag",
    "jun giu июн",
    "jul juil lug июл",
    "aug ago авг",
    "sep sept set сен сент",
    "oct okt ott out окт",
    "nov ноя",
    "dec déc dez dic дек",
)
MONTHS = {
    name: month for names in (_MONTHS, _SHORT_MONTHS) for month, row in enumerate(names, 1) for name in row.split()
}
_NAME, _SHORT = (" ".join(names).replace(" ", "|") for names in (_MONTHS, _SHORT_MONTHS))

LETTERS = "a-z\u00df-\u024f\u0400-\u04ff"  # that a number is not next to; those of Chinese and Japanese may be
_BEGIN, _END, _STOP = f"(?<![0-9{LETTERS}])", f"(?![0-9{LETTERS}])", "(?![0-9])"
_DAY, _MONTH, _YEAR = "(0?[1-9]|[12][0-9]|3[01])", "(0?[1-9]|1[0-2])", "((?:19|20)?[0-9]{2})"
_DD, _MM = "(0[1-9]|[12][0-9]|3[01])", "(0[1-9]|1[0-2])"
_NTH = "(?:[.°]|st|nd|rd|th|er|o|a)?"
_HOUR, _MINUTE = "([01]?[0-9]|2[0-4])", "([0-5][0-9])"
_MORNING = (
    "a[.]? ?m[.]?|(?:o['’]clock )?in the morning|(?:uhr )?(?:morgens|früh)|uhr vormittags|(?:heures? )?du matin"
    "|(?:horas )?(?:de la mañana|de la madrugada|da manhã|da madrugada)|di mattina|del mattino"
    "|(?:uur )?['’]s (?:ochtends|morgens)|(?:час(?:а|ов)? )?(?:утра|ночи)|午前"
)
_EVENING = (
    "p[.]? ?m[.]?|(?:o['’]clock )?in the (?:afternoon|evening)|(?:uhr )?(?:abends|nachmittags)"
    "|(?:heures? )?(?:du soir|de l['’]après-midi)|(?:horas )?(?:de la tarde|de la noche|da tarde|da noite)"
    "|del pomeriggio|di sera|(?:uur )?['’]s (?:middags|avonds)|(?:час(?:а|ов)? )?вечера|час(?:а|ов)? дня|午後"
)
_HALF = f"({_MORNING}|{_EVENING}|uhr|uur)"

_ORE = f"(?<=\\bore ){_HOUR}[.:]{_MINUTE}(?![0-9:]| ?(?:{_MORNING}|{_EVENING}))"  # alle ore 11.50: of 24 hours

# Words that multiply a number before them, by the exponent of ten. "Billion" has the English value; "_" is a space.
SCALES = {
    3: "thousand tausend tsd mille mila mil duizend тыс тысяч тысяча тысячи",
    6: "million millions millionen mio mn mln mill millón millones milione milioni milhão milhões miljoen milj"
    " миллион миллиона миллионов млн",
    9: "billion billions bn milliard milliards milliarde milliarden mrd mld miliardo miliardi miljard bilhão bilhões"
    " mil_millones mil_milhões миллиард миллиарда миллиардов млрд",
    12: "trillion trillions billionen billón billones bilioni biljoen trilhão trilhões"
    " триллион триллиона триллионов трлн",
}
_GLUED_SCALES = {3: "k к"}  # "25k", not "25 k"
_MONEY_SCALES = {3: "k т", 6: "m mi mm", 9: "b bi md mds", 12: "tn"}  # beside a currency: "$3.5m", "2 M€"
_JAPANESE_SCALES = {"十": 1, "百": 2, "千": 3, "万": 4, "億": 8, "兆": 12, "拾": 1, "萬": 4}
_EXPONENTS = {
    word.replace("_", " "): exponent
    for table in (SCALES, _GLUED_SCALES, _MONEY_SCALES)
    for exponent, words in table.items()
    for word in words.split()
} | {"千万": 7, "百万": 6, **_JAPANESE_SCALES}
_SCALE, _GLUED_SCALE, _MONEY_SCALE = (
    " ".join([table[exponent] for exponent in sorted(table, reverse=True)]).replace(" ", "|").replace("_", " ")
    for table in (SCALES, _GLUED_SCALES, _MONEY_SCALES)
)
_KANJI = dict(zip("〇一二三四五六七八九壱弐参", "0123456789123", strict=True))
_DIGITS, _SCALE_SIGNS = "".join(_KANJI), "".join(_JAPANESE_SCALES)
_DIGITS_AND_SCALES = _DIGITS + _SCALE_SIGNS
_COUNTERS = (
    "[人匹本個枚冊台時年月日回杯階歳つ円分名件社校室票倍割軒棟頭羽泊坪週秒錠粒箱袋皿曲番章巻位号]"
    "|[かヶカケ][所月国]|[キトグリドパポユセミメ][ァ-ー]"
)
# A word has a number only before a counter, before 万 or with four signs, unlike 千葉. Enough, "a", "some" are none.
_NO_NUMBER = "[万億兆萬]|十分(?!間)|一(?![円年月]|[" + _DIGITS_AND_SCALES + "])"
_DECIMAL = "([0-9]{1,9})(?:([.,' ’])([0-9]{3}(?:\\2[0-9]{3}){0,5}))?(?:[.,]([0-9]{1,9}))?"
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867, "r": 2018, "h": 1988, "s": 1925}
_ERA = "(令和|平成|昭和|大正|明治) ?([0-9]{1,2}|元|[二三四五六]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_JAPANESE_YEAR = f"([0-9]{{4}}|[{_DIGITS[:10]}]{{4}})"
_JAPANESE_DAY = (
    "(0?[1-9]|1[0-2]|十[一二]?|[一二三四五六七八九]) ?月 ?"
    "(0?[1-9]|[12][0-9]|3[01]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]) ?日"
)
_JAPANESE_HOUR = "([01]?[0-9]|2[0-4]|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
_JAPANESE_MINUTE = "(?:([0-5]?[0-9]|[二三四五]?十[一二三四五六七八九]?|[一二三四五六七八九])分|(半))"
_ALSO = "(?:[(][^()]{1,12}[)])?"  # the same year of the other calendar


class Number(NamedTuple):
    """A number in a text."""

    kind: Kind
    start: int
    end: int
    words: tuple[Forms, ...]  # the normal forms of one number; of a date with a year two, the day and the year


def find_numbers(text: str) -> list[Number]:
    """The numbers of a text, in their order; the text is in lower case and in the form NFKC."""
    found: list[Number] = []

    def claim(first: int, kind: Kind, read: Callable[..., tuple[Forms, ...]], match: re.Match[str]) -> str:
        found.append(Number(kind, first + match.start(), first + match.end(), read(*match.groups(""))))
        return "\0" * len(match[0])  # the other notations do not see it

    for first, end in _near_digits(text):
        part = text[first:end]
        for kind, pattern, read in _notations():
            part = pattern.sub(partial(claim, first, kind, read), part)
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
    number, minute = int(hour), (minute or "00").zfill(2)
    clock = f"c{number % 12:02}{minute}"  # on a clock of twelve hours, which a time without more may be
    if re.fullmatch(_EVENING, half):
        return ((f"t{number % 12 + 12}{minute}", clock),)
    if re.fullmatch(_MORNING, half):
        return ((f"t{number % 12:02}{minute}",),)
    return ((f"t{number:02}{minute}", *[clock] * (not half and 0 < number <= 12)),)


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
    whole = str(_ERAS[era] + (1 if year == "元" else int(_integer(year))))
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
    return ((*forms, first + scale) if scale in _GLUED_SCALES[3] and not others and not fraction else forms,)


def _amount(whole: str, fraction: str) -> tuple[Forms, ...]:
    return ((value(re.sub(",", "", whole), fraction),),)


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


_CLOCK, _DAY_AND_MONTH = re.compile(f"{_HOUR}[.]{_MINUTE}"), re.compile(f"{_DAY}[.](?:{_MONTH}[.]|{_MM})")
_DIGIT = re.compile(f"[0-9元{_DIGITS_AND_SCALES}]+")
_REACH = 48  # characters: more than a notation has before its first digit, between two, or after its last one

# The first that matches claims a number. Every repetition has a limit, so that all of them take linear time.
_PATTERNS: tuple[tuple[Kind, Callable[..., tuple[Forms, ...]], tuple[str, ...]], ...] = (
    (
        "iban",
        _iban,
        (
            f"{_BEGIN}([a-z]{{2}}[0-9]{{2}}[ -]?[a-z0-9]{{4}}(?:[ -]?[0-9][0-9a-z]{{3}}){{2,6}}"
            f"(?:[ -]?[0-9][0-9a-z]{{0,2}})?){_END}",
        ),
    ),
    (
        "date",
        lambda year, month, day: _date(year, (month, day)),
        (
            f"{_BEGIN}([0-9]{{4}})[-/.]{_MONTH}[-/.]{_DAY}{_STOP}",
            f"(?<![0-9])(?<![0-9)][ /-])((?:19|20)[0-9]{{2}}){_MM}{_DD}{_STOP}",
        ),
    ),
    ("date", _japanese_date, (f"{_BEGIN}{_JAPANESE_YEAR} ?年{_ALSO} ?{_JAPANESE_DAY}",)),
    (
        "date",
        _era,
        (
            f"{_ERA} ?年{_ALSO}(?: ?{_JAPANESE_DAY})?",
            f"{_BEGIN}([rhs])([0-9]{{1,2}}|元)年{_ALSO}(?: ?{_JAPANESE_DAY})?",
            f"{_ERA}[./-] ?{_MONTH}[./-] ?{_DAY}{_STOP}",
            f"{_BEGIN}([rhs])[.]?([0-9]{{1,2}})[./-]{_MONTH}[./-]{_DAY}{_STOP}(?![.][0-9])",
        ),
    ),
    ("date", _japanese_date, (f"{_BEGIN}(?<![{_DIGITS_AND_SCALES}])(){_JAPANESE_DAY}",)),
    (
        "date",
        _either,
        (
            f"{_BEGIN}{_DAY}([./-]) ?{_MONTH}\\2 ?{_YEAR}{_STOP}(?![.][0-9])",
            f"{_BEGIN}{_MONTH}([/-]){_DAY}\\2{_YEAR}{_STOP}",
            f"{_BEGIN}(?<![./-]){_DD}(/){_MM}(?![0-9/])()",
        ),
    ),
    (
        "date",
        _named,
        (
            *(f"{_BEGIN}{_DAY}{sign}({_NAME}|{_SHORT}){sign}{_YEAR}{_END}" for sign in ("-", "/", "[.]", "")),
            f"{_BEGIN}{_DAY}{_NTH} ({_NAME}|{_SHORT})[.]?,? ?['’]([0-9]{{2}}){_END}",
            f"{_BEGIN}{_DAY}{_NTH}[ -](?:of |de |di )?({_NAME})(?:,?[ -](?:de |del |of )?([0-9]{{4}}))?{_END}",
            f"{_BEGIN}{_DAY}{_NTH}[ -](?:de |di )?({_SHORT})[.]?,?[ -](?:de |del )?([0-9]{{4}}){_END}",
        ),
    ),
    (
        "date",
        lambda month, day, year: _named(day, month, year),
        (
            f"{_BEGIN}({_NAME})[ -]{_DAY}(?:st|nd|rd|th)?(?:,? ([0-9]{{4}}))?(?![0-9:{LETTERS}])",
            f"{_BEGIN}({_SHORT})[.]?[ -]{_DAY}(?:st|nd|rd|th)?,? ([0-9]{{4}}){_END}",
        ),
    ),
    (
        "time",
        _japanese_time,
        (
            f"(午前|午後) ?{_JAPANESE_HOUR}時(?!間){_JAPANESE_MINUTE}?",
            f"{_BEGIN}(?<![{_DIGITS_AND_SCALES}])(){_JAPANESE_HOUR}時{_JAPANESE_MINUTE}",
        ),
    ),
    ("time", lambda hour, minute: time_of_day(hour, minute, "uhr"), (_ORE,)),
    (
        "time",
        time_of_day,
        (
            f"{_BEGIN}{_HOUR} ?(?:h|u|uhr|uur|heures?|ч[.]?|час(?:а|ов)?) ?{_MINUTE}"
            f"(?: ?(?:min|мин|минут[аы]?)[.]?)?{_END}()",
            f"(?:{_BEGIN}|(?<=\0t)){_HOUR}:{_MINUTE}(?::[0-5][0-9])?(?: ?{_HALF}(?![{LETTERS}]))?(?![0-9:])",
            f"{_BEGIN}{_HOUR}[.]{_MINUTE} ?{_HALF}{_END}",
            f"{_BEGIN}{_HOUR}() ?{_HALF}{_END}",
            f"{_BEGIN}(?<![0-9][.,]){_HOUR}() ?([hu]){_END}",
        ),
    ),
    (
        "phone",
        _phone,
        (
            f"(?<![0-9{LETTERS}+])([(]?[+][0-9](?:[ ()./-]{{0,3}}[0-9]){{6,14}}){_STOP}",
            f"{_BEGIN}(?<![0-9][.,])([(]?0(?![.,])[0-9](?:[ ()./-]{{0,3}}[0-9]){{7,13}}){_STOP}",
            f"{_BEGIN}(0[0-9]{{6,7}}|[178][0-9]{{10}}){_STOP}",
            f"{_BEGIN}((?=(?:-?[0-9]){{9}})[0-9]{{1,7}}(?:-[0-9]{{1,7}}){{2,5}}){_STOP}",
            f"{_BEGIN}((?:1[ .-])?[(]?[2-9][0-9]{{2}}[)]?[ .-]{{1,2}}[0-9]{{3}}[ .-][0-9]{{4}}){_STOP}",
            f"{_BEGIN}(8 ?[(]?[0-9]{{3}}[)]?[ -]?[0-9]{{3}}[ -][0-9]{{2}}[ -][0-9]{{2}}){_STOP}",
            f"{_BEGIN}((?=(?:[ -]?[0-9]){{8}})[0-9]{{2,4}}(?:[ -][0-9]{{2,4}}){{2,5}}){_STOP}",
        ),
    ),
    (
        "amount",
        lambda written: ((_integer(written),),),
        (
            f"(?<![0-9][.,])(?<![0-9{_DIGITS_AND_SCALES}])((?=[0-9])"
            f"(?:(?:[0-9]{{1,3}}(?:,[0-9]{{3}}){{1,3}}|[0-9]{{1,12}}|[{_DIGITS}])?[{_SCALE_SIGNS}]){{1,8}}"
            f"(?:[0-9]{{1,3}},[0-9]{{3}}|[0-9]{{1,7}}|[{_DIGITS}])?)(?![0-9{_DIGITS}])",
            f"(?<![0-9{_DIGITS_AND_SCALES}])(?!{_NO_NUMBER})([{_DIGITS_AND_SCALES}]{{1,16}}(?={_COUNTERS})|[{_DIGITS_AND_SCALES}]{{1,15}}[万億兆萬]|[{_DIGITS_AND_SCALES}]{{4,16}})",
        ),
    ),
    (
        "amount",
        _scaled,
        (
            f"{_BEGIN}(?<![0-9][.,]){_DECIMAL}[ -]?({_SCALE})[.]?{_END}",
            f"{_BEGIN}(?<![0-9][.,]){_DECIMAL}({_GLUED_SCALE}){_END}",
            f"{_BEGIN}(?<![0-9][.,]){_DECIMAL} ?({_MONEY_SCALE})[.]?(?= ?(?:[€$£¥]|eur|usd|chf|gbp|руб|р[.]))",
            f"(?:(?<=[€$£¥])|(?<=[€$£¥] )){_DECIMAL} ?({_MONEY_SCALE}){_END}",
            f"{_BEGIN}(?<![0-9][.,]){_DECIMAL}(千万|百万|[{_SCALE_SIGNS}])",
        ),
    ),
    (
        "amount",
        _grouped,
        (
            f"{_BEGIN}(?<![0-9][.,])([1-9][0-9]{{0,2}})([.,' ’])([0-9]{{3}}(?:\\2[0-9]{{3}}){{0,5}})"
            "(?:(?!\\2)[.,]([0-9]{1,9}))?(?![.,]?[0-9])",
        ),
    ),
    (
        "amount",
        _amount,
        (
            f"{_BEGIN}([1-9][0-9]?(?:,[0-9]{{2}}){{1,5}},[0-9]{{3}})(?:[.]([0-9]{{1,9}}))?(?![.,]?[0-9])",
            f"{_BEGIN}(?<![0-9][.,])([1-9][0-9]{{3,15}})[.,]([0-9]{{1,9}})(?![.,]?[0-9])",
        ),
    ),
    ("decimal", lambda written: ((written,),), (f"{_BEGIN}v?([0-9]{{1,9}}(?:[.][0-9]{{1,9}}){{2,5}}){_STOP}",)),
    (
        "decimal",
        _decimal,
        (f"{_BEGIN}(?<![0-9][.,])v?([0-9]{{1,3}})([.,])([0-9]{{1,9}})([.](?! ?[0-9]))?(?![.,]?[0-9])",),
    ),
    ("plain", lambda digits: ((value(digits),),), ("([0-9]+)",)),
)


@cache
def _notations() -> list[tuple[Kind, re.Pattern[str], Callable[..., tuple[Forms, ...]]]]:
    """Compiled at the first number: that takes as long as importing half of this package."""
    return [(kind, re.compile(pattern), read) for kind, read, patterns in _PATTERNS for pattern in patterns]
