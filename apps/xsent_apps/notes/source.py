"""The result of reading a file, and helpers for readers."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from gzip import GzipFile
from itertools import islice
from typing import IO, NamedTuple

from xsent import DataError

MOST_BYTES = 30_000_000  # most bytes of an unpacked text: some thousand pages
_ACCENTED = "À-ÖØ-öø-ÿŠŒŽšœžŸ"
# Signs that a text read as cp1252 is in another encoding: control characters, four accented letters in a row, or
# symbols within words.
_STRANGE = re.compile(
    rf"[\x00-\x08\x0e-\x1f\x7f]|[{_ACCENTED}]{{4}}|"
    rf"(?<=[A-Za-z{_ACCENTED}])[¡-§©ª¬®¯±-¶¸-º¼-¿‚ƒ„†‡ˆ‰‹›˜™](?=[A-Za-z{_ACCENTED}])"
)
_PER_STRANGE = 500  # fewest characters per strange one


class Source(NamedTuple):
    """A file as lines of Markdown."""

    lines: Iterable[tuple[int, str]]  # numbers, from 1, and texts
    about: list[str]  # names of the whole file, such as its title


def as_western(content: bytes) -> str | None:
    """A text in cp1252 (which includes latin-1), as in old notes and mails; None if it is Unicode or not text."""
    try:
        content.decode()
        return None
    except UnicodeDecodeError:
        if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return None
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return None
    too_many = islice(_STRANGE.finditer(text), len(text) // _PER_STRANGE, None)
    return text if next(too_many, None) is None else None


def read_unpacked(file: IO[bytes] | GzipFile, name: str) -> bytes:
    """Read a compressed file. Raises DataError if it is too large, such as a zip bomb."""
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"its {name} has over {MOST_BYTES:,} bytes; save the text in parts")
    return content
