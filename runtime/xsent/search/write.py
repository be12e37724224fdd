"""Writing an index: made new, added to, or brought up to date with documents that come, change and go."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

import numpy as np

from xsent.cli.terminal import Progress
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.files.atomic import (
    atomic_folder,
    explain_write_errors,
    file_exists_error,
    only_writer,
    put_in_place,
    recover,
    replace_folder,
    sync,
)
from xsent.files.text import LineDigest
from xsent.precision import Vectors
from xsent.search.graph import extend_graph, require_usearch
from xsent.search.index import SearchIndex
from xsent.search.store import (
    INDEX,
    STORED,
    UNFINISHED,
    VECTORS,
    IndexDatabase,
    IndexState,
    Passage,
    StoredDocument,
    check_length,
    check_replaceable,
    has_index,
)

SAVE_EVERY = 10_000  # passages: about a minute's work on a Raspberry Pi

_MOST_TEXT = 1 << 22  # characters that wait to be saved


class IndexWriter:
    """Appends passages to what a folder has; what was saved outlives errors and kills."""

    def __init__(self, folder: Path, state: IndexState) -> None:
        self.folder = folder
        self.database = IndexDatabase(folder, create=True)
        self.close = self.database.close
        self._file = folder / VECTORS
        self._clear(state)

    @property
    def rows(self) -> int:
        """Those that are saved, and those that wait."""
        return self.state.rows + len(self._passages)

    @property
    def is_full(self) -> bool:
        """Whether enough waits to be saved."""
        return self._waiting >= SAVE_EVERY or self._text > _MOST_TEXT

    def begin(self, state: IndexState) -> None:
        """Go on from a state."""
        self._clear(state)
        if state.rows:
            check_length(self._file, self._saved_bytes)

    def append(self, source: str, line: int, text: str, vector: Vectors) -> None:
        """Add a passage and its vector [D]; one whose vector is zero would never be found and is left out."""
        self._waiting += 1
        if vector.any():
            stored = vector.astype(STORED, copy=False).tobytes()
            self._vectors += stored  # before the passage: a vector too many is no harm
            self._passages.append(Passage.of(source, line, text, stored))
            self._text += len(text)

    def save(
        self,
        state: IndexState,
        name: str = INDEX,
        *,
        documents: Iterable[StoredDocument] = (),
        remove: Iterable[str] = (),
    ) -> None:
        """Bring everything to the disk: first the vectors, then the state, which says how many of them count."""
        try:
            with self._file.open("ab") as file:
                file.truncate(self._saved_bytes)  # without what a killed process has left
                file.write(self._vectors)
                sync(file)
        except OSError:
            os.truncate(self._file, self._saved_bytes)
            raise
        state = replace(state, rows=self.rows)
        self.database.save(
            state, name, first=self.state.rows, passages=self._passages, documents=documents, remove=remove
        )
        self._clear(state)

    def _clear(self, state: IndexState) -> None:
        self.state = state  # what is saved
        self._passages: list[Passage] = []  # that wait, with their vectors
        self._vectors = bytearray()
        self._text = self._waiting = 0  # their characters; how many came

    @property
    def _saved_bytes(self) -> int:
        return self.state.rows * self.state.dim * STORED.itemsize


_COMPLETE = "complete, there is nothing to resume"


def build_index(
    path: str | Path,
    texts: Iterable[str],
    encoder: SentenceEncoder,
    *,
    source: str = "",
    space: str | None = None,
    graph: bool = False,
    resume: bool = False,
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexState:
    """Make an index of lines of text in constant memory; the folder appears once it is complete.

    Until then what is done lies beside it in `.NAME.partial`. It stays there if the job is stopped after 10,000 lines
    or more, or while the graph is made.

    Args:
        path: The folder to make; its parent must exist.
        texts: The lines, numbered from 1. An empty line keeps its number and is never found; a long one is encoded
            in windows.
        encoder: What makes the vectors; searching needs the same, of whatever depth.
        source: Where the lines come from, such as a file; kept with each.
        space: Another model's, see `SentenceEncoder.encode`; searching needs the same.
        graph: Add a graph for faster, approximate search, see `xsent.search.graph`.
        resume: Go on with a job that was stopped, if there is one; `texts` must begin with the lines it has read.
        force: Replace an existing index; forget a job that was stopped.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: No line has text; a resumed job has read other lines; another process is writing; a folder that
            would be replaced holds other things than an index.
        FileExistsError: There is an index, or a stopped job, and the options do not say what to do with it.
    """
    path = Path(path)
    partial = _partial(path)
    _check_free(path, partial, resume=resume, force=force)
    if graph:
        require_usearch()
    base = IndexState(encoder.fingerprint_of(space), encoder.dim)
    # Nobody adds to what is replaced meanwhile.
    with explain_write_errors(path), only_writer(path), _growing(partial, anew=force and not resume):
        with closing(_LineWriter(partial, base, source)) as writer:
            writer.start(resume=resume, force=force)
            state = _fill(path, writer, texts, encoder, space, graph, show_progress_bar)
        if path.exists():
            check_replaceable(path)
        replace_folder(partial, path) if force else put_in_place(partial, path)
    return state


def extend_index(
    path: str | Path,
    texts: Iterable[str],
    encoder: SentenceEncoder,
    *,
    source: str = "",
    space: str | None = None,
    graph: bool = False,
    resume: bool = False,
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexState:
    """Add lines to an index, whose numbers follow its own; until all are in, searches see it as it was.

    See `build_index`. Here `force` only forgets an addition that was stopped; without `graph` new lines are searched
    exactly beside the graph, if there is one. A FileExistsError also says that there is nothing to `resume`, a
    FingerprintError that the index is of another encoder, depth or space.
    """
    path = Path(path)
    IndexDatabase(path).close()  # says so if there is none
    if graph:
        require_usearch()
    with explain_write_errors(path), only_writer(path):
        with closing(SearchIndex(path)) as index:
            index.state.check_fingerprint(encoder.fingerprint_of(space), path, grows=True)
            index.verify()
            base = replace(index.state, start=index.state.lines, digest="")
        with closing(_LineWriter(path, base, source)) as writer:
            if resume and not force and not writer.stopped():
                raise file_exists_error(path, f"{_COMPLETE}; without --resume the lines are added")
            writer.start(resume=resume, force=force)
            return _fill(path, writer, texts, encoder, space, graph, show_progress_bar)


def can_resume(path: Path, *, add: bool) -> bool:
    """Whether a job that made an index, or added to one, was stopped and has saved something."""
    folder = path if add else _partial(path)
    if not has_index(folder):
        return False
    with closing(IndexDatabase(folder)) as database:
        return database.state(UNFINISHED) is not None


class _LineWriter(IndexWriter):
    """Appends lines from a source to what a folder has as `base`, as a job that can be stopped."""

    def __init__(self, folder: Path, base: IndexState, source: str) -> None:
        super().__init__(folder, base)
        self._base, self._source = base, source
        self.digest = LineDigest()

    def stopped(self) -> IndexState | None:
        """What a job has saved that was stopped; of a new index that has no name yet, all of it."""
        return self.database.state(UNFINISHED) or (None if self._base.rows else self.database.state())

    def start(self, *, resume: bool, force: bool) -> None:
        """Go on with a job that was stopped, or forget it; complains if neither is wanted."""
        stopped = self.stopped()
        if stopped and not (resume or force):
            done = f"{stopped.lines - stopped.start:,} lines"
            add = "--add " if self._base.rows else ""
            reason = f"holds {done} of a job that was stopped; {add}--resume goes on with it, {add}--force starts again"
            raise file_exists_error(self.folder, reason)
        if not resume:
            self.database.forget(self._base.rows)
        self.begin(stopped if stopped and resume else self._base)
        self._lines = self.state.lines

    def add(self, text: str, vector: Vectors) -> None:
        """Append a line and its vector [D]; a line whose vector is zero is counted, but never found."""
        self.digest.add(text)
        self._lines += 1
        self.append(self._source, self._lines, text, vector)
        if self.is_full:
            self._save()

    def finish(self) -> None:
        """Save what is left."""
        if self.rows == self._base.rows:
            self.database.forget(self._base.rows)  # empty lines are not worth resuming
            raise DataError(f"nothing to index: of {self._lines - self._base.start:,} lines none has text")
        self._save()

    def _save(self) -> None:
        self.save(replace(self.state, lines=self._lines, digest=self.digest.hex), UNFINISHED)


@contextmanager
def _growing(partial: Path, *, anew: bool) -> Iterator[None]:
    """Keep the folder of a new index to ourselves; what goes wrong leaves it only if the job has saved something."""
    partial.mkdir(exist_ok=True)
    with only_writer(partial):
        if anew or not has_index(partial):
            for left in partial.iterdir():
                left.unlink()
        try:
            yield
        except BaseException:
            if not _is_kept(partial):
                shutil.rmtree(partial)
            raise


def _is_kept(partial: Path) -> bool:
    """Whether a job that made an index has saved something, or something that we cannot read."""
    try:
        with closing(IndexDatabase(partial, create=True)) as database:
            return bool(database.state(UNFINISHED) or database.state())
    except (DataError, OSError):
        return True


def _partial(path: Path) -> Path:
    """Where a new index grows until it is complete."""
    return path.with_name(f".{path.name}.partial")


def _check_free(path: Path, partial: Path, *, resume: bool, force: bool) -> None:
    """See that an index can be made without anything else being lost, what a killed process left among it."""
    recover(path)
    if path.exists() and (force or not has_index(path)):
        check_replaceable(path)
    elif path.exists():
        advice = "--force replaces it, --add adds to it"
        if resume and not partial.exists():
            raise file_exists_error(path, f"{_COMPLETE}; {advice}")
        raise file_exists_error(path, f"exists; {advice}")
    if partial.exists() or partial.is_symlink():
        check_replaceable(partial, complete=False)


def _fill(
    path: Path,
    writer: _LineWriter,
    texts: Iterable[str],
    encoder: SentenceEncoder,
    space: str | None,
    graph: bool,
    show: bool,
) -> IndexState:
    """Add what the job is missing, and make it the index."""
    writer.state.check_fingerprint(encoder.fingerprint_of(space), writer.folder, grows=True)
    with explain_write_errors(path, lambda: writer.stopped() is not None):
        state = writer.state
        rest = writer.digest.skip(texts, state.lines - state.start, state.digest, writer.folder)
        lines = encoder.encode_items(rest, precision="float16", on_long="split", space=space)
        with Progress("lines", enabled=show) as progress:
            for text, vector in progress.count(lines):
                writer.add(text, vector)
        writer.finish()
        state = writer.state
        if graph:
            state = extend_graph(writer.folder, state, show_progress_bar=show)
        writer.database.save(state)
    for file in writer.folder.glob("graph-*.usearch"):
        if file.name != state.graph_file:
            file.unlink()
    return state


_WORTH_COMPACTING = 10_000  # removed rows; and there must be more of them than of others


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
    with only_writer(path), explain_write_errors(path, lambda: True, "make room, then the same call goes on"):
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
    passages = encoder.encode_items(_passages(documents), itemgetter(2), precision="float16", on_long="split")
    first = writer.rows
    try:
        with Progress("passages", enabled=show) as progress:
            for (document, line, text), vector in passages:
                writer.append(document.name, line, text, vector)
                if line:
                    progress.advance()
                else:
                    unsaved.append(StoredDocument(document.name, document.stamp, first, writer.rows - first))
                    first = writer.rows
                if writer.is_full:
                    _save(writer, unsaved, document, first)
                    unsaved = []
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
