"""What a reader makes of a file."""

from collections.abc import Iterable
from gzip import GzipFile
from typing import IO, NamedTuple

from xsent import DataError

_MOST_BYTES = 30_000_000  # of a text, unpacked: some thousand pages


class Source(NamedTuple):
    """A file as lines of Markdown."""

    lines: Iterable[tuple[int, str]]  # numbers, from 1, and texts
    about: list[str]  # names of the whole, such as its title


def read_unpacked(file: IO[bytes] | GzipFile, name: str) -> bytes:
    """Read a packed file. Raises DataError if it is large, as a bomb is."""
    content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise DataError(f"{name} in it has over {_MOST_BYTES:,} bytes; save the text in parts")
    return content
