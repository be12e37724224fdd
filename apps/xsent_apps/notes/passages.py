"""Turns lines of text or Markdown into passages with their headings."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, pairwise, zip_longest
from typing import Literal, NamedTuple

from xsent import split_sentences
from xsent.files.hyphens import Hyphens
from xsent.words import display_width
from xsent_apps.notes.chat import begins_message

Lines = Iterable[tuple[int, str]]  # numbers, from 1, and texts

PASSAGE_LENGTH = 500  # characters, or half as many in Japanese; a longer passage is cut between two sentences
JOINED_LENGTH = 200  # the same; short neighbours are joined up to this length (docs/contributing/findings.md)
NAME_LENGTH = 200  # characters; a longer heading, title or name of a column is cut between two words
CONTEXT_LENGTH = 1000  # characters; every passage has its context, so a long one would be repeated many times
ABOVE = " › "  # between the parts of a context

_RULES = ("en", "de", "es", "fr", "ru")  # a sentence ends where the rules of all these languages agree
# Control characters for terminals, and lone surrogates. Those from 80 to 9F are also pieces of letters, in a text that
# was decoded with the wrong encoding; `--clean` mends it.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# Where a word may be cut at the end of a line, or not.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200e\u202a\u202c\u2060\ufeff"))
_SEPARATOR = re.compile("[\u2028\u2029]")  # of lines and paragraphs, in notes of Apple
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_HEADING_END = re.compile(r"(^|\s)#+$")
_UNDERLINE = re.compile(r"(={3,}|-{3,})\s*$")  # below a heading
_DRAWN = 8  # signs in a line that is drawn: below a heading that is at most twice as long, or between two texts
# In Japanese texts, if the next line is text and not another one, as in a list.
_JAPANESE_HEADING = re.compile(r"\s*([■□◆◇●▼▽【])(?=.*[ぁ-ヿ一-鿿])[^。、：:…■□◆◇●▼▽━]{2,25}[：:]?\s*$")
_ITEM = re.compile(r"^\s*([-*+•·▪‣◦☐☑☒]|\d{1,3}[.)])\s")
_LINE = re.compile(r"[ \t]?(?:[─-╿]{3,}|([-–—=~_*#－＝～＿])\1{4,})[ \t]?")  # drawn between words, or to write on
_BOX = re.compile(r"^(\s*\S+)\s+(?:\[(?:[xX]|[^\w\[\]])\]|[☐☑☒])(?=\s|$)")  # of a task, after the mark of its item
# A list may begin on the line of a fence. A single line with both ends, such as ```ls```, does not open one.
_FENCE = re.compile(r"[\s>]*+((?:[-*+]|\d{1,9}[.)])\s++)?(`{3,}+(?=[^`]*+$)|~{3,}+)(.*)")
_COMMAND = re.compile(r"\s*`[^`]+`\s*$")  # the only line of its paragraph
_ROW = re.compile(r"\s*\|.*\|\s*$")
_CELL = re.compile(r"(?<!\\)\|")
_UNDER_HEADER = re.compile(r"[\s|:-]+$")
_QUOTE = re.compile(r"^\s*(?:>\s?)++")  # possessive: takes no memory
_LETTER = re.compile(r"\w")
_LEAD_LENGTH = 200  # characters; a longer paragraph that ends in a colon is more than a lead-in

_MARKDOWN = re.compile(r"(?=#{1,6}\s|={3}|-{3})")

PAGE_END = "\f"  # a line that ends a passage

_Kind = Literal["text", "heading", "item", "row", "code", "end"]
_Mark = _Kind | Literal["", "header", "underline"]  # kind of a line; "" only separates others


class Passage(NamedTuple):
    """A piece of a file that a search returns as a whole."""

    line: int  # first line, or page
    text: str  # one line, or a line for each message of a chat
    context: str  # its topic: names of the file, headings and lead-in above it


class _Block(NamedTuple):
    """Lines that belong together."""

    kind: _Kind
    level: int  # of a heading
    lines: list[tuple[int, str]]

    @property
    def text(self) -> str:
        return " ".join(line.strip() for _, line in self.lines)

    def rejoined(self, hyphens: Hyphens) -> "_Block":
        """The block without words that are cut at the end of a line."""
        return self._replace(lines=hyphens.rejoined(self.lines)) if self.kind in ("text", "item") else self


class _Outline:
    """The headings and lead-in above a block."""

    def __init__(self, about: Iterable[str]) -> None:
        names = list[str]()
        length = 0
        for name in filter(None, about):
            names.append(_shortened(_CONTROL.sub(" ", name).translate(_UNSEEN), NAME_LENGTH))
            length += len(names[-1])
            if length > CONTEXT_LENGTH:
                break
        self._names = ", ".join(names)  # of the whole file
        self._known = {name.casefold() for name in names}
        self._headings = dict[int, str]()  # by level
        self._lead = ""
        self._context: str | None = None  # None after a change

    def enter(self, level: int, text: str) -> None:
        """Replace the headings of this level and below by a new one."""
        self._headings = {upper: heading for upper, heading in self._headings.items() if upper < level}
        self._headings[level] = _shortened(text.translate(_UNSEEN), NAME_LENGTH)
        self._lead = ""
        self._context = None

    def lead(self, text: str) -> None:
        """Set the lead-in below the headings; an empty text removes it."""
        if text != self._lead:
            self._lead = text.translate(_UNSEEN)
            self._context = None

    @property
    def context(self) -> str:
        """The names of the file, then the headings and the lead-in, without repetitions."""
        if self._context is None:
            path = {"": self._names}  # by lower-case form
            for name in (*self._headings.values(), self._lead.rstrip(":： ")):
                if (small := name.casefold()) not in self._known:
                    path.setdefault(small, name)
            self._context = _shortened(ABOVE.join(filter(None, path.values())), CONTEXT_LENGTH)
        return self._context


def passages(lines: Lines, about: Iterable[str] = ()) -> Iterator[Passage]:
    """Passages of the lines of a file; `about` are names of the whole file, such as its title.

    Headings, names and contexts have at most `NAME_LENGTH` and `CONTEXT_LENGTH` characters.
    """
    lines = [(number, part) for number, line in lines for part in _SEPARATOR.split(line)]
    hyphens = Hyphens("\n".join(line for _, line in lines))
    blocks = (block.rejoined(hyphens) for block in _blocks(lines))
    for (context, _), group in groupby(_placed(blocks, _Outline(about)), key=lambda place: place[:2]):
        for joined in _joined(block for _, _, block in group):
            yield from (Passage(line, text.translate(_UNSEEN), context) for line, text in _cut(joined))


def _placed(blocks: Iterator[_Block], outline: _Outline) -> Iterator[tuple[str, int, _Block]]:
    """The blocks of text, each with its context and the number of its section or page."""
    first = list[_Block]()
    only_headings = True  # whether the file has no other text
    for each in blocks:
        first.append(each)
        if each.kind not in ("heading", "end"):
            only_headings = False
            break
    section = 0
    for block, follower in pairwise(chain[_Block | None](first, blocks, [None])):
        assert block is not None
        if block.kind == "end":
            section += 1
        elif block.kind == "heading" and not only_headings:
            outline.enter(block.level, block.text)
            section += 1
            if len(block.text) > NAME_LENGTH:  # so that the rest of it is found, too
                yield outline.context, section, block
        elif _leads(block, follower):
            outline.lead(_ITEM.sub("", block.text, count=1))
        else:
            yield outline.context, section, block
            if block.kind == "text" or (follower and follower.kind != block.kind):
                outline.lead("")


def _shortened(text: str, length: int) -> str:
    """A text truncated to a length, between two words."""
    return text if len(text) <= length else f"{text[:length].rpartition(' ')[0] or text[: length - 1]}…"


def as_text(line: str) -> str:
    """A line that is not Markdown: a leading space keeps it from being read as a heading or a line below one."""
    return _MARKDOWN.sub(" ", line, count=1) if _MARKDOWN.match(line) else line


def headings_of(context: str) -> str:
    """The headings and the lead-in of a context, without the names of the file before them."""
    return context.partition(ABOVE)[2]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text in an unknown language, and the short messages of a chat.

    A sentence of over 4,000 characters, such as base64, is cut.
    """
    messages = text.split("\n")
    is_short = [len(messages) > 1 and len(message) <= JOINED_LENGTH for message in messages]
    sentences = (
        [one] if whole else split_sentences(one, *_RULES) for one, whole in zip(messages, is_short, strict=True)
    )
    return [*chain.from_iterable(sentences)]


def _leads(block: _Block, follower: _Block | None) -> bool:
    """Whether a block only announces the one that follows, as "You need:" does."""
    text = block.text.rstrip("*_ ")
    return (
        follower is not None
        and follower.kind not in ("heading", "end")
        and block.kind in ("text", "item")
        and text.endswith((":", "："))
        and len(text) <= _LEAD_LENGTH
        and not begins_message(block.lines[0][1])
    )


def _joined(blocks: Iterable[_Block]) -> Iterator[list[tuple[int, str]]]:
    """Join the lines of short neighbours below the same heading; a command stays with its description."""
    joined: list[tuple[int, str]] = []
    kind = ""
    length = 0
    for block in blocks:
        more = display_width(block.text) + 1
        belongs = block.kind == "code" or (block.kind == "item" and block.lines[0][1][0].isspace())
        is_full = length + more > JOINED_LENGTH and not belongs
        if joined and (is_full or "row" in (kind, block.kind)):
            yield joined
            joined = []
            length = 0
        joined += block.lines
        kind = block.kind
        length += more
    if joined:
        yield joined


def _cut(lines: Lines) -> Iterator[tuple[int, str]]:
    """Cut lines into one passage, or several if they are long."""
    passage = ""
    first = 0
    for number, line in lines:
        fits = display_width(passage) + display_width(line) <= PASSAGE_LENGTH
        for sentence in [line] if fits else sentences_of(line):
            if passage and display_width(passage) + display_width(sentence) > PASSAGE_LENGTH:
                yield first, passage
                passage = ""
            first = first if passage else number
            between = "\n" if sentence is line and begins_message(line) else " "
            passage = f"{passage}{between}{sentence.strip()}".strip()
    if _LETTER.search(passage):
        yield first, passage


def _blocks(lines: Lines) -> Iterator[_Block]:
    """The paragraphs, headings, items of lists, rows of tables and pieces of code of a text."""
    block = _Block("text", 0, [])
    names: list[str] = []  # names of a table's columns
    for mark, level, number, line in _marked(lines):
        if mark == "underline":
            is_drawn = len(line.strip()) >= _DRAWN
            fits = not is_drawn or len(block.text) <= 2 * len(line.strip())
            if block.kind == "text" and len(block.lines) == 1 and fits:
                yield _Block("heading", level, block.lines)
            else:
                yield from [block] * bool(block.lines)
                yield from [_Block("end", 0, [])] * is_drawn
            block = _Block("text", 0, [])
            continue
        continues = mark == block.kind in ("text", "code") or (mark, block.kind) == ("text", "item")
        continues = continues and not (mark == "text" and begins_message(line))
        if block.lines and not continues:
            yield block
            block = _Block("text", 0, [])
        if mark == "header":
            names = [_shortened(name, NAME_LENGTH) for name in _cells(line)]
        elif mark == "row":
            block = _Block("row", 0, [(number, _row(_cells(line), names))])
        elif mark:
            block = block if block.lines else _Block(mark, level, [])
            block.lines.append((number, line))
        names = names if mark in ("header", "row") else []
    if block.lines:
        yield block


def _marked(lines: Lines) -> Iterator[tuple[_Mark, int, int, str]]:
    """The kind of each line, the level of a heading, and the line's number and text."""
    fence = ""  # the one that is open
    for (number, raw), (_, following) in pairwise(chain(lines, [(0, "")])):
        line = _CONTROL.sub(" ", raw)
        if raw == PAGE_END:
            yield "end", 0, number, ""
        elif (changed := _fence(line, fence)) is not None:
            fence = changed
            yield "", 0, number, ""
        elif fence and line.strip():
            yield "code", 0, number, line
        elif mark := _mark(line, following):
            yield mark[0], mark[1], number, mark[2]


def _fence(line: str, fence: str) -> str | None:
    """The fence that is open after a line that opens or closes one; None for other lines."""
    found = _FENCE.match(line)
    if found is None:
        return None
    if not fence:
        return found[2]
    return None if found[1] or found[3].strip() or not found[2].startswith(fence) else ""


def _mark(line: str, following: str) -> tuple[_Mark, int, str] | None:
    """The kind, level and text of a line; None for the line below a table's header."""
    if heading := _HEADING.match(line):
        text = _HEADING_END.sub("", heading[2].rstrip()).rstrip()
        return "heading" if text else "", len(heading[1]), text
    if (japanese := _JAPANESE_HEADING.match(line)) and following.lstrip()[:1] not in ("", japanese[1]):
        return "heading", 6, line.strip(" \u3000\t■□◆◇●▼▽：:")
    if underline := _UNDERLINE.match(line):
        return "underline", 1 if underline[1][0] == "=" else 2, line
    if _ROW.match(line) and _UNDER_HEADER.match(line):
        return None
    line = _LINE.sub(" ", line)
    if _ROW.match(line):
        return "header" if _ROW.match(following) and _UNDER_HEADER.match(following) else "row", 0, line
    if not line.strip() or _is_rule(line):
        return "", 0, ""
    line = _QUOTE.sub("", line)
    if _ITEM.match(line):
        return "item", 0, _BOX.sub(r"\1", line)
    return "code" if _COMMAND.match(line) else "text", 0, line


def _is_rule(line: str) -> bool:
    """Whether a line is only a separator, like `* * *` and `◆◇◆◇`: one or two signs, repeated."""
    signs = "".join(line.split())
    return len(signs) >= 3 and len({*signs}) < 3 and not any(map(str.isalnum, signs))


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(row.strip().strip("|"))]


def _row(cells: list[str], names: list[str]) -> str:
    """The cells of a row, separated, each with the name of its column."""
    named = zip_longest(cells, names[: len(cells)], fillvalue="")
    return " · ".join(f"{name}: {cell}" if name else cell for cell, name in named if cell)
