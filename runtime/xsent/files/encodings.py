"""Encodings of texts that are not UTF-8: UTF-16 and UTF-32 by their first bytes, and cp1252 by what it looks like."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from itertools import islice

_MARKS = {BOM_UTF32_LE: "utf-32", BOM_UTF32_BE: "utf-32", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}

_ACCENTED = "À-ÖØ-öø-ÿŠŒŽšœžŸ"
# Signs that a text read as cp1252 is in another encoding: control characters, four accented letters in a row, or
# symbols within words.
_STRANGE = re.compile(
    rf"[\x00-\x08\x0e-\x1f\x7f]|[{_ACCENTED}]{{4}}|"
    rf"(?<=[A-Za-z{_ACCENTED}])[¡-§©ª¬®¯±-¶¸-º¼-¿‚ƒ„†‡ˆ‰‹›˜™](?=[A-Za-z{_ACCENTED}])"
)
_PER_STRANGE = 500  # fewest characters per strange one


def wide_encoding(start: bytes) -> str | None:
    """UTF-16 or UTF-32 if the first four bytes of a text show it: a byte-order mark, or two ASCII characters."""
    for mark, name in _MARKS.items():
        if start.startswith(mark):
            return name
    zeros = "".join("0" if byte == 0 else "x" for byte in start[:4])
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros)


def as_western(content: bytes) -> str | None:
    """A text in cp1252 (which includes latin-1), as in old files and Excel's; None if it is Unicode or not text."""
    try:
        content.decode()
        return None
    except UnicodeDecodeError:
        if wide_encoding(content[:4]):
            return None
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return None
    too_many = islice(_STRANGE.finditer(text), len(text) // _PER_STRANGE, None)
    return text if next(too_many, None) is None else None
