"""Leaves out data within a text, such as a picture in base64."""

import re
from collections.abc import Iterable

# With more lines below it if it is wrapped.
_ADDRESS = re.compile(
    r"(?<!\w)data:(?:image|audio|video|font|application|text)/[\w.+-]{1,99}(?:;[\w=.+-]{1,80}){0,5},"
    r"[^\s()\[\]<>\"']*+(?:[ \t]*+\n[ \t>]*+[A-Za-z0-9+/]{40,}+=*+(?![^\s)\]>\"']))*+"
    r"(?:[ \t]*+\n[ \t>]*+[A-Za-z0-9+/]{2,39}={1,2}(?![^\s)\]>\"']))?"
)
_HERE = "data:,"  # takes the place of an address until what is around it is known
_LINK = re.compile(rf"!?\[([^\[\]]*)\]\(<?{_HERE}>?[^()\n]*\)")  # its words stay
_DEFINITION = re.compile(rf"^[ \t]*\[[^\]\n]*\]:[ \t]*<?{_HERE}.*$", re.MULTILINE)
_NAMELESS = re.compile(r"!\[\]\[[^\[\]\n]*\]")  # a picture that is defined elsewhere and has no words
_TAG = re.compile(rf"<(?:img|image)\b([^<>]*{_HERE}[^<>]*)>", re.IGNORECASE)
_ALT = re.compile(r"\balt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
# Without an address: a long run, or lines of equal length as in emails and certificates.
_RUN = re.compile(
    r"(?<![\w+/.:@?=&%#-])(?:[A-Za-z0-9+/]{200,}+={0,2}|(?m:^)(?:[A-Za-z0-9+/]{60,}+\n){3,}+(?:[A-Za-z0-9+/]+={1,2})?)(?![\w+/])"
)
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))


def without_data(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Numbered lines without data; of a picture, the words that describe it stay."""
    lines = list(lines)
    text = "\n".join(line for _, line in lines)
    if "data:" in text:
        text = _ADDRESS.sub(lambda found: _HERE + "\n" * found[0].count("\n"), text)
        text = _LINK.sub(r"\1", text)
        text = _DEFINITION.sub("", text)
        text = _TAG.sub(_words_of, text)
        text = _NAMELESS.sub("", text).replace(_HERE, "")
    rest = _RUN.sub(_if_text, text).split("\n")
    return [(number, line) for (number, _), line in zip(lines, rest, strict=bool(lines))]


def _words_of(picture: re.Match[str]) -> str:
    """The words that describe a picture, in the place of its tag, which may have several lines."""
    alt = _ALT.search(picture[1])
    words = " ".join((alt[1] or alt[2] or "").split()) if alt else ""
    return words + "\n" * picture[0].count("\n")


def _if_text(run: re.Match[str]) -> str:
    """Keep a long run unless it is data: text repeats a few characters, and data has all kinds."""
    return "\n" * run[0].count("\n") if all(kind.search(run[0]) for kind in _MIXED) else run[0]
