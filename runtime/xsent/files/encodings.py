"""Recognises the encoding of a text: from its first bytes, from what it declares, or from its letters."""

import codecs
import re
from itertools import islice
from typing import NamedTuple

from xsent.errors import DataError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, which begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WITHOUT_BOM = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a]")
_ESCAPES = re.compile(rb"\x1b(\$[@B]|\([IJ])")  # of ISO-2022-JP
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_DECLARED = re.compile(
    rb"<\?xml[^>]{1,200}?\bencoding\s*=\s*[\"']([\w.:-]+)|<meta\b[^>]{1,300}?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)",
    re.IGNORECASE,
)
_DECLARATION_LENGTH = 4096  # bytes in which a page declares its encoding; browsers look at 1,024
_NO_ENCODINGS = ("punycode", "idna", "undefined")  # for host names, not text; decoding may take quadratic time
# What programs call an encoding, and the larger one that they mean, as browsers know: https://encoding.spec.whatwg.org
_MEANT = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **{"shift_jis": "cp932", "euc_jp": "euc_jis_2004", "euc_kr": "cp949", "big5": "big5hkscs"},
    **{"iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874"},
}
_UNSURE = ("cp1252", "utf-8")  # claimed by programs that do not know their encoding
CYRILLIC = ("cp1251", "koi8-r", "cp866")
JAPANESE = ("cp932", "euc_jis_2004")
_NAMES = {"cp932": "Shift_JIS", "euc_jis_2004": "EUC-JP", "koi8-r": "KOI8-R"}
_NAMES |= {codec: codec[:6].upper() for codec in _WITHOUT_BOM}

_ACCENTED = "À-ÖØ-öø-ÿŠŒŽšœžŸ"
_SYMBOLS = "¡-§©ª¬®¯±-¶¸-º¼-¿‚ƒ„†‡ˆ‰‹›˜™"
_HIGH = f"{_ACCENTED}{_SYMBOLS}×÷¨"
# Signs that a text read as cp1252 is in another encoding: control characters, symbols within words, capitals within
# words of small letters, and ƒ, the first byte of katakana in Shift_JIS, before a letter or bracket.
_STRANGE = re.compile(
    rf"[\x00-\x08\x0e-\x1f\x7f]|(?<=[A-Za-z{_ACCENTED}])[{_SYMBOLS}•](?=[A-Za-z{_ACCENTED}])|"
    "(?<=[a-z])[À-ÖØ-ÝŠŒŽŸ](?=[a-z])|ƒ(?=[^\\s!-?])"
)
_PER_STRANGE = 500  # fewest characters per strange one
# Three characters beyond ASCII as a word, or four in a row. No Western language has them.
_RUN = re.compile(
    rf"(?![äöüßæøåÄÖÜÆØÅ]{{3}})([{_HIGH}])(?!\1)[{_HIGH}\xa0](?:[{_HIGH}\xa0][{_HIGH}]|(?<!\w..)[{_HIGH}](?!\w))"
)
_PER_RUN = 40  # fewest characters beyond ASCII per run

_TYPOGRAPHY = "\xa0«»„“”‘’–—…№•§©®°·€"
_BEYOND_ASCII = re.compile(rf"[^\0-\x7f{_TYPOGRAPHY}]")
_RUSSIAN = re.compile(r"(?<!\w)(?:[А-ЯЁЄІЇҐ]?[а-яёєіїґ]+|[А-ЯЁЄІЇҐ]+)(?!\w)")  # a word
_FREQUENT = re.compile("[оеаинтсрвлкмдпуі]")  # four fifths of the letters of a Russian text
_CAPITAL = 0.6  # weight of a capital beside small letters: KOI8-R has one where cp1251 has the other
# A frame, in texts of DOS; its lines may be letters in other encodings.
_DRAWN = re.compile(r"[─-╬]?(\S)\1{4,}[─-╬]?|^[│║]|[│║] *$", re.MULTILINE)
_KANA = re.compile("[ぁ-ヿ]")
_LEAST_CYRILLIC = 0.55  # lowest share of frequent letters in all beyond ASCII
_LEAST_JAPANESE = 0.1  # lowest share of kana
_SAMPLE = 100_000  # characters of a text to judge it by, from the first beyond ASCII
_BETTER = 0.3  # a guess beats the declared encoding by this share
_SIMPLE = re.compile(r"[\t\n\f\r -~\xa0-\u052f\u2010-\u203a\u20ac]")  # Latin, Greek, Cyrillic, punctuation
_MOST_REPLACED = 0.01  # highest share of damaged characters


class Decoded(NamedTuple):
    """A text, and its encoding if that is a guess."""

    text: str
    guessed: str = ""


def decoded(content: bytes, declared: str = "") -> Decoded:
    """The text of bytes in a declared encoding, or in the one that they are in.

    Unicode is known by its bytes, whatever is declared. Other encodings are guessed if none is declared, or if the
    declared one cannot be true: cp1252, the usual Russian ones, Shift_JIS and EUC-JP. Raises DataError for all others.
    """
    unicode = _unicode(content)
    codec = _codec(declared)
    text = _strict(content, codec) if codec else None
    escaped = text is not None and content.isascii() and not (unicode and unicode.guessed)  # such as ISO-2022-KR
    if unicode and not escaped:
        return unicode
    if text is not None and (escaped or codec not in (*_UNSURE, *CYRILLIC, *JAPANESE)):
        return Decoded(text)
    guess, guessed = _guess(content)
    if text is not None and codec not in _UNSURE and _likely(guess) <= _likely(text) + _BETTER:
        return Decoded(text)
    if guessed:
        return Decoded(guess, _NAMES.get(guessed, guessed) if guessed != codec else "")
    if codec:
        text = content.decode(codec, "replace")
        if codec != "cp1252" and text.count("\ufffd") <= _MOST_REPLACED * len(text):
            return Decoded(text)
    raise DataError(f"{not_utf8(content)}, and its encoding cannot be told; convert it to UTF-8")


def declared_encoding(page: bytes) -> str:
    """The encoding that an HTML or XML file declares; none is an empty text."""
    names = _DECLARED.findall(_COMMENT.sub(b"", page[:_DECLARATION_LENGTH]))
    return next((name for first, second in names if _codec(name := (first or second).decode())), "")


def wide_encoding(start: bytes) -> str | None:
    """UTF-16 or UTF-32 if the first four bytes of a text show it: a byte-order mark, or two ASCII characters."""
    for mark, codec in _BOMS[1:]:
        if start.startswith(mark):
            return codec
    zeros = "".join("0" if byte == 0 else "x" for byte in start[:4])
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros)


def old_encoding(content: bytes) -> str:
    """The codec of a text in cp1252, or in an old Russian or Japanese encoding; empty if it is Unicode or not text."""
    return "" if b"\0" in content or _unicode(content) else _guess(content)[1]


def is_iso2022_jp(content: bytes) -> bool:
    """Whether a text is in ISO-2022-JP, all of whose bytes are ASCII."""
    return b"\x1b" in content and content.isascii() and bool(_ESCAPES.search(content))


def decode_iso2022_jp(content: bytes) -> str:
    """A text in ISO-2022-JP; signs that are not in it become U+FFFD."""
    # The newer standard has the numbers in circles that mail programs write without saying so.
    newer = content.replace(b"\x1b$B", b"\x1b$(Q")
    return _strict(content, "iso2022_jp_ext") or newer.decode("iso2022_jp_2004", "replace")


def _western(content: bytes) -> str | None:
    """A text in cp1252, if bytes that are not Unicode look like one."""
    if (text := _strict(content, "cp1252")) is None:
        return None
    beyond = len(text) - len(text.encode("ascii", "ignore"))
    for strange, most in ((_STRANGE, len(text) // _PER_STRANGE), (_RUN, beyond // _PER_RUN)):
        if next(islice(strange.finditer(text), most, None), None):
            return None
    return text


def _unicode(content: bytes) -> Decoded | None:
    """A text in UTF-8, UTF-16, UTF-32 or ISO-2022-JP. Raises DataError for binary data."""
    for mark, codec in _BOMS:
        if content.startswith(mark):
            return Decoded(content.decode(codec, "replace"))
    if _CONTROL.search(content):
        for codec in _WITHOUT_BOM:
            text = _strict(content, codec)
            if text and (len(_SIMPLE.sub("", text)) <= 0.1 * len(text) or _score(text, _KANA) >= _LEAST_JAPANESE):
                return Decoded(text, _NAMES[codec])
        if b"\0" in content:
            raise DataError("contains binary data, not text")
    if is_iso2022_jp(content):
        return Decoded(decode_iso2022_jp(content), "ISO-2022-JP")
    text = _strict(content, "utf-8")
    return None if text is None else Decoded(text)


def _guess(content: bytes) -> tuple[str, str]:
    """A text in the old encoding that its letters show, and the encoding; two empty texts if none fits."""
    if (western := _western(content)) is not None:
        return western, "cp1252"
    tried = [(codec, _KANA, _LEAST_JAPANESE) for codec in JAPANESE]
    tried += [(codec, _FREQUENT, _LEAST_CYRILLIC) for codec in CYRILLIC]
    best, most = ("", ""), 1.0  # how far above the least
    for codec, letters, least in tried:
        text = _strict(content, codec)
        if text is not None and (share := _score(text, letters) / least) > most:
            best, most = (text, codec), share
    return best


def _score(text: str, letters: re.Pattern[str]) -> float:
    """The share of these letters in all characters beyond ASCII; those outside of Russian words count against it."""
    if not (first := _BEYOND_ASCII.search(text)):
        return 0
    text = _DRAWN.sub("", text[first.start() : first.start() + _SAMPLE])
    beyond = _count(_BEYOND_ASCII, text) or 1
    if letters is not _FREQUENT:
        return _count(letters, text) / beyond
    words = " ".join(_RUSSIAN.findall(text))
    outside = beyond - _count(_BEYOND_ASCII, words)
    capital = 1 if words.isupper() else _CAPITAL
    return (_count(letters, words) + capital * _count(letters, words.swapcase()) - outside) / beyond


def _likely(text: str) -> float:
    """How far a text looks Russian or Japanese, up to 1."""
    return max(_score(text, _KANA), _score(text, _FREQUENT))


def _count(signs: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in signs.finditer(text))


def _codec(declared: str) -> str:
    """The standard library's name of a declared encoding; an unknown one is an empty text."""
    name = declared.strip(" '\"").lower().removeprefix("x-")
    for each in (name, re.sub(r"^(windows|win|cp)[-_]?(?=\d)", "cp", name).removesuffix("_31j")):
        try:
            found = codecs.lookup(each)
        except (LookupError, ValueError):  # a name with a null character
            continue
        codec = _MEANT.get(found.name, found.name)
        # A page that names UTF-16 in ASCII is in something else.
        return "" if codec in _NO_ENCODINGS or codec.startswith(("utf-16", "utf-32")) else codec
    return ""


def _strict(content: bytes, codec: str) -> str | None:
    """The text of bytes that are wholly in an encoding."""
    try:
        return content.decode(codec)
    except (UnicodeError, LookupError):  # LookupError: such as base64, which is for bytes
        return None


def not_utf8(content: bytes) -> str:
    """Which byte of a text is not UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte 0x{content[error.start]:02x} at {error.start + 1})"
    return "not UTF-8"
