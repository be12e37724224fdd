"""The result of reading a file, and helpers for readers."""

from collections.abc import Iterable, Sequence
from gzip import GzipFile
from pathlib import Path
from typing import IO, NamedTuple

from xsent import DataError

MOST_BYTES = 30_000_000  # most bytes of an unpacked text: some thousand pages


class Source(NamedTuple):
    """A file as lines of Markdown."""

    lines: Iterable[tuple[int, str]]  # numbers, from 1, and texts
    about: list[str]  # names of the whole file, such as its title
    lost: Sequence[str] = ()  # parts that cannot be read, and why


class Remarks:
    """What readers say about files that they have read."""

    def __init__(self) -> None:
        self.guessed = dict[str, list[Path]]()  # texts whose encoding is a guess, by encoding
        self.lost = dict[Path, list[str]]()  # what of a file could not be read, and why

    def add(self, path: Path, guessed: str, lost: Sequence[str]) -> None:
        """Note what was guessed and lost in a file."""
        if guessed:
            self.guessed.setdefault(guessed, []).append(path)
        if lost:
            self.lost[path] = [*lost]


def read_unpacked(file: IO[bytes] | GzipFile, name: str) -> bytes:
    """Read a compressed file. Raises DataError if it is too large, such as a zip bomb."""
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"its {name} has over {MOST_BYTES:,} bytes; save the text in parts")
    return content
