"""Text, Markdown, HTML and PDF files, read as passages with the number of their line or page."""

import codecs
import logging
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path

from xsent import DataError
from xsent.errors import MissingExtraError, in_one_line, require_extra

Lines = Iterable[tuple[int, str]]  # numbers, from 1, and texts

PASSAGE_LENGTH = 500  # characters; a longer passage is cut between two of its sentences
SENTENCE_LENGTH = 5000  # characters; a longer "sentence", such as base64, is cut anywhere

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a terminal would obey these
_ITEM = re.compile(r"\s*([-*+•]|\d{1,3}[.)]|#{1,6})\s")  # starts a passage
_HEADING = re.compile(r"#{1,6}\s")  # starts a passage and ends it too
_INLINE_TAGS = frozenset(
    "a abbr b bdi bdo cite code data dfn em font i kbd mark q s samp small span strong sub sup u var".split()
)
_TAGS_WITHOUT_TEXT = frozenset(["script", "style", "template", "noscript", "svg"])


def read_passages(path: Path) -> list[tuple[int, str]]:
    """Passages of a file, each with the number of its first line, or of its page in a PDF.

    Raises DataError if the file cannot be read or is not what its name says, and MissingExtraError if it is a PDF and
    pypdf is not installed; the text names the file.
    """
    try:
        return list(_passages(READERS[path.suffix.lower()](path)))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or in_one_line(error)})") from error
    except MissingExtraError as error:
        raise MissingExtraError(f"{path}: {error}") from error


def split_sentences(text: str) -> list[str]:
    """Split at punctuation; only white space between sentences is lost."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _read_text(path: Path) -> str:
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    if b"\0" in content:
        raise DataError(f"{path}: holds binary data, not text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte 0x{content[error.start]:02x} at {error.start + 1})") from error


def _text_lines(path: Path) -> Lines:
    return enumerate(re.split("\r\n|\n|\r", _read_text(path)), 1)


def _html_lines(path: Path) -> Lines:
    page = _Page()
    try:
        page.feed(_read_text(path))
        if not page.rawdata.startswith("<"):  # a tag without end: browsers drop it, and close() takes quadratic time
            page.close()
    except AssertionError as error:  # html.parser raises it for some broken declarations
        raise DataError(f"{path}: not HTML that can be read ({in_one_line(error)})") from error
    page.end_block()
    return page.lines


def _pdf_lines(path: Path) -> Lines:
    with require_extra("apps"):
        from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports each repair
    try:
        pages = [page.extract_text() for page in PdfReader(path).pages]
    except OSError:
        raise
    except Exception as error:  # a parser of a damaged file raises anything
        raise DataError(f"{path}: not a PDF that can be read ({in_one_line(error)})") from error
    for number, page in enumerate(pages, 1):
        text = page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield from ((number, line) for line in [*text.split("\n"), ""])


READERS = {
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst", ".org"), _text_lines),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _html_lines),
    ".pdf": _pdf_lines,
}


class _Page(HTMLParser):
    """Collects the visible text of an HTML page, one line a block, with an empty line after each."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []
        self._block: list[str] = []
        self._first = 1  # line on which the block begins
        self._hidden = 0  # open tags without text

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """End a block unless the tag stands within a line."""
        self._hidden += tag in _TAGS_WITHOUT_TEXT
        if tag not in _INLINE_TAGS:
            self.end_block()

    def handle_endtag(self, tag: str) -> None:
        """End a block unless the tag stands within a line."""
        self._hidden = max(0, self._hidden - (tag in _TAGS_WITHOUT_TEXT))
        if tag not in _INLINE_TAGS:
            self.end_block()

    def handle_data(self, data: str) -> None:
        """Add text to the block."""
        if self._hidden or not (self._block or data.strip()):
            return
        if not self._block:
            before = data[: len(data) - len(data.lstrip())]
            self._first = self.getpos()[0] + before.count("\n")
        self._block.append(data)

    def end_block(self) -> None:
        """Keep the block as a line."""
        if self._block:
            self.lines += [(self._first, " ".join("".join(self._block).split())), (self._first, "")]
            self._block = []


def _passages(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield the blocks of lines, long ones in several passages."""
    for _, block in groupby(_numbered_blocks(lines), key=lambda line: line[0]):
        passage = ""
        first = 0
        for _, number, line in block:
            for sentence in split_sentences(line):
                for start in range(0, len(sentence), SENTENCE_LENGTH):
                    piece = sentence[start : start + SENTENCE_LENGTH]
                    if passage and len(passage) + len(piece) > PASSAGE_LENGTH:
                        yield first, passage
                        passage = ""
                    first = first if passage else number
                    passage = f"{passage} {piece.strip()}".strip()
        if passage:
            yield first, passage


def _numbered_blocks(lines: Lines) -> Iterator[tuple[int, int, str]]:
    """Yield the number of the block, the number of the line, and the text of each line that is not empty."""
    block = 0
    for number, raw in lines:
        line = _CONTROL.sub(" ", raw)
        if not line.strip():
            block += 1
            continue
        block += bool(_ITEM.match(line))
        yield block, number, line
        block += bool(_HEADING.match(line))
