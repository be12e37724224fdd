"""Broken encodings (mojibake): text whose bytes were read in another encoding, mended piece by piece."""

import re
from collections.abc import Iterable
from contextlib import suppress

from xsent.files.encodings import CYRILLIC, JAPANESE, old_encoding

_MOST_ROUNDS = 5  # a text may have been misread several times, and in several encodings
_CONTROL = range(0x80, 0xA0)  # bytes that Latin-1 reads as control characters, Windows-1252 as signs
_SIGNS = {byte: bytes([byte]).decode("cp1252", "ignore") for byte in _CONTROL}

# Signs that may follow a letter in a text that is right, as in "CAFÉ»" or "é\xa0»".
_FOLLOWING = "\xa0“”‘’‚„‹›«»…–—•·™®©°№ёЁіІїЇєЄґҐ"
_OPENING = ("“", "„", "‘", "‚", "«", "‹")
# What a single piece may stand for: letters of Europe, punctuation, kana. A run of pieces may be anything.
_EXPECTED = re.compile(
    "[\xa0-\u017f\u0218-\u021b\u0386-\u03ce\u0401\u0404\u0406\u0407\u0410-\u044f\u0451\u0454\u0456\u0457\u0490\u0491"
    "\u2002-\u2044\u20a0-\u20bf\u2116\u2122\u2190-\u25ff\u2713\u2714\u3000-\u30ff\ufb00-\ufb06\ufeff]"
)
_INVISIBLE = "\xad\u200b\u200c\u200d\u200e\u200f\ufeff"
# An "à" whose second byte, a no-break space, became a plain one: within a word, and also alone. The same of that space.
_A_GRAVE = re.compile(r"(?<=[a-z])Ã(?: (?= )|(?= |$))")
_ALONE = re.compile(r"(?<![^\W\d_])Ã(?: (?= )|(?= ))")
_SPACE = re.compile(r"(?<=[^\sA-ZÀ-ÖØ-Þ])Â(?= )")

# Cyrillic that was read as Latin-1: a word without any letter of ASCII.
_WORD = re.compile(r"(?<![^\W_]|[¸¨£³])[À-ÿ¸¨£³]++(?![^\W_])")
_AS_SHIFT_JIS = re.compile("[縺繧繝][^\\W]")  # the first two bytes of kana in UTF-8
_UNKNOWN_RUN = re.compile("[^\0-\x7f\ufffd・]{3,}")
# Letters of Western Europe that were read as cp1251, as in "fьr", in a text without words in Cyrillic.
_LETTER = re.compile("(?<=[A-Za-z])[А-яЁё](?![А-яЁё])|(?<![А-яЁё])[А-яЁё](?=[A-Za-z])")
_CYRILLIC_WORD = re.compile("[А-яЁё]{2}")
_ALIKE = frozenset("АВЕКМНОРСТУХаеорсух")  # typed instead of those of Latin


def _bytes_of(encoding: str) -> dict[int, int]:
    """The byte of every character that an encoding reads above ASCII, and of the control characters of Latin-1."""
    signs = {byte: bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in range(0x80, 0x100)}
    return {byte: byte for byte in _CONTROL} | {ord(sign): byte for byte, sign in signs.items()}


_BYTES = _bytes_of("cp1252")


class _Misread:
    """UTF-8 that was read in an encoding with one byte per character.

    Args:
        encoding: The encoding.
        first: First characters of a piece of two that counts by itself.
        sure: Those that no sign of `_FOLLOWING` follows in a text that is right.
    """

    def __init__(self, encoding: str, first: str, sure: str = "") -> None:
        self._bytes = _bytes_of(encoding)

        def one_of(start: int, end: int) -> str:
            return f"[{re.escape(''.join(chr(sign) for sign, byte in self._bytes.items() if start <= byte < end))}]"

        rest = one_of(0x80, 0xC0)
        two, three, four = one_of(0xC2, 0xE0), one_of(0xE0, 0xF0), one_of(0xF0, 0xF5)
        self._run = re.compile(f"(?:{two}{rest}|{three}{rest}{{2}}|{four}{rest}{{3}})++")
        self._first, self._sure = first, sure

    def pieces(self, text: str) -> dict[tuple[int, int], str]:
        """What stands instead of every run of pieces that cannot be right as it is, by its start and end."""
        runs = [(run, decoded) for run in self._run.finditer(text) if (decoded := self._decoded(run[0]))]
        wrong = {run.span(): decoded for run, decoded in runs if self._is_wrong(text, run, decoded)}
        if wrong:  # then others that might be right are not
            wrong |= {run.span(): decoded for run, decoded in runs if _EXPECTED.match(decoded)}
        return wrong

    def _decoded(self, run: str) -> str:
        """The characters that were misread; empty if these are none."""
        try:
            decoded = run.translate(self._bytes).encode("latin-1").decode()
        except UnicodeError:
            return ""
        return decoded if all(sign.isprintable() or sign.isspace() or sign in _INVISIBLE for sign in decoded) else ""

    def _is_wrong(self, text: str, run: re.Match[str], decoded: str) -> bool:
        """Whether a run cannot be right as it is."""
        piece = run[0]
        if len(decoded) > 1 or len(piece) == 4:
            return True
        if not _EXPECTED.match(decoded) or (len(piece) == 2 and piece[0] not in self._first):
            return False
        if _is_strange(piece) or len(piece) == 3:
            return _is_strange(piece)
        before, after = _before(text, run), text[run.end() : run.end() + 1]
        if (after.isascii() and after.isalpha()) or (before.isascii() and before.islower()):
            return True
        if piece[1].isalpha():  # such as "ГЁ": two Cyrillic letters that are not a word
            return decoded <= "\xff" and not (before.isalpha() or after.isalpha())
        return piece[0] in self._sure and (decoded < "\xc0" or not (before.isupper() or before in _OPENING))


def _is_strange(piece: str) -> bool:
    """Whether a sign that never follows a letter follows the first character of a piece."""
    return any(sign not in _FOLLOWING for sign in piece[1:])


def _before(text: str, found: re.Match[str]) -> str:
    """The character before a match, or nothing."""
    return text[max(found.start() - 1, 0) : found.start()]


_MISREAD = (
    _Misread("cp1252", "ÂÃÄÅÎÏÐÑ", "ÂÃ"),
    _Misread("cp1251", "ВГДЕРС"),
    _Misread("mac-roman", "¬√ƒ≈", "¬√"),
    _Misread("cp437", "┬├┼", "┬├"),
    _Misread("cp850", "┬├┼", "┬├"),
)


def mend(text: str) -> str:
    """A text whose broken pieces are mended; text that is right stays.

    Mended are UTF-8 read as Windows-1252, Latin-1, Windows-1251, Mac OS Roman or the code pages 437 and 850, also
    several times; Cyrillic in Windows-1251 or KOI8-R and Japanese in Shift_JIS or EUC-JP read as Latin-1; Latin-1 read
    as Windows-1251; and UTF-8 read as Shift_JIS.
    """
    if text.isascii():
        return text
    text = _with_cyrillic(_with_japanese(text))
    mended = False
    for _ in range(_MOST_ROUNDS):
        # Signs of one encoding may be those of another: the one that explains most of the text comes first.
        pieces = max((misread.pieces(text) for misread in _MISREAD), key=_length)
        if not pieces:
            break
        parts, last = list[str](), 0
        for (start, end), decoded in sorted(pieces.items()):
            parts += [text[last:start], decoded]
            last = end
        text = "".join([*parts, text[last:]])
        mended = True
    text = _A_GRAVE.sub("à", _ALONE.sub("à", text) if mended else text)
    return _with_western(_SPACE.sub("", text)).translate(_SIGNS)


def _length(pieces: Iterable[tuple[int, int]]) -> int:
    """The number of characters of all pieces."""
    return sum(end - start for start, end in pieces)


def _with_japanese(text: str) -> str:
    """A text whose Japanese was read as Latin-1, or as Shift_JIS instead of UTF-8."""
    with suppress(UnicodeError):
        read = text.translate(_BYTES).encode("latin-1")
        if (codec := old_encoding(read)) in JAPANESE:
            return read.decode(codec)
    return _UNKNOWN_RUN.sub(_as_utf8, text) if _AS_SHIFT_JIS.search(text) else text


def _as_utf8(run: re.Match[str]) -> str:
    """A run of characters as UTF-8 that was read as Shift_JIS, or as it is; bytes may have been lost."""
    try:
        return run[0].encode("cp932").decode(errors="ignore" if _AS_SHIFT_JIS.search(run[0]) else "strict")
    except UnicodeError:
        return run[0]


def _with_cyrillic(text: str) -> str:
    """A text whose Cyrillic words were read as Latin-1."""
    codec = old_encoding(" ".join(_WORD.findall(text)).encode("cp1252"))
    return _WORD.sub(lambda word: word[0].encode("cp1252").decode(codec), text) if codec in CYRILLIC else text


def _with_western(text: str) -> str:
    """A text whose accented letters were read as Windows-1251, as in "fьr"."""
    if _CYRILLIC_WORD.search(text) or _ALIKE.issuperset(_LETTER.findall(text)):
        return text
    return _LETTER.sub(lambda letter: letter[0].encode("cp1251").decode("cp1252"), text)
