"""Text, Markdown, HTML and PDF files as passages: a paragraph or an item of a list each, of a few sentences at most."""

import codecs
import logging
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import chain, groupby
from pathlib import Path

from xsent import DataError
from xsent.errors import MissingExtraError, in_one_line, needing

Lines = Iterable[tuple[int, str]]  # numbers, from 1, and texts

_LONG = 500  # characters; a passage that is longer is cut between two of its sentences
_LONGEST = 5000  # and one without sentences here

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # what a terminal would obey
_ITEM = re.compile(r"\s*([-*+•]|\d{1,3}[.)]|#{1,6})\s")  # starts a passage of its own
_HEADING = re.compile(r"#{1,6}\s")  # and this ends it too
_TAGS_IN_A_LINE = frozenset(
    "a abbr b bdi bdo cite code data dfn em font i kbd mark q s samp small span strong sub sup u var".split()
)
_TAGS_WITHOUT_TEXT = frozenset(["script", "style", "template", "noscript", "svg"])


def read_passages(path: Path) -> list[tuple[int, str]]:
    """Passages of a file, each with the number of its first line; of a PDF with the page.

    Raises:
        DataError: The file cannot be read, or is not what its name says; the text names it, here and below.
        MissingExtraError: It is a PDF, and pypdf is not installed.
    """
    try:
        return list(_passages(READERS[path.suffix.lower()](path)))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or in_one_line(error)})") from error
    except MissingExtraError as error:
        raise MissingExtraError(f"{path}: {error}") from error


def cut_sentences(text: str) -> list[str]:
    """Sentences by their punctuation; nothing but white space between them is lost."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _text(path: Path) -> str:
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
    return enumerate(re.split("\r\n|\n|\r", _text(path)), 1)


def _html_lines(path: Path) -> Lines:
    page = _Page()
    try:
        page.feed(_text(path))
        if not page.rawdata.startswith("<"):  # a tag without end: browsers drop it too, and closing takes its square
            page.close()
    except AssertionError as error:  # what its parser says of some broken declarations
        raise DataError(f"{path}: not HTML that can be read ({in_one_line(error)})") from error
    page.end_block()
    return page.lines


def _pdf_lines(path: Path) -> Lines:
    with needing("apps"):
        from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it repairs is nobody's business here
    try:
        pages = [page.extract_text() for page in PdfReader(path).pages]
    except OSError:
        raise
    except Exception as error:  # a parser of a format like this raises whatever it meets in a damaged file
        raise DataError(f"{path}: not a PDF that can be read ({in_one_line(error)})") from error
    texts = (page.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for page in pages)
    return [(number, line) for number, page in enumerate(texts, 1) for line in [*page.split("\n"), ""]]


READERS = {
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst", ".org"), _text_lines),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _html_lines),
    ".pdf": _pdf_lines,
}


class _Page(HTMLParser):
    """What of a page is read, a block at a time; an empty line ends each."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []
        self._block: list[str] = []
        self._first = 1
        self._silent = 0  # tags without text that are open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Some tags end a block, some are silent."""
        self._silent += tag in _TAGS_WITHOUT_TEXT
        if tag not in _TAGS_IN_A_LINE:
            self.end_block()

    def handle_endtag(self, tag: str) -> None:
        """The same."""
        self._silent = max(0, self._silent - (tag in _TAGS_WITHOUT_TEXT))
        if tag not in _TAGS_IN_A_LINE:
            self.end_block()

    def handle_data(self, data: str) -> None:
        """Text of the block."""
        if not self._silent:
            if not self._block and data.strip():
                before = data[: len(data) - len(data.lstrip())]
                self._first = self.getpos()[0] + before.count("\n")
            if self._block or data.strip():
                self._block.append(data)

    def end_block(self) -> None:
        """Keep what has been read."""
        if self._block:
            self.lines += [(self._first, " ".join("".join(self._block).split())), (self._first, "")]
            self._block = []


def _passages(lines: Lines) -> Iterator[tuple[int, str]]:
    """Blocks of lines, cut where they are long."""
    for _, block in groupby(_numbered_blocks(lines), key=lambda line: line[0]):
        passage, first = "", 0
        for _, number, line in block:
            for sentence in chain.from_iterable(map(_windows, cut_sentences(line))):
                if passage and len(passage) + len(sentence) > _LONG:
                    yield first, passage
                    passage = ""
                first = first if passage else number
                passage = f"{passage} {sentence.strip()}".strip()
        if passage:
            yield first, passage


def _windows(sentence: str) -> list[str]:
    """A sentence; of one that is none, such as data in letters, pieces that are soon encoded."""
    return [sentence[start : start + _LONGEST] for start in range(0, len(sentence), _LONGEST)]


def _numbered_blocks(lines: Lines) -> Iterator[tuple[int, int, str]]:
    """Number of the block, of the line, and the text; what separates blocks is left out."""
    block = 0
    for number, raw in lines:
        line = _CONTROL.sub(" ", raw)
        if not line.strip():
            block += 1
            continue
        block += bool(_ITEM.match(line))
        yield block, number, line
        block += bool(_HEADING.match(line))
