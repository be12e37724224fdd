"""Text clean-up before encoding: removes format characters and, with `--clean`, other noise."""

import html
import quopri
import re
from contextlib import suppress

# Characters that control layout only: Unicode's category Cf without its visible characters (signs around numbers in
# Arabic, Syriac, Kaithi and hieroglyphs), U+034F and the selectors of rare variants. The selectors after emoji
# (U+FE00 to U+FE0F) are kept: they are pieces of the vocabulary. The class contains the characters themselves, so that
# other tools can read it too.
FORMAT = (
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e0fff]"
)
_FORMAT = re.compile(FORMAT)

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_QUOTED_PRINTABLE = re.compile(r"=[89A-F][0-9A-F]|=3D|=20|=\r?\n")
# Characters of Windows-1252 and their bytes, 0x80 to 0x9f.
_WESTERN = {ord(sign): byte for byte in range(0x80, 0xA0) if (sign := bytes([byte]).decode("cp1252", "ignore"))}
# Pairs of characters that appear where the first two bytes of a UTF-8 character were read as one character each.
_MISREAD = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
)
_BLOCK_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|td|th|tr|table|h[1-6])\b[^<>]*>", re.I)
_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*|/)?>", re.I)
_COMMENT = re.compile("<!--.*?-->", re.S)
_ENTITY = re.compile("&#[0-9]{100,};?")  # not a character; Python rejects numbers with thousands of digits
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_MARKS = re.compile(r"\*\*|__|~~|`+")
_HYPHEN = re.compile(r"(\w)-[ \t]*\r?\n[ \t]*(?=[^\W\d_])")
_LETTERS = re.compile(r"([^\W\d_])\1{3,}")
_PUNCTUATION = re.compile(r"([!?.,…])[!?.…]+")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\ufe0f]")
_QUOTES = str.maketrans("‘’‚‛“”„‟–—", "''''\"\"\"\"--")
_TIME = r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?(?:Z|[+-]\d\d:?\d\d)?"
_DATE = (
    r"(?:\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d\d(?:\d\d)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d)"
)
_LEVEL = r"(?:\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?:?\s+)?"
# Prefixes of a sentence, removed repeatedly: date and time with a log level or the name in a chat, markers of quotes,
# headings and lists, checkboxes, line numbers.
_HEAD = re.compile(
    rf"\s*(?:\[?{_DATE},?[T ]\s*{_TIME}\]?\s*{_LEVEL}(?:-?\s*[^\W\d][\w .]{{0,30}}:\s)?|\[{_TIME}\]\s*"
    r"|[>|]\s?|#{1,6}\s+|[-*+•]\s+|\[[ xX]\]\s+|\d+[:)]\s+)"
)


def remove_format(text: str) -> str:
    """A text without format characters: soft hyphens, zero-width spaces and joiners, bidirectional marks."""
    return text if str.isascii(text) else _FORMAT.sub("", text)


def without_markup(text: str) -> str:
    """A text without tags and comments of HTML, and with characters for its entities."""
    if "<" in text:
        text = _TAG.sub("", _BLOCK_TAG.sub(" ", _without_comments(text)))
    return html.unescape(_ENTITY.sub("\ufffd", text)) if "&" in text else text


def clean_text(text: str) -> str:
    """Strip e-mail, chat, log, OCR and export noise from a text; a text that is only noise is returned unchanged.

    Repaired: quoted-printable, entities, mojibake (UTF-8 read as another encoding), words hyphenated at line ends,
    repeated letters and punctuation. Removed: tags, terminal colours, control characters, Markdown, quote markers,
    URLs, emoji, quotation marks around the text; timestamps, names, log levels and line numbers before it.
    """
    cleaned = _without_comments(_repaired(text))
    for pattern, replacement in (
        (_BLOCK_TAG, " "),
        (_TAG, ""),
        (_LINK, r"\1"),
        (_ADDRESS, ""),
        (_MARKS, ""),
        (_HYPHEN, r"\1"),
        (_LETTERS, r"\1"),
        (_PUNCTUATION, r"\1"),
        (_EMOJI, ""),
        (_ENTITY, "\ufffd"),
    ):
        cleaned = pattern.sub(replacement, cleaned)
    cleaned = html.unescape(cleaned).translate(_QUOTES)
    start = 0
    while head := _HEAD.match(cleaned, start):
        start = head.end()
    cleaned = cleaned[start:].strip()
    if len(cleaned) > 2 and cleaned[0] == cleaned[-1] == '"':
        cleaned = cleaned[1:-1].strip()
    return cleaned if any(map(str.isalnum, cleaned)) else text


def _repaired(text: str) -> str:
    """Undo quoted-printable, mojibake and terminal escapes."""
    text = _ANSI.sub("", text)
    if _QUOTED_PRINTABLE.search(text) and text.isascii():
        encoded = quopri.decodestring(text.encode())
        try:
            text = encoded.decode()
        except UnicodeDecodeError:
            text = encoded.decode("cp1252", errors="replace")
    if _MISREAD.search(text):
        with suppress(UnicodeError):  # not all of it was misread
            # The bytes of these characters in Windows-1252, or in Latin-1 where Windows-1252 has none.
            text = text.translate(_WESTERN).encode("latin-1").decode()
    return _CONTROL.sub("", text)


def _without_comments(text: str) -> str:
    """A text without HTML comments; only the part before the last `-->` is searched, which keeps it linear."""
    end = text.rfind("-->") + len("-->")
    return _COMMENT.sub("", text[:end]) + text[end:] if "<!--" in text else text
