"""An index of documents that are added, changed and removed."""

import os
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.files.atomic import atomic_folder, explain_write_errors, only_writer, recover
from xsent.progress import Progress, known_total
from xsent.search.index import SearchIndex
from xsent.search.store import IndexState, has_index
from xsent.search.writer import Document, IndexWriter, add_documents, new_index, state_of
from xsent.tasks import text_list

_WORTH_COMPACTING = 10_000  # fewest removed rows, which must also outnumber the others


def update_index(
    path: str | Path,
    documents: Iterable[Document],
    encoder: SentenceEncoder,
    *,
    remove: Iterable[str] = (),
    force: bool = False,
    show_progress_bar: bool | None = False,
) -> IndexState:
    """Add documents to an index of documents in constant memory, replacing their older versions.

    Creates the index if it does not exist. Every saved step can be searched at once, also by words. After a kill, the
    same call continues: an incomplete document has no stamp in `SearchIndex.documents` and must be given again. Rows of
    removed documents are freed when they are 10,000 or more and outnumber the others.

    Args:
        path: The folder; its parent must exist.
        documents: New and changed documents, each name once; they are read one at a time.
        encoder: The encoder; a passage that is too long for it is encoded in windows.
        remove: Names of documents to remove; unknown names are ignored.
        force: Discard an existing index first, even if it is damaged or of another encoder.
        show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.

    Raises:
        DataError: The folder contains an index of lines or something else, it or something in it is a link, or
            another process is writing.
        FingerprintError: The index was built with another encoder, or of another depth of this one.

    Example:
        >>> trip = Document("trip.md", stamp="1", passages=[(1, "The train is at nine."), (3, "Bring the tickets.")])
        >>> state = update_index("documents.index", [trip], encoder)
        >>> [[hit]] = SearchIndex("documents.index").search(encoder, ["À quelle heure part le train ?"], k=1)
        >>> hit.source, hit.line
        ('trip.md', 1)
    """
    gone = text_list(remove, "name to remove")
    path = Path(os.path.abspath(path))
    recover(path)
    if force or not (path.exists() and has_index(path)):
        with new_index(path, IndexState(encoder.fingerprint, encoder.dim, clean=int(encoder.clean))):
            pass

    def kept() -> str:
        with SearchIndex(path) as index:
            files = sum(map(bool, index.documents().values()))
        again = "again, without --force," if force else "again"  # which would discard what is kept
        return f"Indexed files are kept: {files:,}; run the same command {again} to continue."

    with only_writer(path), explain_write_errors(path, kept, "make room, then run it again to continue"):
        state = state_of(path)
        if state.lines:
            raise DataError(f"{path}: an index of lines, from xsent index; choose another name for documents")
        state.check_fingerprint(encoder.fingerprint, path, clean=encoder.clean)
        with closing(IndexWriter(path)) as writer:
            writer.save(writer.state, remove=gone)
            with Progress("files", known_total(documents), enabled=show_progress_bar) as progress:
                add_documents(writer, documents, encoder, progress)
            state = writer.state
        with suppress(OSError):  # a full disk; everything that matters is saved
            state = _compact(path) or state
        return state


def _compact(path: Path) -> IndexState | None:
    """Compact the index if enough rows were removed."""
    with SearchIndex(path) as index:
        if index.state.rows - len(index) < max(_WORTH_COMPACTING, len(index)):
            return None
        kept = np.flatnonzero(index.live)
        state = replace(index.state, rows=0)
        with atomic_folder(path, private=True) as folder, closing(IndexWriter(folder, state)) as writer:
            for passage, vector in index.passages():
                writer.append(vector, *passage[:-1])
                if writer.is_full:
                    writer.save(writer.state)
            moved = [
                document._replace(first=int(np.searchsorted(kept, document.first)))
                for document in index.stored_documents()
            ]
            writer.save(writer.state, documents=moved)
        return writer.state
