"""Reads reStructuredText as lines of Markdown."""

import re
from collections.abc import Iterator
from itertools import pairwise
from unicodedata import east_asian_width

from xsent.files.hyphens import Hyphens
from xsent_apps.notes.furigana import without_furigana
from xsent_apps.notes.passages import as_text
from xsent_apps.notes.source import Source

_LINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")  # above or below a heading
_MARKUP = re.compile(r"[ \t]*\.\.(?:[ \t]+(?P<text>.*))?$")  # a directive, a target or a comment
_DIRECTIVE = re.compile(r"(?:\|[^|]*\|[ \t]+)?([\w:+.-]+)::(?:[ \t]+(.*))?$")
_FOOTNOTE = re.compile(r"\[[\w#*.-]+\][ \t]+(.*)")
_OPTION = re.compile(r"[ \t]*:[\w-]+:(?:[ \t]|$)")
_FIELD = re.compile(r":[^:\s`][^:`]*:(?:[ \t]+(.*))?$")  # at the top of a file: its author, its date
_SHOWN_FIELD = re.compile(":(?:abstract|dedication):", re.IGNORECASE)
_ALT = re.compile(r"[ \t]*:alt:[ \t]+(.*)")
_ROLE = re.compile(
    r":[\w:+.-]{1,40}:`([^`<>]+?)(?:\s*<[^<>`]*>)?`|(?<!`)`([^`<>]+?)\s*<[^<>`]*>`__?|(?<!`)`([^`<>]+)`__?(?!\w)"
    r"|(?<!\w)\|(\w(?:[\w -]{0,60}\w)?)\|_*+(?!\w)"
    r"|(?<![\w`])([^\W_](?:[\w-]*[^\W_])?)_(?![\w`])|[ ]?\[[\w#*.-]{1,40}\]_(?!\w)"
)
_MARKED = re.compile(  # code, emphasis, and signs that are none of it
    r"``([^`\n]+)``|\\([*`_\\])|(?<![\w*`])(\*{1,2})(?![\s*])([^*\n]{0,200}?[^\s*\\])\3(?![\w*])"
)
_CODE = frozenset("code code-block sourcecode parsed-literal math prompt doctest testcode ipython".split())
_PICTURES = frozenset("image figure".split())
# Directives whose argument and content are text.
_TEXT = frozenset(
    "admonition attention caution danger error hint important note tip warning topic sidebar rubric epigraph "
    "highlights pull-quote compound container versionadded versionchanged deprecated seealso glossary table list-table "
    "csv-table centered hlist only class tab-set tab-item tabs tab group-tab dropdown details collapse card grid "
    "grid-item grid-item-card function method attribute data exception option envvar confval describe".split()
)
_CELL = re.compile(r"([ \t]*(?:\*[ \t]+)?)-(?:[ \t]+(.*))?$")  # of a list-table; a star begins a row
_BORDER = re.compile(r"[ \t]*-{2,}(?:[ \t]+-{2,})+[ \t]*$")  # between the rows of a table
_GRID = re.compile(r"[ \t]*\+(?:[-=]{2,}\+)+[ \t]*$")  # above and below the rows of a table with lines around its cells
_GRID_PART = re.compile(r"[ \t]*[|+][ \t|+=-]*$")  # where some cells continue
_COLUMNS = re.compile(r"([ \t]*)={2,}(?:[ \t]+={2,})+[ \t]*$")  # above, below its head and below
_COLUMN = re.compile("=+")
_FENCE = "~" * 40  # longer than any in the code


def read_rst(text: str) -> Source:
    """A text without comments and settings, with headings and code as in Markdown."""
    return Source(list(_File(without_furigana(text).expandtabs().split("\n")).shown()), [])


class _File:
    """The lines of a file, read one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._hyphens = Hyphens("\n".join(lines))
        self._place = 0  # of the next line
        self._styles: list[str] = []  # of headings, by level

    def shown(self) -> Iterator[tuple[int, str]]:
        """The visible lines in Markdown."""
        literal = False  # a paragraph that ended in "::" announces code
        is_top = True  # above the first text
        while self._place < len(self._lines):
            line = self._lines[self._place]
            self._place += 1
            if literal and line[:1] == " ":
                self._place -= 1
                yield from self._code(self._place)
                literal = False
            elif markup := _MARKUP.match(line):
                yield from self._markup(markup["text"] or "", _indent(line))
            elif (style := self._heading(line)) is not None:
                yield from style
            elif (rows := self._table(line)) is not None:
                yield from rows
            elif is_top and (field := _FIELD.match(line)):
                if _SHOWN_FIELD.match(line):
                    yield self._place, _inline(field[1] or "")
                else:
                    self._skip(0)
            else:
                is_top = is_top and not line.strip()
                literal = line.rstrip().endswith("::") or (literal and not line.strip())
                yield self._place, as_text(_inline(line.rstrip()[:-1] if literal and line.strip() else line))

    def _heading(self, line: str) -> Iterator[tuple[int, str]] | None:
        """A heading that begins on this line, with a line of signs below it, and perhaps above."""
        above = _LINE.match(line)
        title = self._at(self._place) if above else line
        below = _LINE.match(self._at(self._place + (1 if above else 0)))
        if not (below and title.strip() and (not above or above[1] == below[1]) and not _LINE.match(title)):
            return None
        if not above and title[:1] == " ":
            return None
        style = below[1] * (2 if above else 1)
        if style not in self._styles:
            self._styles.append(style)
        number = self._place + (1 if above else 0)
        self._place = number + 1
        level = min(self._styles.index(style) + 1, 6)
        return iter([(number, f"{'#' * level} {_inline(title.strip())}")])

    def _markup(self, text: str, indent: int) -> Iterator[tuple[int, str]]:
        """What a directive or a footnote shows; all else that begins with two dots is hidden."""
        first = self._place
        if footnote := _FOOTNOTE.match(text):
            yield first, _inline(footnote[1])
            return
        directive = _DIRECTIVE.match(text)
        name, argument = (directive[1].lower(), directive[2] or "") if directive else ("", "")
        while _OPTION.match(self._at(self._place)) and _indent(self._at(self._place)) > indent:
            self._place += 1
        options = self._lines[first : self._place]
        if name in _CODE:
            yield from self._code(self._place)
        elif name in _PICTURES:
            yield from ((first, alt[1]) for alt in map(_ALT.match, options) if alt)
            yield self._place, ""
        elif name in _TEXT or ":" in name:  # as py:function; its content follows as text
            yield first, _inline(argument) if name not in ("only", "class", "container", "grid") else ""
            yield self._place, ""
            if name == "list-table":
                yield from self._list_table(indent, any(":header-rows:" in option for option in options))
        else:
            self._skip(indent)

    def _list_table(self, indent: int, has_header: bool) -> Iterator[tuple[int, str]]:
        """The rows of a table that is a list of lists."""
        first = self._place
        column = 0  # where the dash of a cell is
        self._skip(indent)
        rows = list[tuple[int, list[list[str]]]]()  # the lines of each cell
        for number, line in enumerate(self._lines[first : self._place], first + 1):
            cell = _CELL.match(line)
            if cell and "*" in cell[1] and (not rows or len(cell[1]) == column):
                column = len(cell[1])
                rows.append((number, []))
            if cell and len(cell[1]) == column:  # deeper ones are lists in a cell
                rows[-1][1].append([cell[2] or ""])
            elif rows:
                rows[-1][1][-1].append(line)
        for place, (number, cells) in enumerate(rows):
            yield number, self._row(cells)
            if has_header and place == 0:
                yield number, "|---|"

    def _table(self, line: str) -> Iterator[tuple[int, str]] | None:
        """The rows of a table that begins on this line; a line between rows is empty."""
        if columns := _COLUMNS.match(line):
            return self._columns([found.start() for found in _COLUMN.finditer(line)], columns[1])
        if _GRID.match(line):
            return self._grid()
        return iter([(self._place, "")]) if _BORDER.match(line) else None

    def _columns(self, starts: list[int], indent: str) -> Iterator[tuple[int, str]]:
        """The rows of a table without lines between its columns, which begin at these places."""
        rows = list[tuple[int, str]]()
        borders = list[int]()  # the number of rows above each
        first = self._place
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if _COLUMNS.match(line):
                borders.append(len(rows))
                if not self._at(self._place + 1).strip():
                    break
            elif not line.startswith(indent):
                break
            elif line.strip() and not _BORDER.match(line):
                # A Chinese or Japanese character takes two columns.
                wide = "".join(f"{each}\0" if east_asian_width(each) in "WF" else each for each in line)
                parts = (wide[start:end].replace("\0", "") for start, end in pairwise([*starts, None]))
                cells = (part.strip().replace("|", "\\|") for part in parts)
                rows.append((self._place + 1, f"| {' | '.join(map(_inline, cells))} |"))
            self._place += 1
        if not borders:  # it has no end
            self._place = first
            return
        self._place += 1
        yield first, ""
        for number, row in enumerate(rows, 1):
            yield row
            if number == borders[0] and borders[1:]:
                yield row[0], "|---|"

    def _grid(self) -> Iterator[tuple[int, str]]:
        """The rows of a table with lines around its cells; the lines of a cell are joined."""
        yield self._place, ""
        row, first = list[list[str]](), self._place  # the lines of each cell
        while (line := self._at(self._place).strip())[:1] in ("|", "+"):
            self._place += 1
            cells = line.strip("|").split("|")
            if row and (_GRID_PART.match(line) or len(cells) != len(row)):
                yield first, self._row(row)
                row = []
            if _GRID.match(line):
                yield from [(self._place, "|---|")] * ("=" in line)
            elif not _GRID_PART.match(line):
                first = first if row else self._place
                row = row or [[] for _ in cells]
                for lines, cell in zip(row, cells, strict=True):
                    lines.append(cell)
        if row:
            yield first, self._row(row)

    def _row(self, cells: list[list[str]]) -> str:
        joined = (" ".join(line for _, line in self._hyphens.rejoined(enumerate(lines))) for lines in cells)
        return f"| {' | '.join(_inline(' '.join(cell.split())) for cell in joined)} |"

    def _code(self, first: int) -> Iterator[tuple[int, str]]:
        """The indented lines from here on as code."""
        self._skip(0)
        yield first, _FENCE
        yield from enumerate(self._lines[first : self._place], first + 1)
        yield self._place, _FENCE

    def _skip(self, indent: int) -> None:
        """Move behind the lines that are indented further, and empty ones."""
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if line.strip() and _indent(line) <= indent:
                return
            self._place += 1

    def _at(self, place: int) -> str:
        return self._lines[place] if place < len(self._lines) else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inline(text: str) -> str:
    """A text whose links show their label, without the marks of emphasis, and with those of Markdown around code."""
    text = _ROLE.sub(lambda found: "".join(filter(None, found.groups())), text)
    return _MARKED.sub(lambda found: f"`{found[1]}`" if found[1] else found[2] or found[4], text)
