"""Reads Org files as lines of Markdown."""

import re
from collections.abc import Iterator

from xsent_apps.notes.furigana import without_furigana
from xsent_apps.notes.passages import as_text
from xsent_apps.notes.source import Source

_HEADING = re.compile(r"(\*+)[ \t]+(.*)")
_TAGS = re.compile(r"(?:^|[ \t]+):((?:[\w@#%]+:)+)[ \t]*$")
_COOKIE = re.compile(r"\[#[A-Z0-9]\][ \t]*|[ \t]*\[\d*(?:/\d*|%)\]")  # priority and progress
_COMMENTED = re.compile(r"(?:[A-Z]+[ \t]+)?COMMENT\b")
_KEYWORD = re.compile(r"[ \t]*#\+([\w-]+)(?:\[[^\]]*\])?:[ \t]*(.*)")
_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_(\S+)", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:([\w-]+):[ \t]*$")
_NAMES = re.compile(r"[ \t]*:ROAM_(?:ALIASES|TAGS):[ \t]+(.*)", re.IGNORECASE)
_NAME = re.compile(r"\"([^\"]*)\"|([^\s\":,]+)")  # in quotes if it has spaces
_LISTS = frozenset("filetags keywords hugo_tags roam_tags roam_alias".split())  # of names
_PLANNED = re.compile(r"(?:[ \t]*(?:SCHEDULED|DEADLINE|CLOSED|CLOCK):[ \t]*[<\[][\w :/.+<>\[\]=-]*)+$")
_CHANGED = re.compile(r"[ \t]*- (?:State \"|Rescheduled from \"|Refiled on \[|New deadline from \")")  # a log
_COMMENT = re.compile(r"[ \t]*#(?:\s|$)|%%\(")
_FIXED = re.compile(r"^[ \t]*: ")
_ESCAPE = re.compile(r"^([ \t]*),(?=\*|#\+|,)")  # in a block
_LINK = re.compile(r"\[\[([^\[\]]+)\](?:\[([^\[\]]+)\])?\]")
_NOTE = re.compile(r"\[fn:[\w-]*:\s*+([^\[\]]{1,500})\]")  # a footnote where its number would be
# The number of a footnote, a citation, a comment, the target of a link.
_UNSEEN = re.compile(r"\[fn:[\w-]+\]|[ \t]?\[cite(?:/[\w/-]+)?:[^\[\]\n]*\]|@@comment:[^@\n]*@@|<<<?[^<>\n]+>>>?[ \t]?")
_MARKED = re.compile(  # code, and emphasis
    r"(?:(?<=[\s({'\"|-])|^)"
    r"(?:([=~])(?!\s)((?:(?!\1)[^\n`]){1,200})(?<!\s)\1|([*/_+])(?!\s)((?:(?!\3)[^\n]){1,200})(?<!\s)\3)"
    r"(?=[\s)}'\"|.,;:!?\[-]|$)"
)
_TABLE_RULE = re.compile(r"[ \t]*\|(?:[-+| \t]|<[lcr]?\d*>)+$")  # or a row with the widths of columns

_MARKDOWN_HEADING = re.compile("#+(?= )")
_CODE = ("src", "example", "export")
_FENCE = "~" * 40  # longer than any in the code


def read_org(text: str) -> Source:
    """An Org file without drawers, planning and comments; its title, tags and aliases are its names."""
    file = _File(_NOTE.sub(r" (\1)", without_furigana(text)).split("\n"))
    return Source(_with_tasks(list(file.shown())), file.about)


class _File:
    """The lines of a file, read one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self.about: list[str] = []
        self._lines = lines
        self._place = 0  # of the next line
        self._hidden = 0  # level of the heading above a text that is a comment
        ends = ((place, _BLOCK.match(line)) for place, line in enumerate(lines))
        self._ends = {found[2].lower(): place for place, found in ends if found and found[1].lower() == "end"}

    def shown(self) -> Iterator[tuple[int, str]]:
        """The visible lines in Markdown."""
        while self._place < len(self._lines):
            line = self._lines[self._place]
            self._place += 1
            if heading := _HEADING.match(line):
                yield from self._heading(heading)
            elif self._hidden or self._drawer(line):
                continue
            elif block := _BLOCK.match(line):
                yield from self._block(block[2].lower())
            elif keyword := _KEYWORD.match(line):
                yield self._place, self._keyword(keyword[1].lower(), keyword[2].strip())
            elif _COMMENT.match(line) or _PLANNED.match(line) or _CHANGED.match(line):
                yield self._place, ""
            elif _TABLE_RULE.match(line):
                yield self._place, "|---|"
            else:
                yield self._place, as_text(_inline(_FIXED.sub("", line)))

    def _heading(self, heading: re.Match[str]) -> Iterator[tuple[int, str]]:
        level = len(heading[1])
        if self._hidden and level > self._hidden:
            return
        title = _COOKIE.sub("", heading[2])
        self._hidden = level if _COMMENTED.match(title) else 0
        if not self._hidden:
            tags = _TAGS.search(title)
            named = [title[: tags.start()], *tags[1].split(":")] if tags else [title]
            yield self._place, f"{'#' * min(level, 6)} {_inline(', '.join(filter(None, named))).strip()}"

    def _drawer(self, line: str) -> bool:
        """Skip a drawer that begins on this line, if one does; it ends before the next heading or drawer."""
        if not _DRAWER.match(line):
            return False
        for place in range(self._place, len(self._lines)):
            inner = self._lines[place]
            if (found := _DRAWER.match(inner)) and found[1].upper() == "END":
                for names in filter(None, map(_NAMES.match, self._lines[self._place : place])):
                    self.about += _listed(names[1])
                self._place = place + 1
                return True
            if found or _HEADING.match(inner):
                break
        return False

    def _block(self, kind: str) -> Iterator[tuple[int, str]]:
        """The content of a block that is code; all others are text between two marks."""
        if kind not in (*_CODE, "comment") or self._ends.get(kind, -1) < self._place:
            return
        first = self._place
        while not (
            (end := _BLOCK.match(self._lines[self._place])) and end[1].lower() == "end" and end[2].lower() == kind
        ):
            self._place += 1
        if kind != "comment":
            yield first, _FENCE
            code = self._lines[first : self._place]
            yield from ((number, _ESCAPE.sub(r"\1", line)) for number, line in enumerate(code, first + 1))
            yield self._place + 1, _FENCE
        self._place += 1

    def _keyword(self, key: str, value: str) -> str:
        """The text of a setting of the file; names, such as its title, are kept in `about` instead."""
        if key == "title":
            self.about.append(value)
        elif key in _LISTS:
            self.about += _listed(value)
        return value if key == "caption" else ""


def _listed(names: str) -> list[str]:
    return [quoted or word for quoted, word in _NAME.findall(names)]


def _inline(text: str) -> str:
    return _unmarked(_LINK.sub(lambda link: link[2] or link[1], _UNSEEN.sub("", text)))


def _unmarked(text: str) -> str:
    """A text without the marks of emphasis, and with those of Markdown around code."""
    return _MARKED.sub(lambda found: f"`{found[2]}`" if found[1] else _unmarked(found[4]), text)


def _with_tasks(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines of an outline; a heading with nothing below it, such as a task, is an item of a list."""
    following = 0  # level of the next heading; 7 if there is text before it
    tasks = set[int]()
    in_code = False
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place][1]
        in_code ^= line == _FENCE
        if in_code or line == _FENCE:
            following = 7
        elif heading := _MARKDOWN_HEADING.match(line):
            level = len(heading[0])
            if following <= level:
                tasks.add(place)
            following = level
        elif line.strip():
            following = 7
    yield from (
        (number, f"- {line.lstrip('# ')}" if place in tasks else line) for place, (number, line) in enumerate(lines)
    )
