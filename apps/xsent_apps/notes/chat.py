"""Tells where the messages of a chat begin: at a line with a time, as in exports of WhatsApp, Telegram or IRC.

chat.json has the phrases of each language.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from xsent.phrases import Phrases

_PHRASES = Phrases(Path(__file__).with_name("chat.json"))

_MONTH = r"[^\W\d_]{3,9}\.?"
_DATE = (
    r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{2,4}|\d{4}年\d{1,2}月\d{1,2}日"
    rf"|\d{{1,2}}\.?(?: de)? {_MONTH}(?: de)? \d{{4}}|{_MONTH} \d{{1,2}}(?:, \d{{4}})?)"
)
_TIME = (
    r"(?:午[前後])?\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d{1,6})?)?"
    r"(?:\s?[AaPp]\.?\s?[Mm]\b\.?)?(?:Z|\s?[+-]\d{2}:?\d{2})?"
)
_AT = _PHRASES.of_all("<at>")
_WHEN = rf"(?:{_DATE}(?:T|,?\s(?:{_AT}\s)?){_TIME}|{_TIME},?\s{_DATE})"
_DAY = r"\d{1,2}[./-]\d{1,2}\.?,?\s"  # as Teams copies it
# A number in parentheses such as (0.05) is not a time, and a time that a comma follows does not begin a message.
_BRACKETED = (
    rf"(?:\[(?:[^\W\d_]{{2,10}},?\s)?(?:{_WHEN}|(?:{_DAY})?{_TIME})\]|\((?:{_WHEN}|(?!\d+\.\d+\)){_TIME})\))(?![,.;])"
)
_BEGINS = re.compile(
    "[\\s\u200e\u200f\u202a\ufeff]{0,5}"
    rf"(?:{_BRACKETED}"  # [12.03.24, 18:05:11] Anna: Hi
    rf"|{_WHEN}(?=\s|\s?[-–—:|]|$)"  # 12/03/2024, 18:05 - Anna: Hi
    r"|\d{1,2}:\d{2}:\d{2}(?!\d)"  # 18:05:11 anna | Hi
    r"|(?:午[前後])?\d{1,2}:\d{2}(?=\s*$|\t|\s[\s<|*-]|\s[^\W\d_][^\s:]{0,30}:\s|\s[぀-鿿]{1,9}\s)"  # 18:05 <anna> Hi
    r"|<(?!/|(?:[abiup]|br|div|em|h\d|hr|img|li|pre|span|td|tr|[ou]l)\b)[^<>\s]{1,30}>\s"  # <anna> Hi
    rf"|[^\W\d_][^.!?:]{{0,38}}(?:,\s{_BRACKETED}|(?:\s\s|\s[—–]\s)(?:\w{{3,12}}\s{_AT}\s)?(?:{_BRACKETED}|{_WHEN}|{_TIME}))\s*$"
    ")"
)

# How a chat of WhatsApp begins, because it is encrypted end to end, and one of LINE.
_NOTICE = re.compile(_PHRASES.of_all(r"<encrypted>|^.?\[LINE\]"), re.IGNORECASE)
_MOST_BEFORE_NOTICE = 3  # lines
# A message of WhatsApp itself has no sender, or a mark before its text; others stand for a file or a deleted message.
# A chat of LINE begins with two lines that name and date it; its messages have tabs.
_ADDED = re.compile(
    _PHRASES.of_all(
        r"\ufeff?\[LINE\] |<saved>|"
        r"\d\d?:\d\d\t(?:[^\t]*\t)?(?:\[[^\[\]]{2,10}\]|☎ [^\t]*|[^\t]{0,40}<unsent>)$|"
        rf"[\s\u200e]*(?:\[{_WHEN}\]|{_WHEN} [-–]) (?:(?![^:]{{1,60}}: )|"
        r"[^:]{1,60}: (?:\u200e|<[^<>]*>$|[^:]*\.\w{3,4} \([^()]*\)$|[^.!?]{0,20}<deleted>\W*$))"
    ),
    re.IGNORECASE,
)


def written_lines(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines of a text; of a chat of WhatsApp or LINE, only those that people wrote."""
    rest = iter(lines)
    first = [*islice(rest, _MOST_BEFORE_NOTICE)]
    is_chat = any(_NOTICE.search(line) and _ADDED.match(line[:300]) for _, line in first)
    for number, line in chain(first, rest):
        if not (is_chat and _ADDED.match(line[:300])):
            yield number, line


def begins_message(line: str) -> bool:
    """Whether a line begins with a time or a nickname, or has only a name and a time."""
    return bool(_BEGINS.match(line[:200]))
