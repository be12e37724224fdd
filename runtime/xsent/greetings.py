"""Greetings and sign-offs of mails, in the nine languages of the built-in model: greetings.json has the phrases.

Japanese has its own kinds of phrases ("unspaced_..."), because no space follows them.
"""

import re
from pathlib import Path

from xsent.phrases import Phrases

_LONGEST_SENT = 100  # characters of "Sent from my phone"
_MOST_OPENINGS = 3  # "Hello Anna! Good morning,"
_MOST_SIGNATURE = 16  # words in a line below a sign-off

_PHRASES = Phrases(Path(__file__).with_name("greetings.json"))
_CAPITAL = "(?-i:[A-ZÀ-ÞЁА-Я])"


def _names(least: int, most: int) -> str:
    """So many names and titles: words with a capital letter, also with a period as in "Dr.", or "all", "colleagues"."""
    return _PHRASES.of_all(rf"(?:\s(?:{_CAPITAL}[\w'’.-]{{0,30}}|<addressees>(?!\w))){{{least},{most}}}")


_NAMES, _SOMEBODY = _names(0, 5), _names(1, 5)
_GREETING = _PHRASES.of_all(  # "Hello!", "Hi, Anna!", "Dear all,"; "dear" greets only somebody
    rf"(?:<hellos>(?:,{_SOMEBODY}(?=\s?[!.:])|{_NAMES})|<dears>{_SOMEBODY})"
    r"\s?(?:[,;:!.…]+(?=\s|$)|[ \t]*(?=\n)|[-–—](?=\s))"
)
# "Beste Anna, ik heb een vraag", but not "Beste Qualität, kleiner Preis": words of the same language must follow.
_IN_SENTENCE = _PHRASES.of_each(
    rf"<dears_in_sentences>{_SOMEBODY}\s?[,:!]\s+(?=(?:[^\s.!?]+\s){{0,6}}<common_words>\b)"
)
_IN_LINE = _PHRASES.of_all(rf"<dears_in_lines>{_SOMEBODY}\s?[,:!.]?[ \t]*(?=\n)")  # "Madame Martin"
_UNSPACED_GREETING = _PHRASES.of_all(
    r"<unspaced_hellos>(?:[。、！!]+|(?=\s|$))|(?:\S{1,20}<honorifics>|<unspaced_addressees>)[、,]?[ \t]*(?=\n)"
)
_OPENING = re.compile(rf"\s*(?:{_GREETING}|{_IN_SENTENCE}|{_IN_LINE}|{_UNSPACED_GREETING})\s*", re.I)

# "Sent from my phone", "Get Outlook for iOS"
_SENT = (
    f"(?:{_PHRASES.of_each('<sent> <from>')}|{_PHRASES.of_all('<get> outlook <for>|<sent_otherwise>')})"
    r"(?: \S{1,30}){1,8}"
)
_SENT_LINE = re.compile(
    _PHRASES.of_all(
        rf"(?:(?=\S+ \S+ <my>\b|.*\b<devices>\b){_SENT}|<unspaced_sent>)(?:[ ,][^\n]{{0,40}}<brevity>)?[\s.。]*"
    ),
    re.I,
)
_SIGNER = rf"(?!\w)[,.!…]*+(?:{_names(0, 8)},?){{0,2}}"
# Wishes ("Kind regards") end a line, also without punctuation before them; regards ("Thanks") are a sentence's line.
_SIGNED = re.compile(
    _PHRASES.of_all(
        r"(?:(?:^|(?<=[.!?…,;:)。！？、])\s*+)"
        rf"(?:(?:<wishes>|<regards>){_SIGNER}|<unspaced_regards>|{_SENT}|<unspaced_sent>)"
        rf"|(?<=\s)(?={_CAPITAL})<wishes>{_SIGNER})[\s,.!。！]*+$"
    ),
    re.I,
)
# A word in the lines below a sign-off: of a name, a place, a number or an address.
_SIGNATURE = re.compile(_PHRASES.of_all(r"\W?[A-ZÀ-ÞЁА-Я].*|\S*[\d.@]\S*|\S+[:：]|[\W_]+|<particles>,?"))


def strip_greetings(text: str) -> str:
    """A text without greetings at its start, and without sign-offs, names and "Sent from my phone" that end a line."""
    start = 0
    for _ in range(_MOST_OPENINGS):
        if not (opening := _OPENING.match(text, start)):
            break
        start = opening.end()
    kept = list[str]()
    signed = False  # below a sign-off
    for line in text[start:].split("\n"):
        if signed and is_signature(line):
            continue
        if found := _SIGNED.search(line):
            line = line[: found.start()]
        signed = bool(found)
        if line.strip() or not signed:
            kept.append(line)
    return "\n".join(kept).strip()


def is_sent_from(line: str) -> bool:
    """Whether a line is only "Sent from my phone" or the like."""
    return len(line) <= _LONGEST_SENT and bool(_SENT_LINE.fullmatch(line.strip()))


def ends_in_sign_off(line: str) -> bool:
    """Whether a line ends in a sign-off, such as "Kind regards, Anna"."""
    return bool(_SIGNED.search(line))


def is_signature(line: str, small: int = 0) -> bool:
    """Whether a line below a sign-off may be part of the signature; `small` other words may be in it, such as "rue"."""
    words = line.split()
    return len(words) <= _MOST_SIGNATURE and sum(not _SIGNATURE.fullmatch(word) for word in words) <= small
