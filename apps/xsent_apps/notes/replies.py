"""Leaves out of an email what its sender did not write: answered emails, their headers, signatures and footers.

replies.json has the phrases of each language.
"""

import re
from itertools import chain, groupby, pairwise
from pathlib import Path

from xsent.phrases import Phrases

Lines = list[tuple[int, str]]

_LONGEST_WROTE = 400  # characters
_MOST_WROTE = 3  # lines
_LONGEST_HEAD = 30  # lines
_LONGEST_SIGNATURE = 10  # lines
_LONGEST_FOOTER = 250  # characters
_LONGEST_JOIN = 25  # lines

_PHRASES = Phrases(Path(__file__).with_name("replies.json"))


def _pattern(template: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(_PHRASES.of_all(template), re.IGNORECASE | flags)


_PREFIX = re.compile(r"\s*\w{1,9}(\[\d+\])?\s?[:：]\s*")  # of a reply's subject
_FORWARD = _pattern(r"\s*<forward_prefixes>\s?[:：]")

# The header of the email below a reply: its fields may be bold, or rows of a table.
_LABEL = _pattern(r"[\s*|]*(?:(?P<sender><from>)|(?P<sent><date>)|(?P<about><subject>)|<to>)[\s*|]{0,5}[:：]")
_OTHER_FIELD = re.compile(r"[^\W\d][^:：]{1,20}[:：]\s")
_LINE = re.compile(r"[\s*]*(?:-{4,}|_{8,})[\s*]*$")
_ORIGINAL = _pattern(r"[\s*]*-{2,}\s{0,3}<original>\s{0,3}-{2,}[\s*]*$")
_PASSED_ON = _pattern(r"[\s*-]*<forwarded>\b[^\n]{0,80}$")

# "On Monday, 3 May, Anna wrote:", of which the first line has the date
_ON = _pattern(r"<on>\s[^\n]*\d|<on_the_day>\b")
_WROTE = _pattern(r"\b<wrote>\b|<unspaced_wrote>")
_DATED = re.compile(r"\d\d?[:.h]\d\d|\d{4}")
_ENDED = re.compile(r"[.!?…。]\s*$|^\s*$")  # a line after which another text begins
_QUOTED = re.compile("(?:[A-ZА-ЯЁ]{2})?>")  # The Bat! puts the initials of the author before the sign

# A signature between two lines of signs, or below one, as in Japan; it has an address or a number.
RULER = re.compile(r"\s*(?:[^\w\s]|_){10,}\s*$")
_CONTACT = re.compile(r"@|https?://|www\.|〒|\d[\d ()/.–-]{6,}\d")
_SIGNED = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----\s*$|Hash: (?:SHA|MD|RIPEMD)[\w, -]*$")
_POSTSCRIPT = re.compile(_PHRASES.of_all(r"\W*<postscript>"))

# What services and companies write below an email.
_FOOTERS = (
    # Why somebody gets it, and how to get no more.
    _PHRASES.of_all(r"<footers>|<unsubscribe>(?:\W*$|\s*[|·<(])"),
    # It may look better in a browser.
    _PHRASES.of_all(r"<view_online>\W*$"),
    _PHRASES.of_each(r"<view>\b[^\n.]{0,30}\b<in_browser>\W*$"),
    *(
        _PHRASES.of_each(rf"<trouble>\b[^\n]{{0,60}}\b{mail}\b[^\n]{{0,80}}\b<browser>\W*$")
        for mail in ("<this> <mails>", "<the_mail>")
    ),
    # A program wrote it.
    _PHRASES.of_each(r"(?:<please> )?<do_not_reply> <this> (?:\S{1,20} ){0,2}<mails>\b"),
    _PHRASES.of_each(r"<this_is>\b(?=[^\n.]{0,40}<automatic>)[^\n.]{0,40}\b<mails>\b"),
    # It comes from outside the company.
    _PHRASES.of_all(r"<caution>\b\W[^\n]{0,30}<mails>\b[^\n]{0,40}\b<outside>"),
    # Think of the environment before you print it.
    _PHRASES.of_all(r"(?=[^\n]{0,200}<environment>)[^\n]{0,200}<before_printing>"),
)
_FOOTER = re.compile(rf"\W*(?:{'|'.join(_FOOTERS)})", re.IGNORECASE)
# This email is confidential and for nobody but the recipient.
_CONFIDENTIAL = _pattern(
    r"<mails>[^.。]{0,150}<confidential>.{0,400}?<recipient>|<under>\b[^\n]{0,120}<law>", re.DOTALL
)
# How to join a meeting: between the lines of signs below an invitation.
_JOIN = re.compile(
    r"\bmicrosoft\s+teams\b|/meetup-join/|\baka\.ms/|\bteams\.(?:microsoft|live)\.com|\bdialin\.teams", re.I
)


def sent_lines(lines: Lines, subject: str) -> Lines:
    """The lines that the sender of an email wrote or forwarded, or all lines if that is nothing."""
    if is_forwarded(subject):
        lines = [(number, re.sub("^> ?", "", line)) for number, line in lines]
    return _own(_without_answered(lines, subject)) or lines


def is_forwarded(subject: str) -> bool:
    """Whether the subject says that the email forwards another."""
    return bool(_FORWARD.match(subject))


def announces(line: str) -> bool:
    """Whether a line may be "On Monday, 3 May, Anna wrote:" above a quotation."""
    text = line.rstrip("* \t\r\xa0")
    return (
        text.endswith((":", "："))
        and len(text) <= _LONGEST_WROTE
        and bool(re.search(r"\d|@", text) or _WROTE.search(text))
    )


def _without_answered(lines: Lines, subject: str) -> Lines:
    """An email without the headers of other emails in it; a reply also without the email that it answers."""
    keeps = is_forwarded(subject)
    kept: Lines = []
    has_text = False
    place = 0
    while place < len(lines):
        line = lines[place][1]
        keeps = keeps or bool(_PASSED_ON.match(line))
        end = _end_of_head(lines, place, _bare(subject))
        if end == place and has_text:
            end = _end_of_announcement(lines, place)
        if end == place:
            kept.append(lines[place])
            has_text = has_text or bool(line.strip())
            place += 1
            continue
        following = next((line for _, line in lines[end : end + _LONGEST_HEAD] if line.strip()), "")
        if has_text and not keeps and not _QUOTED.match(following):
            break
        place = end
    return kept


def _end_of_announcement(lines: Lines, first: int) -> int:
    """Where "On Monday, 3 May 2024, Anna <anna@example.org> wrote:" ends; `first` if that does not begin at a line."""
    text = ""
    for place, (_, line) in enumerate(lines[first : first + _MOST_WROTE], first):
        text = f"{text} {line.strip()}".lstrip()
        if not line.strip() or not _ON.match(text):
            break
        if announces(text):
            return place + 1 if "@" in text and _DATED.search(text) and _WROTE.search(text) else first
    return first


def _bare(subject: str) -> str:
    """A subject without the prefixes of replies."""
    start = 0
    while prefix := _PREFIX.match(subject, start):
        start = prefix.end()
    return subject[start:].strip()


def _end_of_head(lines: Lines, first: int, subject: str) -> int:
    """Where the header that begins at a line ends, with the line above it; `first` if none begins there."""
    line = lines[first][1]
    is_original = bool(_ORIGINAL.match(line))
    has_line_above = is_original or _LINE.match(line) or _PASSED_ON.match(line)
    start = first + 1 if has_line_above else first
    end = last = start
    kinds = set[str]()
    fields = 0
    while end < min(len(lines), start + _LONGEST_HEAD):
        text = lines[end][1]
        label = _LABEL.match(text)
        if label:
            kinds |= {label.lastgroup or "to"}
            kinds |= {"address"} if label.lastgroup == "sender" and "@" in text else set()
        field = label or (_OTHER_FIELD.match(text) if fields and end == last else None)
        if field:
            fields += 1
            if subject and text[field.end() :].strip(" *|").endswith(subject):
                kinds.add("subject")
        elif text.strip() and not (fields and end == last and "@" in text):
            break
        elif not text.strip() and end > last:  # two empty lines
            break
        end += 1
        if text.strip():
            last = end
    is_known = {"sender", "sent"} <= kinds and bool(kinds & {"about", "address"})
    if is_known or ("subject" in kinds and fields >= 3):
        return last
    return first + 1 if is_original else first


def _own(lines: Lines) -> Lines:
    """The lines that the sender wrote; none in an email that only quotes or has a footer only."""
    from xsent.greetings import is_sent_from  # here: only emails need its patterns, which take 50 ms to compile

    own: Lines = []
    quoted = False
    for number, line in _without_disclaimers(lines):
        if line.rstrip() in ("--", "- --", "-----BEGIN PGP SIGNATURE-----"):
            break
        if is_sent_from(line) or _SIGNED.match(line) or _is_footer(line):
            continue
        if _QUOTED.match(line):
            if not quoted:
                _remove_attribution(own)
            quoted = True
            continue
        quoted = quoted and not line.strip()
        own.append((number, line))
    own = _without_signature(_without_sections(own))
    return own if any(line.strip() for _, line in own) else []


def _without_sections(lines: Lines) -> Lines:
    """An email without the sections below lines of signs that say how to join a meeting, or are its signature."""
    rulers = [place for place, (_, line) in enumerate(lines) if RULER.match(line)]
    kept, *sections = (lines[first:end] for first, end in pairwise([0, *rulers, len(lines)]))
    sections = [section for section in sections if not _has(_JOIN, section, _LONGEST_JOIN)]
    while sections and not any(line.strip() for _, line in sections[-1][1:]):
        del sections[-1]
    if sections and _has(_CONTACT, sections[-1], _LONGEST_SIGNATURE):
        del sections[-1]
    return [*kept, *chain.from_iterable(sections)]


def _without_signature(lines: Lines) -> Lines:
    """An email without what is below its sign-off, if that is a name and then an address or a number."""
    from xsent.greetings import ends_in_sign_off, is_signature  # see `_own`

    for place in range(len(lines) - 1, -1, -1):
        if ends_in_sign_off(lines[place][1]):
            name, *rest = [line for line in lines[place + 1 :] if line[1].strip()] or [(0, "")]
            is_signed = not _CONTACT.search(name[1]) and _has(_CONTACT, rest, _LONGEST_SIGNATURE)
            return lines[: place + 1] if is_signed else lines
        if _POSTSCRIPT.match(lines[place][1]) or not is_signature(lines[place][1], _most_small(lines[place][1])):
            break
    return lines


def _most_small(line: str) -> int:
    """How many words in small letters a line of a signature may have, such as "Gérant de la société"."""
    return 0 if _CONTACT.search(line) else 2


def _is_footer(line: str) -> bool:
    """Whether a service or a company writes a line below its emails."""
    return len(line) <= _LONGEST_FOOTER and bool(_FOOTER.match(line))


def _has(pattern: re.Pattern[str], section: Lines, most: int) -> bool:
    """Whether one of the lines of a short section has a pattern."""
    written = [line for _, line in section if line.strip()]
    return len(written) <= most and any(map(pattern.search, written))


def _without_disclaimers(lines: Lines) -> Lines:
    """An email without what says that it is confidential, with the rest of that paragraph."""
    kept: Lines = []
    for _, group in groupby(lines, key=lambda line: bool(line[1].strip())):
        paragraph = [*group]
        found = _CONFIDENTIAL.search(text := "\n".join(line for _, line in paragraph))
        kept += paragraph[: text.count("\n", 0, found.start())] if found else paragraph
    return kept


def _remove_attribution(lines: Lines) -> None:
    """Remove the last lines of a text if they announce a quotation; a long announcement is wrapped."""
    end = len(lines)
    while end and not lines[end - 1][1].strip():
        end -= 1
    if not end or not announces(lines[end - 1][1]):
        return
    first = end - 1
    for place in range(end - 1, max(-1, end - 1 - _MOST_WROTE), -1):
        if place < end - 1 and _ENDED.search(lines[place][1]):
            break
        is_first = bool(_ON.match(lines[place][1]))
        if is_first or _DATED.search(lines[place][1]):
            first = place
        if is_first:
            break
    del lines[first:]
