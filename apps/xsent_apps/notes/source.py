"""What a reader makes of a file."""

from collections.abc import Iterable
from typing import NamedTuple


class Source(NamedTuple):
    """A file as lines of Markdown."""

    lines: Iterable[tuple[int, str]]  # numbers, from 1, and texts
    about: list[str]  # names of the whole, such as its title
