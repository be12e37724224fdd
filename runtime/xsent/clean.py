"""Text clean-up before encoding: removes format characters and, with `--clean`, other noise."""

import html
import quopri
import re

# Characters that control layout only: Unicode's category Cf without its visible characters (signs around numbers in
# Arabic, Syriac, Kaithi and hieroglyphs), U+034F and the selectors of rare variants. The selectors after emoji
# (U+FE00 to U+FE0F) are kept: they are pieces of the vocabulary. The class contains the characters themselves, so that
# other tools can read it too.
FORMAT = (
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e0fff]"
)
_FORMAT = re.compile(FORMAT)

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# But not "n=20", "T=85" and "color=FF0000".
_QUOTED_PRINTABLE = re.compile(
    r"(?<=[A-Za-z]{2} )=9[67](?= [A-Za-z])|=[89AB][0-9A-F](?=[=G-Za-z])|=[C-F][0-9A-F](?![0-9A-F])"
    r"|=3D|=20(?=\r?\n)|=\r?\n"
)
BLOCK_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|td|th|tr|table|h[1-6])\b[^<>]*>", re.I)
_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*|/)?>", re.I)
_COMMENT = re.compile("<!--.*?-->", re.S)
NO_CHARACTER = re.compile("&#[0-9]{100,};?")  # Python rejects numbers with thousands of digits
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_MARKS = re.compile(r"\*\*|__|~~|`+")
_CUT = re.compile(r"(?<=\w)[-\xad\xac\u2010][ \t]*\r?\n[ \t]*(?=\w)")  # perhaps a word at the end of a line
# The handle of an account, also of one at another server, but not "@babel/core" and "@5pm".
_HANDLE = re.compile(
    r"(?:\bRT )?(?<![\w@/.])@(?!\d++(?:[ap]m|h)?\b)\w++(?:[.-]\w++)*+(?:@\w++(?:[.-]\w++)*+)?(?![\w/])[ \t]?", re.I
)
_LETTERS = re.compile(r"([^\W\d_])\1{3,}")
_PUNCTUATION = re.compile(r"([!?.,…])[!?.…]+")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\ufe0f]")
_QUOTES = str.maketrans("‘’‚‛“”„‟–—", "''''\"\"\"\"--")
# A time stamp is removed as a whole, with its weekday, zone and brackets, or not at all.
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_WEEKDAY = r"(?:(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}|Mo|Di|Mi|Do|Fr|Sa|So)[.,]{0,2}\s{1,2})?"
_DATE = (
    r"(?:\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d\d(?:\d\d)?|\d{8}(?=T)|\d{4}年\d\d?月\d\d?日"
    rf"|{_MONTH}\s\d\d?,?\s\d{{4}}|\d\d?[ /-]{_MONTH}[ /-]\d{{4}})"
)
_CLOCK = (
    r"\d\d?:\d\d(?::\d\d)?(?:[.,:]\d+)?(?:[ \xa0\u202f]?[AaPp]\.?[Mm]\b\.?)?"
    r"(?:\s?(?:Z|UTC|GMT|CES?T|ES?T|[EP][SD]T|MSK|BST|JST|Uhr)\b)?(?:\s?[+-]\d\d:?\d\d\b)?"
)
_TIME = rf"(?:{_CLOCK}(?:\s?(?:-->|[-–])\s?{_CLOCK})?|\d{{6}}Z?)"
_LOGGED = rf"{_MONTH}\s{{1,2}}\d\d?\s{_CLOCK}(?:\s\d{{4}}\b)?"  # the year, if any, comes last
_WHEN = rf"{_WEEKDAY}(?:{_DATE}(?:T|:|,?\s+){_TIME}|{_LOGGED})"
_STAMP = rf"(?:\[(?:{_WHEN}|{_TIME})\]|\({_WHEN}\)|{_WHEN}(?![:.,+-]?\d|\w))"
_THREAD = r"(?:\[[\w.:#/-]{1,40}\]:?\s+)?"
_LEVEL = rf"(?:{_THREAD}\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?:?\s+{_THREAD})?"
_NAME = r"(?:-?\s*(?:~\s?)?(?:[^\W\d][\w .'-]{0,30}|\+\d[\d ()-]{6,20}):\s)?"
# Prefixes of a sentence, removed repeatedly: time stamp with a log level or the name in a chat, markers of quotes,
# headings and lists, checkboxes, line numbers, what followed a handle.
_HEAD = re.compile(rf"\s*(?:{_STAMP}\s*{_LEVEL}{_NAME}|[>|]\s?|#{{1,6}}\s+|[-*+•]\s+|\[[ xX]\]\s+|\d+[:)]\s+|[:,]\s+)")


def remove_format(text: str) -> str:
    """A text without format characters: soft hyphens, zero-width spaces and joiners, bidirectional marks."""
    return text if str.isascii(text) else _FORMAT.sub("", text)


def without_markup(text: str) -> str:
    """A text without tags and comments of HTML, and with characters for its entities."""
    if "<" in text:
        text = _TAG.sub("", BLOCK_TAG.sub(" ", _without_comments(text)))
    return without_entities(text)


def without_entities(text: str) -> str:
    """A text with characters for the entities of HTML."""
    return html.unescape(NO_CHARACTER.sub("\ufffd", text)) if "&" in text else text


def clean_text(text: str) -> str:
    """Strip e-mail, chat, log, OCR and export noise from a text; a text that is only noise is returned unchanged.

    Repaired: quoted-printable, entities, mojibake (see `xsent.mojibake.mend`), words hyphenated at line ends, repeated
    letters and punctuation. Removed: tags, terminal colours, control characters, Markdown, quote markers, URLs, handles
    such as @anna, emoji, quotation marks around the text; time stamps, names, log levels and line numbers before it;
    greetings and sign-offs in the nine languages of the built-in model.

    Example:
        >>> clean_text("**See you** at 9, https://example.org 😀")
        'See you at 9,'
    """
    # Here, not above: most programs clean nothing, and the patterns of these modules take 50 ms to compile.
    from xsent.greetings import strip_greetings
    from xsent.marks import without_marks
    from xsent.mojibake import mend

    cleaned = without_marks(without_markup(_rejoined(_repaired(text))))
    for pattern, replacement in (
        (_ADDRESS, ""),
        (_MARKS, ""),
        (_HANDLE, ""),
        (_LETTERS, r"\1"),
        (_PUNCTUATION, r"\1"),
        (_EMOJI, ""),
    ):
        cleaned = pattern.sub(replacement, cleaned)
    cleaned = remove_format(mend(cleaned)).translate(_QUOTES)
    start = 0
    while head := _HEAD.match(cleaned, start):
        start = head.end()
    cleaned = cleaned[start:].strip()
    cleaned = strip_greetings(cleaned) or cleaned
    if len(cleaned) > 2 and cleaned[0] == cleaned[-1] == '"' and '"' not in cleaned[1:-1]:
        cleaned = cleaned[1:-1].strip()
    return cleaned if any(map(str.isalnum, cleaned)) else text


def _repaired(text: str) -> str:
    """Undo quoted-printable, mojibake and terminal escapes."""
    from xsent.mojibake import mend

    text = ANSI.sub("", text)
    if _QUOTED_PRINTABLE.search(text) and text.isascii():
        encoded = quopri.decodestring(text.encode())
        try:
            text = encoded.decode()
        except UnicodeDecodeError:
            text = encoded.decode("cp1252", errors="replace")
    return _CONTROL.sub("", mend(text))


def _rejoined(text: str) -> str:
    """A text without the line ends within words."""
    if not _CUT.search(text):
        return text
    from xsent.files.hyphens import Hyphens

    hyphens = Hyphens(text)

    def between(cut: re.Match[str]) -> str:
        found = hyphens.between(text[max(0, cut.start() - 80) : cut.start() + 1], text[cut.end() : cut.end() + 80])
        return cut[0] if found is None else found

    return _CUT.sub(between, text)


def _without_comments(text: str) -> str:
    """A text without HTML comments; only the part before the last `-->` is searched, which keeps it linear."""
    end = text.rfind("-->") + len("-->")
    return _COMMENT.sub("", text[:end]) + text[end:] if "<!--" in text else text
