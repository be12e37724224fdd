"""Reads files as passages, each with its line number, or page number in a PDF."""

import gzip
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xsent import DataError
from xsent.clean import ANSI, without_entities
from xsent.errors import MissingExtraError, in_one_line, require_extra
from xsent.files.encodings import declared_encoding, decoded
from xsent.files.hyphens import Hyphens
from xsent_apps.notes.chat import written_lines
from xsent_apps.notes.data import without_data
from xsent_apps.notes.front_matter import split_front_matter
from xsent_apps.notes.furigana import without_furigana, without_ruby_tags
from xsent_apps.notes.mail import is_mail, read_mail, read_mbox
from xsent_apps.notes.markdown import read_markdown
from xsent_apps.notes.org import read_org
from xsent_apps.notes.page import LONGEST_SPANNED, cell_span, read_page
from xsent_apps.notes.passages import PAGE_END, Passage, as_text, passages
from xsent_apps.notes.rst import read_rst
from xsent_apps.notes.source import MOST_BYTES, Remarks, Source, read_unpacked

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_CUE = re.compile(r"\s*[\d:]+[.,]\d+\s+-->")  # the time of a subtitle
_CUES = re.compile(r"\s*(?:WEBVTT\b[^\n]*\n[^>]{0,500}?|\d+\s*\n\s*)[\d:]+[.,]\d+\s+-->")  # subtitles begin with one
_CUE_TAG = re.compile(r"</?\w[^<>]*>|\{\\[^{}]*\}")
_VOICE = re.compile(r"<v(?:\.[\w.]++)?[ \t]++([^<>\s][^<>]*+)>")  # who says what follows
_SPEAKER = re.compile(r"[^\W\d_][\w.,'’() -]{0,40}: ")
_SENTENCE_END = re.compile(r"[.?!…][\"'»”’)]*[ \t]*$", re.MULTILINE)
_HEARD = re.compile(  # but not said: [Music], also on two lines, (door opens), ♪
    r"^[\s-]*(?:[(（][^()（）]*[^\W\d_][)）]|\[[^\[\]]*\])\s*$"
    r"|(?<!\w)\[[^\[\]\d]*(?:\]|$)\s*|^[^\[\]\d]*\]\s*|[♪♫]\s*"
)
# The first of the texts that a Kindle keeps: its book, where and when it was marked, and the text.
_CLIPPING = re.compile(r"\s*\S[^\n]*\n- [^\n|]+\|[^\n]+\n\n(?:[^\n]*\n){1,50}?={10}(?:\n|\Z)")
_TYPED_TWICE = re.compile(".\b")  # as a terminal prints bold letters and underlined ones: man pages
_BULLET = re.compile("^[\uf000-\uf0ff]", re.MULTILINE)  # a character of a symbol font
_DOTS = re.compile(r"(\s?\.){4}\s?$")  # all but the last of the dots that lead to a page number
_NOTION = re.compile(" [0-9a-f]{32}$")  # Notion exports a page with its number
_NO_TEXT = frozenset((".pdf", ".docx", ".odt", ".eml", ".mbox"))  # not text, or text in several encodings
_PAGES = (".html", ".htm", ".xhtml")
_EDGE = 3  # lines at the top and the bottom of a page, where its number and the title of the text are
_MOST_PAGES = 0.8  # a line is dropped if it is on at least this share of pages


# For .docx and .odt.
_MOST_TAGS = 2_000_000  # most tags of a text; a tag takes more memory than its bytes
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_PARAGRAPHS = (f"{_W}p", f"{_TEXT}p")
_TABLES = (f"{_W}tbl", f"{_TABLE}table")
_ROWS = (f"{_W}tr", f"{_TABLE}table-row")
_COVERED = f"{_TABLE}covered-table-cell"  # by the cell to its left or above
_CELLS = (f"{_W}tc", f"{_TABLE}table-cell", _COVERED)
_SPANNED, _MERGED = f"{_W}tcPr/{_W}gridSpan", f"{_W}tcPr/{_W}vMerge"  # columns and rows of a cell
_HEADING = f"{_TEXT}h"
_ITEM = f"{_TEXT}list-item"
_NUMBERED = f"{_W}pPr/{_W}numPr"  # in an item of a list
_WORDS = f"{_W}t"
_HYPHEN = f"{_W}noBreakHyphen"
_NOTES = {f"{_W}footnoteReference": "word/footnotes.xml", f"{_W}endnoteReference": "word/endnotes.xml"}
_SPACES = {f"{_W}tab", f"{_W}br", f"{_W}cr", f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"}
_UNSEEN = {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",  # repeats the preceding element
    *(f"{_W}delText", f"{_W}instrText", f"{_W}moveFrom", f"{_W}rt"),
    *(f"{_TEXT}tracked-changes", f"{_TEXT}note-citation", f"{_OFFICE}annotation", f"{_OFFICE}binary-data"),
    *(f"{_TEXT}ruby-text", f"{_TEXT}table-of-content", f"{_TEXT}hidden-text", f"{_TEXT}hidden-paragraph"),
}
_HEADING_STYLE = re.compile(r"heading (\d)$|title$|(toc )", re.IGNORECASE)
_CONTENTS = -1  # level of a line in a table of contents
_RUN = f"{_W}r"
_HIDDEN = f"{_W}rPr/{_W}vanish"


def read_passages(path: Path, remarks: Remarks | None = None) -> list[Passage]:
    """The passages of a file, each with the number of its first line, or its page number in a PDF.

    Guesses and losses are added to `remarks`.

    Raises DataError for whatever goes wrong with a file that cannot be read or does not match its suffix, and
    MissingExtraError if the package that reads it is not installed; the message names the file.
    """
    suffix = kind_of(path)
    is_packed = path.suffix.lower() == ".gz"
    try:
        content = path.read_bytes()
        if is_packed:
            content = read_unpacked(gzip.open(BytesIO(content)), "text")
        guessed = ""
        if suffix in _NO_TEXT:
            source = READERS[suffix](content)
        elif is_mail(content):  # as browsers save pages with their pictures
            source = read_mail(content)
        else:
            text, guessed = decoded(content, declared_encoding(content) if suffix in _PAGES else "")
            source = READERS[suffix](_tidied(text))
        stem = _NOTION.sub("", path.stem.removesuffix(suffix) if is_packed else path.stem)
        found = list(passages(without_data(source.lines), [stem, *source.about]))
        if remarks is not None:
            remarks.add(path, guessed, source.lost)
        return found
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or in_one_line(error)})") from error
    except (DataError, MissingExtraError) as error:
        raise type(error)(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path}: not enough memory to read it; save the text in parts") from error
    except Exception as error:  # a parser of a damaged file raises anything
        raise DataError(f"{path}: not a readable {suffix} file ({in_one_line(error)})") from error


def kind_of(path: Path) -> str:
    """The lower-case suffix that gives a file's type, ignoring .gz."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _tidied(text: str) -> str:
    """A text with uniform line ends, and without what only terminals obey."""
    text = re.sub("\r\n?", "\n", text.removeprefix("\ufeff"))
    return _TYPED_TWICE.sub("", ANSI.sub("", text)) if "\b" in text or "\x1b" in text else text


def _read_text(text: str) -> Source:
    """Subtitles, clippings, or lines with their numbers; front matter is the context of the file."""
    if _CUES.match(text):
        return _read_subtitles(text)
    if _CLIPPING.match(text):
        return Source([*_clippings(text)], [])
    about, text, first = split_front_matter(text)
    pages = _without_repeated([page.split("\n") for page in without_furigana(text).split(PAGE_END)])
    return Source(written_lines(enumerate(PAGE_END.join(map("\n".join, pages)).split("\n"), first)), about)


def _clippings(text: str) -> Iterator[tuple[int, str]]:
    """The texts that somebody marked in books, each below the name of its book."""
    place = 0  # of a line in its clipping
    for number, line in enumerate(text.split("\n"), 1):
        if line == "=" * 10:
            place = 0
            yield number, PAGE_END
        elif line or place:
            place += 1
            yield number, f"# {line}" if place == 1 else "" if place == 2 else as_text(line)


def _read_subtitles(text: str) -> Source:
    lines = list[tuple[int, str]]()
    title = list[tuple[int, str]]()
    spoken = False  # after the time of a subtitle, up to an empty line
    last = list[str]()  # the lines of the subtitle before
    said = list[str]()
    speaker = ""
    has_sentences = len(_SENTENCE_END.findall(text)) > text.count("-->") / 10  # unlike automatic captions
    hyphens = Hyphens(text)
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if _CUE.match(line):
            spoken, last, said = True, said, []
        elif not line.strip():
            spoken = False
            if title:
                continues = has_sentences and title[0][1][:1].islower()
                if continues and lines and not _SENTENCE_END.search(lines[-2][1]):
                    lines.pop()
                lines += [*hyphens.rejoined(title, shortest=1), (number, "")]
            title = []
        elif spoken:
            plain = without_entities(_CUE_TAG.sub("", without_ruby_tags(_VOICE.sub(r"\1: ", line))))
            heard = _HEARD.sub("", plain).replace("\n", " ")
            if not said:
                before, speaker = speaker, (_SPEAKER.match(heard) or [""])[0]
                heard = heard.removeprefix(before)
            said.append(heard)
            if said[-1] not in last:  # captions that roll repeat the line above
                title.append((number, said[-1]))
    return Source(lines, [])


def _read_pdf(content: bytes) -> Source:
    with require_extra("apps"):
        from pypdfium2 import PdfDocument  # type: ignore[import-untyped]  # it has no types

    with PdfDocument(content) as document:
        pages = list[list[str]]()
        length = 0
        for page in document:
            text = _BULLET.sub("•", page.get_textpage().get_text_range())
            length += len(text)
            if length > MOST_BYTES:  # one page may be repeated many times
                raise DataError(f"its pages have over {MOST_BYTES:,} characters; save the text in parts")
            pages.append(text.replace("\ufffe", "-\n").splitlines())
        marks = [(mark.get_dest(), mark.get_title(), mark.level) for mark in document.get_toc()]
        titles = {(place.get_index(), _bare(title)): level for place, title, level in marks if place and _bare(title)}
    lines = list[tuple[int, str]]()
    for number, page in enumerate(_without_repeated(pages)):
        shown = [(number + 1, line) for line in page if not _is_of_contents(line)]
        for place, line in Hyphens("\n".join(line for _, line in shown)).rejoined(shown):
            level = titles.get((number, _bare(line)))
            lines.append((place, as_text(line) if level is None else f"{'#' * min(level + 1, 6)} {line}"))
        lines.append((number + 1, PAGE_END))
    return Source(lines, [])


def _is_of_contents(line: str) -> bool:
    """Whether a line belongs to a table of contents: it ends in five or more dots and a page number."""
    title, dot, page = line.rpartition(".")
    return bool(dot and _DOTS.search(title[-9:]) and re.fullmatch(r"\w+", page.strip()))


def _bare(title: str) -> str:
    """The letters of a title, without its number, for comparison with other forms of it."""
    return re.sub(r"\W", "", title.lstrip(".0123456789 ")).casefold()


def _without_repeated(pages: list[list[str]]) -> list[list[str]]:
    """Empty the lines at the edges of pages that are, apart from numbers, on nearly every page with text."""
    edges = [{_alike(line) for line in [*page[:_EDGE], *page[-_EDGE:]]} for page in pages if "".join(page).strip()]
    counts = Counter(line for edge in edges for line in edge)
    repeated = {line for line, count in counts.items() if line and count > 1 and count >= _MOST_PAGES * len(edges)}
    kept = []
    for page in pages:
        inner = range(_EDGE, len(page) - _EDGE)
        kept.append([line * (place in inner or _alike(line) not in repeated) for place, line in enumerate(page)])
    return kept


def _alike(line: str) -> str:
    return re.sub(r"\d+", "0", line).strip()


def _read_docx(content: bytes) -> Source:
    """A Word document."""
    styles = _optional_part(content, "word/styles.xml")
    body = _part(content, "word/document.xml").find(f"{_W}body")
    if body is None:
        return Source([], [])
    for tag, name in _NOTES.items():
        notes = {note.get(f"{_W}id"): note for note in _optional_part(content, name)}
        for reference in body.iter(tag):
            reference.extend(notes.pop(reference.get(f"{_W}id"), ()))
    return Source(list(enumerate(_lines(body, _docx_levels(styles)), 1)), [])


def _read_odt(content: bytes) -> Source:
    """An OpenDocument text."""
    body = _part(content, "content.xml").find(f"{_OFFICE}body")
    return Source(list(enumerate(_lines(body, {}), 1)) if body is not None else [], [])


def _optional_part(document: bytes, name: str) -> "Iterable[Element]":
    """An XML file inside a document, or nothing."""
    try:
        return _part(document, name)
    except KeyError:
        return ()


def _part(document: bytes, name: str) -> "Element":
    """An XML file inside a document. Raises DataError if it is large, ValueError for entities, as in XML bombs."""
    with require_extra("apps"):
        from defusedxml.ElementTree import fromstring

    with zipfile.ZipFile(BytesIO(document)) as archive, archive.open(name) as part:
        content = read_unpacked(part, name)
    if content.count(b"<") > _MOST_TAGS:
        raise DataError(f"its {name} has over {_MOST_TAGS:,} tags; save the text in parts")
    root: Element = fromstring(content, forbid_dtd=True)
    return root


def _docx_levels(styles: "Iterable[Element]") -> dict[str, int]:
    """Levels of heading styles, the title above the others; their names are in English, but not their identifiers."""
    levels = {}
    for style in styles:
        name = style.find(f"{_W}name")
        if name is not None and (heading := _HEADING_STYLE.match(name.get(f"{_W}val", ""))):
            levels[style.get(f"{_W}styleId", "")] = _CONTENTS if heading[2] else min(1 + int(heading[1] or 0), 6)
    return levels


def _lines(parent: "Element", styles: Mapping[str, int], is_item: bool = False) -> Iterator[str]:
    """The blocks of a document in Markdown, with the levels of its heading styles."""
    blocks = (*_PARAGRAPHS, *_TABLES, _HEADING)
    for element in _outermost(parent, blocks if is_item else (*blocks, _ITEM)):
        if element.tag in _TABLES:
            yield from _table(element)
        elif element.tag == _ITEM:
            yield from _lines(element, styles, is_item=True)
        elif (level := _level(element, styles)) != _CONTENTS:
            yield from _block([*_texts_in(element)], level, is_item or element.find(_NUMBERED) is not None)


def _level(element: "Element", styles: Mapping[str, int]) -> int:
    """The level of a heading, and 0 for other paragraphs."""
    if element.tag == _HEADING:
        return min(int(element.get(f"{_TEXT}outline-level", "1")), 6)
    style = element.find(f"{_W}pPr/{_W}pStyle")
    return styles.get("" if style is None else style.get(f"{_W}val", ""), 0)


def _outermost(parent: "Element", tags: Collection[str]) -> Iterator["Element"]:
    """The outermost visible elements with these tags inside another element, in order."""
    rest = [*reversed(parent)]  # a stack instead of recursion, because a text may be deeply nested
    while rest:
        element = rest.pop()
        if element.tag in tags:
            yield element
        elif element.tag not in _UNSEEN:
            rest += reversed(element)


def _block(texts: Sequence[str], level: int, is_item: bool) -> Iterator[str]:
    """A paragraph in Markdown and its notes; those of a heading are below it."""
    if level:
        yield from (f"{'#' * level} {texts[0]}", "")
        texts = texts[1:]
    text = " ".join(filter(None, texts))
    yield from [f"- {text}"] if text and is_item and not level else [text, ""]


def _table(table: "Element") -> Iterator[str]:
    """A table in Markdown, then the tables in its cells. The first of several rows is the header."""
    tables = [table]
    for each in tables:  # grows while iterating
        yield ""
        texts: list[str] = []
        for number, row in enumerate(_outermost(each, _ROWS)):
            cells = [*_outermost(row, _CELLS)]
            texts = _texts(cells, texts)
            if number == 1:
                yield "|---|"
            yield f"| {' | '.join(texts)} |"
            tables += chain.from_iterable(_outermost(cell, _TABLES) for cell in cells)
        yield ""


def _texts(cells: Iterable["Element"], above: Sequence[str]) -> list[str]:
    """The cells of a row; one that spans columns has blank ones beside it, and one that spans rows is repeated."""
    texts: list[str] = []
    beside = 0  # covered cells that follow
    for cell in cells:
        merged = cell.find(_MERGED)
        below = not beside if cell.tag == _COVERED else merged is not None and merged.get(f"{_W}val") != "restart"
        is_repeated = below and len(texts) < len(above) and len(above[len(texts)]) <= LONGEST_SPANNED
        own = " ".join(filter(None, _texts_in(cell, _TABLES))).replace("|", "\\|")
        texts.append(above[len(texts)] if is_repeated else own)
        beside = beside - 1 if beside else cell_span(cell.attrib, f"{_TABLE}number-columns-spanned") - 1
        spanned = cell.find(_SPANNED)
        texts += [""] * (0 if spanned is None else cell_span(spanned.attrib, f"{_W}val") - 1)
    return texts


def _texts_in(element: "Element", without: Collection[str] = ()) -> Iterator[str]:
    """The text of an element, then those of the paragraphs inside it, such as notes and boxes, each on one line."""
    is_word = element.tag.startswith(_W)  # which has text only in `_WORDS`
    paragraphs = [element]
    for paragraph in paragraphs:  # grows while iterating
        pieces = list[str]()
        rest: list[Element | str] = [paragraph]  # a stack
        while rest:
            piece = rest.pop()
            if isinstance(piece, str):
                pieces.append(piece)
            elif piece.tag in _PARAGRAPHS and piece is not paragraph:
                paragraphs.append(piece)
            elif piece.tag not in _UNSEEN and piece.tag not in without and not _is_vanished(piece):
                if piece.tag in _SPACES or piece.tag == _HYPHEN:
                    pieces.append("-" if piece.tag == _HYPHEN else " ")
                if piece.text and (piece.tag == _WORDS or not is_word):
                    pieces.append(piece.text)
                for child in reversed(piece):
                    if child.tail and not is_word:
                        rest.append(child.tail)
                    rest.append(child)
        yield " ".join("".join(pieces).split())


def _is_vanished(element: "Element") -> bool:
    """Whether an element is a run of hidden text in a Word document."""
    hidden = element.find(_HIDDEN) if element.tag == _RUN else None
    return hidden is not None and hidden.get(f"{_W}val") not in ("0", "false", "off")  # undoes a style's


READERS: dict[str, Callable[[Any], Source]] = {  # of a text, or of bytes for those in `_NO_TEXT`
    **dict.fromkeys((".txt", ".text"), _read_text),
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    ".rst": read_rst,
    ".org": read_org,
    **dict.fromkeys(_PAGES, read_page),
    ".pdf": _read_pdf,
    ".docx": _read_docx,
    ".odt": _read_odt,
    ".eml": read_mail,
    ".mbox": read_mbox,
    **dict.fromkeys((".srt", ".vtt"), _read_subtitles),
}
