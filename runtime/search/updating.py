"""An index of documents that come, change and go."""

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import tee
from pathlib import Path

import numpy as np

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.files import atomic_folder, naming_full_disk, only_writer, recover
from xsent.search.database import IndexDatabase, check_replaceable, has_index
from xsent.search.index import SearchIndex
from xsent.search.records import IndexState, StoredDocument
from xsent.search.writer import IndexWriter
from xsent.terminal import Progress

_WORTH_COMPACTING = 10_000  # removed rows; and there must be more of them than of others
_NO_VECTOR = np.zeros(0, np.float16)  # of what ends a document


@dataclass(frozen=True)
class Document:
    """What is indexed, replaced and removed as one, such as a file."""

    name: str  #: the `source` of its hits
    stamp: str  #: anything that changes when it does, such as its time and size
    passages: Iterable[tuple[int, str]]  #: line, from 1, and text


def update_index(
    path: str | Path,
    documents: Iterable[Document],
    encoder: SentenceEncoder,
    *,
    remove: Iterable[str] = (),
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexState:
    """Put documents into an index in constant memory, instead of their older versions; it is made if there is none.

    What is done counts at once. After a kill the same call goes on: a document that was cut short has no stamp in
    `SearchIndex.documents`, and comes again. Words of an index of documents can be searched too. Rows of removed
    documents are given free when they are more than the others.

    Args:
        path: The folder; its parent must exist.
        documents: New and changed ones, each name once; they are asked for one after the other.
        encoder: What makes the vectors; a passage longer than it reads is encoded in windows.
        remove: Names of documents to drop; those that are not there are passed over.
        force: Drop all that an index holds first, also one that is damaged or of another encoder.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: The folder holds something else, or another process is writing.
        FingerprintError: The index is of another encoder, or of another depth of this one.
    """
    path = Path(path).resolve()
    recover(path)
    if force or not (path.exists() and has_index(path)):
        _make_empty(path, encoder)
    with only_writer(path), naming_full_disk(path, lambda: True, "make room, then the same call goes on"):
        with closing(IndexDatabase(path, create=True)) as database:
            if (state := database.state()) is None:
                raise DataError(f"{path}: an unfinished index of lines; xsent index --resume goes on with it")
            state.check_fingerprint(encoder.fingerprint, path, grows=True)
            database.keep_documents()
            database.forget(state.rows)
        with closing(IndexWriter(path, state)) as writer:
            writer.begin(state)
            writer.save(state, remove=remove)
            _add(writer, documents, encoder, show_progress_bar)
            state = writer.state
        with suppress(OSError):  # a full disk; what matters is saved
            state = _compact(path) or state
        return state


def _make_empty(path: Path, encoder: SentenceEncoder) -> None:
    """An index without documents, in the place of whichever is there."""
    with only_writer(path):
        if path.exists():
            check_replaceable(path, complete=False)
        state = IndexState(encoder.fingerprint, encoder.dim)
        with atomic_folder(path) as folder, closing(IndexWriter(folder, state)) as writer:
            writer.database.keep_documents()
            writer.save(state)


def _add(writer: IndexWriter, documents: Iterable[Document], encoder: SentenceEncoder, show: bool) -> None:
    """Append all passages of all documents, and save from time to time."""
    unsaved: list[StoredDocument] = []
    document: Document | None = None
    passages, read = tee(_passages(documents))  # the encoder reads a few dozen ahead, no more
    texts = (text for _, line, text in read if line)
    vectors = encoder.encode_iter(texts, precision="float16", on_long="split")
    first = writer.rows
    try:
        with Progress("passages", enabled=show) as progress:
            vectors = progress.count(vectors)
            for document, line, text in passages:
                writer.append(document.name, line, text, next(vectors) if line else _NO_VECTOR)
                if not line:
                    unsaved.append(StoredDocument(document.name, document.stamp, first, writer.rows - first))
                    first = writer.rows
                if writer.is_full:
                    _save(writer, unsaved, document, first)
                    unsaved = []
            next(vectors, None)  # their end, where they warn; Ctrl-C is lost while Python drops what has not come to it
    finally:  # also when it is interrupted
        _save(writer, unsaved, document, first)


def _save(writer: IndexWriter, complete: list[StoredDocument], last: Document | None, first: int) -> None:
    """Save complete documents, and what there is of the last one, without a stamp."""
    if last is not None and writer.rows > first:
        complete = [*complete, StoredDocument(last.name, "", first, writer.rows - first)]
    writer.save(writer.state, documents=complete)


def _passages(documents: Iterable[Document]) -> Iterator[tuple[Document, int, str]]:
    """Passages with their documents; line 0, without text, ends each document."""
    names = set[str]()
    for document in documents:
        if document.name in names:
            raise ValueError(f"document {document.name!r} comes twice; give each name once")
        names.add(document.name)
        for line, text in document.passages:
            if line < 1:
                raise ValueError(f"document {document.name!r}: line {line}; they are counted from 1")
            yield document, line, text
        yield document, 0, ""


def _compact(path: Path) -> IndexState | None:
    """Write an index anew without the rows of removed documents, if that is worth it."""
    with closing(SearchIndex(path)) as index:
        if index.state.rows - len(index) < max(_WORTH_COMPACTING, len(index)):
            return None
        kept = np.flatnonzero(index.live)
        state = replace(index.state, rows=0, graph=0, graph_digest="")
        with atomic_folder(path) as folder, closing(IndexWriter(folder, state)) as writer:
            writer.database.keep_documents()
            for passage, vector in index.passages():
                writer.append(passage.source, passage.line, passage.text, vector)
                if writer.is_full:
                    writer.save(writer.state)
            moved = [
                document._replace(first=int(np.searchsorted(kept, document.first)))
                for document in index.stored_documents()
            ]
            writer.save(writer.state, documents=moved)
        return writer.state
