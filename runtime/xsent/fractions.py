"""Fractions and codes of a text that a search compares whole: ½, 2 3/4, half, 0.5, and XK-42, which may also be XK42.

Apart from `find_numbers`, because 3/4 may be a date, and words for half have other meanings.
"""

import re

from xsent.numbers import PARTS, Number, value

# A whole number, or none, over and under the line: 2½, which is 21⁄2 in the form NFKC, or 2 1/2.
FRACTION = re.compile(PARTS["FRACTION"])
_HALF_WORD = re.compile(PARTS["HALF_WORD"])
_CODE = re.compile(PARTS["CODE"])  # short groups of letters and digits, one of them with a digit
_GROUP = re.compile("[a-z]+|[0-9]+")
_SHORTEST_CODE = 6  # digits; fewer are pages or years
_DECIMAL = re.compile(PARTS["SHORT_DECIMAL"])  # 2.5 and 2,5, not 3.10


def find_fractions(text: str) -> list[Number]:
    """The fractions and codes of a text, in their order; the text is in lower case and in the form NFKC."""
    half = value("0", "5")
    found = [Number("fraction", *match.span(), ((fraction_value(match),),)) for match in FRACTION.finditer(text)]
    found += [Number("fraction", *match.span(), ((match[0], half),)) for match in _HALF_WORD.finditer(text)]
    found += [
        Number("code", *match.span(), tuple((group, value(*match.groups())) for group in match.groups()))
        for match in _DECIMAL.finditer(text)
    ]
    for match in _CODE.finditer(text):
        groups = _GROUP.findall(match[0])
        joined = "".join(groups)
        if len(joined) >= _SHORTEST_CODE or not joined.isdigit():
            found.append(Number("code", *match.span(), tuple((group, joined) for group in groups)))
    return sorted(found, key=lambda number: number.start)


def fraction_value(fraction: re.Match[str]) -> str:
    """The normal form of a `FRACTION`."""
    whole, over, under = fraction.groups()[:3] if fraction[3] else fraction.groups()[3:]
    return value(*f"{int(whole or 0) + int(over) / int(under):.3f}".split("."))
