"""The pages, the code on them, and their tables."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
ROOMS = ("runtime", "train", "export", "bench", "apps")
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in sorted(chain(ROOT.glob("*.md"), *((ROOT / folder).rglob("*.md") for folder in ("docs", *ROOMS))))
    if (ROOT / "bench/notes/folder") not in page.parents  # made notes, which are data
]


class Block(NamedTuple):
    """A piece of code on a page."""

    place: str  # page and line
    kind: str  # its language; "indented" for a block without, "inline" within the text
    text: str

    @property
    def name(self) -> str:
        """One that a file can have."""
        return f"line-{self.place.rpartition(':')[2]}"

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Commands, and what the page shows of their output: of a `console`, lines after "$ " and "> " are commands."""
        if self.kind != "console":
            return [(self.text, "")]
        found = re.findall(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", self.text, re.MULTILINE)
        return [(command.replace("\n> ", "\n"), output) for command, output in found]

    @property
    def code(self) -> str:
        """Its commands, without what they print."""
        return "".join(command for command, _ in self.steps)


_TOLERANCE = 0.02  # of a number with decimals, or two of its last digit: CPUs round differently
_MARKS = re.compile(r"(?P<lines>^…\n)|(?P<any>…)|(?P<number>\d+\.\d+)|(?P<end>\s*\n)|(?P<space> +)", re.MULTILINE)
_PATTERNS = {"lines": r"(?:.*\n)*?", "any": ".*", "number": r"(\d+\.\d+)", "end": r"\s*\n", "space": " +"}


def is_shown(shown: str, printed: str) -> bool:
    """Whether a page shows what is printed.

    "…" stands for any text within a line, or for any lines. Numbers with decimals may differ a little, all others
    not: they count something. Several spaces are compared as one.
    """
    pattern, end = "", 0
    for mark in _MARKS.finditer(shown):
        pattern += re.escape(shown[end : mark.start()]) + _PATTERNS[mark.lastgroup or ""]
        end = mark.end()
    found = re.fullmatch(pattern + re.escape(shown[end:]), printed)
    numbers = [mark["number"] for mark in _MARKS.finditer(shown) if mark["number"]]
    return found is not None and all(map(_near, numbers, found.groups()))


def _near(shown: str, printed: str) -> bool:
    last = 10.0 ** -len(shown.partition(".")[2])
    return abs(float(printed) - float(shown)) <= max(2.001 * last, _TOLERANCE * float(shown))


def blocks(page: str, *kinds: str) -> Iterator[Block]:
    """The code of a page, in order; all of it, or that of some kinds."""
    for token in MarkdownIt().enable("table").parse((ROOT / page).read_text(encoding="utf-8")):
        place = f"{page}:{token.map[0] + 1 if token.map else 0}"
        found = [Block(place, "inline", child.content) for child in token.children or () if child.type == "code_inline"]
        if token.type in ("fence", "code_block"):
            found = [Block(place, (token.info.split() or ["indented"])[0], token.content)]
        yield from (block for block in found if not kinds or block.kind in kinds)


def table(page: str, heading: str) -> list[list[str]]:
    """Cells of the rows of all tables below a heading, without their first rows."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in section.splitlines() if line.startswith("|")]
    lines = [place for place, cells in enumerate(rows) if not "".join(cells).strip("-: ")]  # under the first rows
    return [cells for place, cells in enumerate(rows) if not {place, place + 1} & {*lines}]
