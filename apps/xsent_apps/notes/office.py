"""Texts of word processors (.docx, .odt) as lines of Markdown."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from xsent.errors import require_extra
from xsent_apps.notes.source import Source, read_unpacked

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_SPACES = {f"{_W}tab", f"{_W}br", f"{_W}cr", f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"}
_UNSEEN = {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",  # repeats what stands before it
    *(f"{_W}delText", f"{_W}instrText"),
    *(f"{_TEXT}tracked-changes", f"{_TEXT}note-citation", f"{_OFFICE}annotation"),
}
_HEADING = re.compile(r"heading (\d)$|title$", re.IGNORECASE)


def read_docx(content: bytes) -> Source:
    """A text of Word."""
    body = _part(content, "word/document.xml").find(f"{_W}body")
    try:
        levels = _docx_levels(_part(content, "word/styles.xml"))
    except KeyError:  # there are none
        levels = {}
    return Source(list(enumerate(_docx_lines(body, levels), 1)) if body is not None else [], [])


def read_odt(content: bytes) -> Source:
    """A text of OpenDocument."""
    body = _part(content, "content.xml").find(f"{_OFFICE}body")
    return Source(list(enumerate(_odt_lines(body), 1)) if body is not None else [], [])


def _part(document: bytes, name: str) -> "Element":
    """One of the XML files in a document. Raises DataError for large ones and ValueError for entities, as in bombs."""
    with require_extra("apps"):
        from defusedxml.ElementTree import fromstring

    with zipfile.ZipFile(BytesIO(document)) as archive, archive.open(name) as part:
        root: Element = fromstring(read_unpacked(part, name), forbid_dtd=True)
    return root


def _docx_levels(styles: "Element") -> dict[str, int]:
    """Levels of the styles of headings; their names are in English, their identifiers are not."""
    levels = {}
    for style in styles.iter(f"{_W}style"):
        name = style.find(f"{_W}name")
        if name is not None and (heading := _HEADING.match(name.get(f"{_W}val", ""))):
            levels[style.get(f"{_W}styleId", "")] = min(int(heading[1] or 1), 6)
    return levels


def _docx_lines(parent: "Element", levels: dict[str, int]) -> Iterator[str]:
    for element in parent:
        if element.tag == f"{_W}p":
            style = element.find(f"{_W}pPr/{_W}pStyle")
            level = levels.get("" if style is None else style.get(f"{_W}val", ""), 0)
            is_item = element.find(f"{_W}pPr/{_W}numPr") is not None
            yield from _block(_text(element), level, is_item)
        elif element.tag == f"{_W}tbl":
            yield from _table([row.iter(f"{_W}tc") for row in element.iter(f"{_W}tr")])
        elif element.tag not in _UNSEEN:  # such as w:sdt, which holds paragraphs
            yield from _docx_lines(element, levels)


def _odt_lines(parent: "Element", is_item: bool = False) -> Iterator[str]:
    for element in parent:
        if element.tag == f"{_TEXT}p":
            yield from _block(_text(element), 0, is_item)
        elif element.tag == f"{_TEXT}h":
            yield from _block(_text(element), min(int(element.get(f"{_TEXT}outline-level", "1")), 6), False)
        elif element.tag == f"{_TABLE}table":
            yield from _table([row.iter(f"{_TABLE}table-cell") for row in element.iter(f"{_TABLE}table-row")])
        elif element.tag not in _UNSEEN:
            yield from _odt_lines(element, is_item or element.tag == f"{_TEXT}list-item")


def _block(text: str, level: int, is_item: bool) -> Iterator[str]:
    """A paragraph in Markdown."""
    if not text or level or not is_item:
        yield f"{'#' * level} {text}" if level else text
        yield ""
    else:
        yield f"- {text}"


def _table(rows: Iterable[Iterable["Element"]]) -> Iterator[str]:
    """A table in Markdown; its first row has the names of the columns."""
    yield ""
    for number, row in enumerate(rows):
        cells = [_text(cell).replace("|", "\\|") for cell in row]
        yield f"| {' | '.join(cells)} |"
        if not number:
            yield f"|{'---|' * len(cells)}"
    yield ""


def _text(element: "Element") -> str:
    """What a reader sees of an element, on one line."""
    return " ".join("".join(_pieces(element, f"{_W}t" if element.tag.startswith(_W) else "")).split())


def _pieces(element: "Element", only: str) -> Iterator[str]:
    """The text within an element; with `only` that of one kind of element."""
    if element.tag in _UNSEEN:
        return
    if element.tag in _SPACES or element.tag == f"{_TEXT}p":  # paragraphs of notes and cells stand within others
        yield " "
    if element.text and only in ("", element.tag):
        yield element.text
    for child in element:
        yield from _pieces(child, only)
        if child.tail and not only:
            yield child.tail
    if element.tag in (f"{_W}p", f"{_TEXT}p"):
        yield " "
