"""Times of day in words that count from the next hour: "Viertel vor acht", "ocho menos diez", "без четверти восемь"."""

import re

from xsent.mining.number_words import HOURS, MINUTES, TABLES, both_halves
from xsent.numbers import LETTERS, Number

_CLOCK = TABLES["clock"]
_ORDINALS = {word: hour for hour, words in enumerate(_CLOCK["ordinals"].split(), 1) for word in words.split("|")}
_HOURS = {**HOURS, **_ORDINALS}
_MINUTES = {**MINUTES, **dict.fromkeys(_CLOCK["quarters"].split("|"), 15)}


def _one_of(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_PARTS = {
    "<H>": f"(?P<hour>{_one_of(HOURS)}|[01]?[0-9]|2[0-4])",
    "<O>": f"(?P<hour>{_one_of(_ORDINALS)})",
    "<M>": f"(?P<minute>{_one_of(_MINUTES)})",
    "<Q>": f"(?P<minute>{_CLOCK['quarters']})",
    "<D>": "(?P<minute>[0-5]?[0-9])",
}
_MAYBE = re.compile(_CLOCK["signs"])  # most texts have none, and the patterns take as long as all other numbers


def _pattern(template: str) -> re.Pattern[str]:
    written = re.sub("<.>", lambda part: _PARTS[part[0]], template)
    return re.compile(f"(?<![0-9{LETTERS}])(?:{written})(?![0-9{LETTERS}:])")


# With the minutes from its hour to its time, and whether its own minutes come later, earlier or not at all (1, -1, 0).
_PATTERNS = [(_pattern(template), offset, sign) for template, offset, sign in _CLOCK["patterns"]]


def clock_times(folded: str) -> tuple[str, list[Number]]:
    """A text in lower case without its times of day in words, whose places stay empty, and these times."""
    times: list[Number] = []
    for pattern, offset, sign in _PATTERNS if _MAYBE.search(folded) else ():
        every = [*pattern.finditer(folded)]
        for found in every:
            groups = found.groupdict()
            minute = groups.get("minute") or "0"
            minutes = 60 * _value(_HOURS, groups["hour"]) + offset + sign * _value(_MINUTES, minute)
            times.append(Number("plain", *found.span(), (both_halves(minutes),)))
        if every:
            folded = pattern.sub(lambda found: "\0" * len(found[0]), folded)
    return folded, times


def _value(words: dict[str, int], written: str) -> int:
    return words[written] if written in words else int(written)
