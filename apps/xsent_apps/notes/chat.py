"""Tells where the messages of a chat begin: at a line with a time, as in exports of WhatsApp, Telegram or IRC."""

import re

_MONTH = r"[^\W\d_]{3,9}\.?"
_DATE = (
    r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{2,4}|\d{4}年\d{1,2}月\d{1,2}日"
    rf"|\d{{1,2}}\.?(?: de)? {_MONTH}(?: de)? \d{{4}}|{_MONTH} \d{{1,2}}(?:, \d{{4}})?)"
)
_TIME = (
    r"(?:午[前後])?\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d{1,6})?)?"
    r"(?:\s?[AaPp]\.?\s?[Mm]\b\.?)?(?:Z|\s?[+-]\d{2}:?\d{2})?"
)
_AT = "(?:at|um|à|a las|alle|às|om|в|klo)"
_WHEN = rf"(?:{_DATE}(?:T|,?\s(?:{_AT}\s)?){_TIME}|{_TIME},?\s{_DATE})"
_DAY = r"\d{1,2}[./-]\d{1,2}\.?,?\s"  # as Teams copies it
_BRACKETED = rf"(?:\[(?:[^\W\d_]{{2,10}},?\s)?(?:{_WHEN}|(?:{_DAY})?{_TIME})\]|\((?:{_WHEN}|{_TIME})\))"
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


def begins_message(line: str) -> bool:
    """Whether a line begins with a time or a nickname, or has only a name and a time."""
    return bool(_BEGINS.match(line[:200]))
