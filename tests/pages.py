"""The pages, the code on them, and their tables."""

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
