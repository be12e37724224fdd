"""Writes an index: documents and their passages, saved at intervals."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xsent.encoder import SentenceEncoder
from xsent.errors import lone_surrogate, not_text, whole_number
from xsent.files.atomic import atomic_folder, only_writer, open_to_write, permissions_within, sync
from xsent.files.tables import Text
from xsent.precision import Vectors
from xsent.progress import Progress
from xsent.search.store import IndexDatabase, IndexState, Passage, StoredDocument, check_replaceable, text_to_encode
from xsent.search.vectors import STORED, VECTORS, check_length
from xsent.search.windows import windows_of
from xsent.words import has_words

SAVE_EVERY = 10_000  # passages between two saves: about a minute of work on a Raspberry Pi

_MOST_TEXT = 1 << 22  # most characters in memory before a save


@dataclass(frozen=True)
class Document:
    """A unit that is indexed, replaced and removed as a whole, such as a file.

    Example:
        >>> Document("trip.md", stamp="2026-11-29", passages=[(1, "The train is at nine.")]).source
        'trip.md'
    """

    name: str  #: the `source` of its hits; folders in a relative path count as words of all passages
    stamp: str  #: anything that changes with the document, such as its modification time and size
    #: line, from 1, and text; an optional third item is the context, such as the headings above the text. It is part of
    #: the vector and the words, and becomes `Hit.context`.
    passages: Iterable[tuple[int, str] | tuple[int, str, str]]

    @property
    def source(self) -> str:
        """The `source` of its hits."""
        return self.name

    @property
    def lines(self) -> int:
        """The number of lines, if this is a block of lines; otherwise 0."""
        return 0


_Passage = tuple[Document, int, str, str, str]  # line, text, context, and the window that is encoded, if any


class IndexWriter:
    """Appends passages to the index in a folder, with a `state` to a new one; saved ones survive errors and kills."""

    def __init__(self, folder: Path, state: IndexState | None = None) -> None:
        self.folder = folder
        self.database = IndexDatabase(folder, write=True)
        with ExitStack() as opened:
            opened.callback(self.database.close)
            self._file = opened.enter_context(open_to_write(folder / VECTORS, permissions_within(folder), buffering=0))
            self._begin(state or self.database.state())
            for document in self.database.documents():
                if document.passages and not document.stamp:  # a job was interrupted here; the document comes again
                    self.cut(replace(self.state, rows=document.first), [document.name])
            self.close = opened.pop_all().close  #: close its files

    @property
    def rows(self) -> int:
        """Number of all rows, saved or not."""
        return self.state.rows + len(self._passages)

    @property
    def is_full(self) -> bool:
        """Whether it is time to save."""
        return self._appended >= SAVE_EVERY or self._characters > _MOST_TEXT

    def append(self, vector: Vectors, source: str, line: int, text: str, context: str = "", id: str = "") -> None:
        """Add a passage and its vector [D]; skips a text without words, which would be near everything.

        An empty text is another window of the line before.
        """
        self._appended += 1
        if vector.any() and (not text or has_words(f"{context} {text}")):
            stored = vector.astype(STORED, copy=False).tobytes()
            self._vectors += stored  # first: if Ctrl-C comes in between, a surplus vector is harmless
            self._passages.append(Passage.of(stored, source, line, text, context, id))
            self._characters += len(context) + len(text)

    def save(self, state: IndexState, *, documents: Iterable[StoredDocument] = (), remove: Iterable[str] = ()) -> None:
        """Save everything, vectors first, then passages and state; the state determines how many vectors count."""
        try:
            self._file.truncate(self._saved_bytes)  # leftovers of a killed process
            self._file.seek(self._saved_bytes)
            left = memoryview(self._vectors)
            while left:  # a nearly full disk writes only a part
                left = left[self._file.write(left) :]
            sync(self._file)
        except OSError:
            self._file.truncate(self._saved_bytes)
            raise
        state = replace(state, rows=self.rows)
        self.database.save(state, self.state.rows, self._passages, documents=documents, remove=remove)
        self._begin(state)

    def cut(self, state: IndexState, documents: Iterable[str]) -> None:
        """Go back to a state with fewer rows, before these documents."""
        self.database.cut(state, documents)
        self._begin(state)

    def _begin(self, state: IndexState) -> None:
        """Continue from a saved state."""
        self.state = state
        if state.rows:
            check_length(self.folder / VECTORS, self._saved_bytes)
        self._passages: list[Passage] = []  # not saved yet, like everything below
        self._vectors = bytearray()
        self._characters = 0
        self._appended = 0  # passages, including those without a vector

    def drop(self, first: int) -> None:
        """Drop the rows from `first` on that are not saved yet."""
        kept = max(0, first - self.state.rows)
        self._passages = self._passages[:kept]
        self._vectors = self._vectors[: kept * self.state.dim * STORED.itemsize]  # an interrupted save has a view of it

    @property
    def _saved_bytes(self) -> int:
        return self.state.rows * self.state.dim * STORED.itemsize


def state_of(path: Path) -> IndexState:
    """The state of the index in a folder. Raises DataError if there is none."""
    with closing(IndexDatabase(path)) as database:
        return database.state()


@contextmanager
def new_index(path: Path, state: IndexState, *, complete: bool = False) -> Iterator[Path]:
    """The folder of an empty index, which replaces any other once the context ends.

    If `complete`, a folder without an index is not replaced, not even an empty one.
    """
    with only_writer(path) as replaces:
        if os.path.lexists(path):
            check_replaceable(path, complete=complete)
        with atomic_folder(path, private=True, replaces=replaces) as folder:
            with closing(IndexWriter(folder, state)) as writer:
                writer.save(state)
            yield folder


def add_documents(
    writer: IndexWriter,
    documents: Iterable[Document],
    encoder: SentenceEncoder,
    progress: Progress,
    space: str | None = None,
) -> None:
    """Append all passages of all documents, saving at intervals; progress counts lines, or documents without lines."""
    unsaved = _Unsaved(writer)
    passages = encoder.encode_items(
        _passages(documents, encoder), _text_to_encode, precision="float16", on_long="split", space=space
    )
    try:
        for (document, line, text, context, window), vector in passages:
            unsaved.document = document
            if line:
                id = text.id if isinstance(text, Text) else ""
                writer.append(vector, document.source, line, text, context, id)
                progress.advance(1 if document.lines and (text or not window) else 0)
            else:
                unsaved.complete()
                progress.advance(0 if document.lines else 1)
            if writer.is_full and not (line and document.lines):  # lines are saved in whole blocks
                unsaved.save()
    finally:  # also on interruption; then the last document comes again
        unsaved.save(whole=True)


class _Unsaved:
    """The documents whose passages were appended since the last save."""

    def __init__(self, writer: IndexWriter) -> None:
        self._writer = writer
        self._complete: list[StoredDocument] = []
        self._first = writer.rows  # first row of the last document
        self._lines = writer.state.lines
        self.document: Document | None = None  # the last one

    def complete(self) -> None:
        """Mark the last document as complete."""
        assert self.document is not None
        self._complete.append(self._stored(self.document.stamp))
        self._lines += self.document.lines
        self._first = self._writer.rows
        self.document = None

    def save(self, *, whole: bool = False) -> None:
        """Save the documents; an incomplete one has no stamp, and if `whole`, its unsaved passages are dropped."""
        if whole:
            self._writer.drop(self._first)
        if not self._complete and self._writer.rows == self._writer.state.rows:
            return
        begun = [self._stored("")] if self._writer.rows > self._first else []
        state = replace(self._writer.state, lines=self._lines)
        self._writer.save(state, documents=[*self._complete, *begun])
        self._complete = []

    def _stored(self, stamp: str) -> StoredDocument:
        assert self.document is not None
        return StoredDocument(self.document.name, stamp, self._first, self._writer.rows - self._first)


def _check_named(document: Document) -> None:
    """Raise TypeError or ValueError if a name, a stamp or a source is not valid text: SQLite would store anything."""
    if not isinstance(document, Document):
        raise TypeError(f"got {document!r:.80}; expected documents, such as Document(name, stamp, passages)")
    for field in ("name", "stamp", "source"):
        if not isinstance(value := getattr(document, field), str):
            raise TypeError(f"document {document.name!r}: its {field} is {value!r:.80}; convert it with str")
        try:
            value.encode()
        except UnicodeEncodeError as error:  # of a file name in another encoding
            raise ValueError(
                f"document {document.name!r}: its {field} has {lone_surrogate(error, value)}, which is not valid text; "
                "use os.fsencode(name).decode(errors='replace')"
            ) from error


def _parts(document: Document, passage: Any) -> tuple[int, str, str]:  # noqa: ANN401  validates caller input
    """The line, text and context of a passage. Raises TypeError or ValueError if it has other parts."""
    place = f"document {document.name!r}"
    if not isinstance(passage, tuple | list) or not 2 <= len(passage) <= 3:
        raise TypeError(f"{place}: got {passage!r:.80}; expected passages (line, text) or (line, text, context)")
    line, *texts = passage
    line = whole_number(f"{place}: line", line)  # a number of NumPy, too, becomes an int
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{place}, line {line}: {not_text(text)}")
    if not document.stamp:  # a document without passages may have none, so that it is read again
        raise ValueError(f"{place}: its stamp is empty, which means incomplete; give it one, such as its date")
    return line, texts[0], "".join(texts[1:])


def _text_to_encode(passage: _Passage) -> str:
    _, _, text, context, window = passage
    return window or text_to_encode(context, text)


def _passages(documents: Iterable[Document], encoder: SentenceEncoder) -> Iterator[_Passage]:
    """Passages with their documents, contexts and windows; a line 0 without text ends each document.

    Only lines have windows, because passages of documents are short. The first one has the text of its line.
    """
    names = set[str]()
    for document in documents:
        _check_named(document)
        if document.name in names:
            raise ValueError(f"document {document.name!r} is given twice; give each name once")
        names.add(document.name)
        for passage in document.passages:
            line, text, context = _parts(document, passage)
            windows = windows_of(text, encoder) if document.lines else [text]
            yield document, line, text, context, windows[0] if windows[1:] else ""
            yield from ((document, line, "", "", window) for window in windows[1:])
        yield document, 0, "", "", ""
