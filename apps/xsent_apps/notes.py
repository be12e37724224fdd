"""`xsent notes`: a folder of notes, read into passages and searched by meaning and by words."""

import codecs
import logging
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated

import typer

from xsent import (
    DataError,
    Document,
    FingerprintError,
    Hit,
    SearchIndex,
    SentenceEncoder,
    XsentError,
    cosine_similarity,
    update_index,
)
from xsent.cli.options import BundleOption, JsonOption, LayersOption, ThreadsOption
from xsent.cli.terminal import one_line_errors, plain, print_json, print_row
from xsent.errors import MissingExtraError, in_one_line, require_extra
from xsent.files.atomic import as_write_error, recover

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
    with require_extra("apps"):
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


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

INDEX = ".xsent-notes"  # in the folder itself, unless said otherwise

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Notes:
    """The files of a folder, and the index of what they said when it was last updated.

    Hidden files and folders, links, and files of other kinds are passed over.
    """

    def __init__(self, folder: Path, index: Path | None = None, *, max_bytes: int = 20_000_000) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder}: not a folder; expected one with notes")
        self.folder = folder
        self.index = index or folder / INDEX
        self.skipped: list[str] = []  # why a file could not be read, of the last update
        self._max_bytes = max_bytes

    def update(self, encoder: SentenceEncoder, *, force: bool = False, show_progress_bar: bool = False) -> int:
        """Bring new and changed files into the index, and what is gone out of it; how many these are comes back.

        A process that is killed meanwhile leaves what it has done; the next update does the rest.
        """
        self.skipped = []
        recover(self.index)
        empty = force or not self.index.is_dir() or not any(self.index.iterdir())
        known: dict[str, str] = {}
        if not empty:
            with closing(SearchIndex(self.index)) as index:
                if index.state.lines:
                    raise DataError(f"{self.index}: holds lines that xsent index has put in; name another --index")
                known = index.documents()
        there = dict(self._files())
        gone = known.keys() - there.keys()
        # What could not be read has no stamp; if it still cannot, the index need not be touched.
        changed = [
            name
            for name, stamp in there.items()
            if known.get(name) != stamp and (known.get(name) != "" or self._read(name, stamp).stamp)
        ]
        passed_over = len(self.skipped)
        if changed or gone or empty:
            documents = (self._read(name, there[name]) for name in changed)
            with as_write_error(self.index, "--index names another place; the same command goes on"):
                update_index(
                    self.index, documents, encoder, remove=gone, force=force, show_progress_bar=show_progress_bar
                )
        return len(changed) + len(gone) - (len(self.skipped) - passed_over)

    def search(self, encoder: SentenceEncoder, query: str, k: int = 5, *, words: bool = True) -> list[Hit]:
        """The passages that answer a query best, as of the last update."""
        if not self.index.is_dir():
            raise DataError(f"{self.index}: no index yet; leave --no-update away")
        return SearchIndex(self.index).search(encoder, [query], k, words=words)[0]

    def _files(self) -> Iterator[tuple[str, str]]:
        """Names within the folder, and what changes when the file does."""
        for parent, folders, names in os.walk(self.folder, onerror=lambda error: self.skipped.append(str(error))):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
                if path.suffix.lower() in READERS and (found := _regular_file(path)):
                    name = path.relative_to(self.folder).as_posix()
                    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
                        reason = "its name has control characters, or is not Unicode; rename it"
                        self.skipped.append(f"{str(path)!a}: {reason}")
                    else:
                        yield name, f"{found.st_size} {found.st_mtime_ns}"

    def _read(self, name: str, stamp: str) -> Document:
        """A file as a document; one that cannot be read is empty, and without stamp, so that it is tried again."""
        path = self.folder / name
        try:
            if (size := int(stamp.split()[0])) > self._max_bytes:
                raise DataError(f"{path}: {size:,} bytes, more than the {self._max_bytes:,} of --max-bytes")
            return Document(name, stamp, read_passages(path))
        except XsentError as error:
            self.skipped.append(str(error))
            return Document(name, "", [])


def _regular_file(path: Path) -> os.stat_result | None:
    """What a plain file is like; None for links and whatever else, and what has just gone."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


@app.command(epilog='Example: xsent notes ~/notes "wann ist das Treffen?"')
@one_line_errors()
def notes(
    folder: Annotated[Path, typer.Argument(help="With text, Markdown, HTML and PDF files, in folders as they are.")],
    query: Annotated[str | None, typer.Argument(help="In any language of the model; without it, only update.")] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Passages to find.")] = 5,
    index: Annotated[Path | None, typer.Option(help=f"The index; default: {INDEX} in the folder.")] = None,
    update: Annotated[bool, typer.Option(help="Look for new, changed and deleted files first.")] = True,
    words: Annotated[bool, typer.Option(help="Let passages with words of the query come first.")] = True,
    watch: Annotated[bool, typer.Option("--watch", help="Keep on updating whenever a file changes.")] = False,
    max_bytes: Annotated[int, typer.Option(min=1, help="Files that are larger are skipped.")] = 20_000_000,
    model: BundleOption = None,
    layers: LayersOption = None,
    threads: ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Make the index anew.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search a folder of notes by meaning and by words: score, file and line, and the passage, best first.

    What has changed since the last time is indexed first. A PDF has pages instead of lines.
    """
    if query is not None and not query.strip():
        raise DataError("the query is empty; ask for something")
    if watch and query is not None:
        raise typer.BadParameter("--watch takes no query: ask from another terminal meanwhile")
    found = Notes(folder, index, max_bytes=max_bytes)
    encoder = SentenceEncoder(model, layers=layers, threads=threads)
    encoder.count_tokens(query or "")  # refuses what is no text now, not after all the files
    try:
        if update or force or watch:
            _update(found, encoder, force, may_fail=query is not None and not force and found.index.is_dir())
        if query is not None:
            if not (hits := found.search(encoder, query, k, words=words)):
                raise DataError(f"{folder}: no text in it; notes end in {', '.join(READERS)}")
            _print(hits, encoder, query, as_json)
    except (DataError, FingerprintError) as error:  # the advice of other commands
        of_index = str(error).startswith((str(found.index), str(found.index.resolve())))
        remedy = "; --force makes it anew" if of_index and found.index.is_dir() and not force else ""
        raise type(error)(f"{error}{remedy}") from None
    if watch:
        with require_extra("apps"):
            from watchfiles import watch as changes

        place = found.index.resolve()
        ours = lambda _, path: not Path(path).resolve().is_relative_to(place)  # noqa: E731
        for _ in changes(folder, watch_filter=ours, raise_interrupt=True):
            _update(found, encoder, may_fail=True)


def _update(notes: Notes, encoder: SentenceEncoder, force: bool = False, *, may_fail: bool = False) -> None:
    """Update, and say what came of it; where it may fail, what there is can still be searched."""
    try:
        count = notes.update(encoder, force=force, show_progress_bar=sys.stderr.isatty())
    except KeyboardInterrupt:
        typer.echo("What was indexed is kept; the same command goes on.", err=True)
        raise
    except DataError as error:
        if not may_fail:
            raise
        typer.echo(f"Warning: not updated: {plain(error)}", err=True)
        return
    for reason in notes.skipped:
        typer.echo(f"Skipped: {plain(reason)}", err=True)
    if count:
        typer.echo(f"New, changed or gone: {count:,}. {notes.index} is up to date.", err=True)


def _print(hits: list[Hit], encoder: SentenceEncoder, query: str, as_json: bool) -> None:
    """All hits; on a terminal the sentence of each that is nearest to the query stands out."""
    if not (as_json or sys.stdout.isatty()):
        for hit in hits:
            print_row(f"{hit.score:.4f}", f"{hit.source}:{hit.line}", hit.text)
        return
    asked = encoder.encode(query, on_long="split")
    for hit in hits:
        sentences = cut_sentences(hit.text) or [hit.text]
        best = sentences[int(cosine_similarity(asked, encoder.encode(sentences, on_long="split")).argmax())]
        if as_json:
            found = {"score": hit.score, "file": hit.source, "line": hit.line, "text": hit.text, "best": best}
            print_json(found)
            continue
        place = f"{hit.source}, page {hit.line}" if hit.source.lower().endswith(".pdf") else f"{hit.source}:{hit.line}"
        text = hit.text.replace(best, f"{_BOLD}{best}{_PLAIN}", 1)
        typer.echo(f"{hit.score:.2f}  {_DIM}{place}{_PLAIN}\n      {text}")
