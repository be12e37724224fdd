"""Writing an index.

An index of lines is made at once (`build_index`) and can be added to (`extend_index`): a job that can be stopped and
resumed, and that shows in the index once it is complete. An index of documents follows documents that come, change and
go (`update_index`): every saved step shows at once.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.files.atomic import (
    atomic_folder,
    explain_write_errors,
    file_exists_error,
    keep_permissions,
    only_writer,
    open_to_write,
    permissions_within,
    put_in_place,
    recover,
    replace_folder,
    sync,
)
from xsent.files.tables import Text
from xsent.files.text import LineDigest
from xsent.precision import Vectors
from xsent.progress import Progress, known_total
from xsent.search.index import SearchIndex
from xsent.search.rows import STORED, VECTORS, check_length
from xsent.search.store import (
    INDEX,
    UNFINISHED,
    IndexDatabase,
    IndexState,
    Passage,
    StoredDocument,
    check_replaceable,
    has_index,
)
from xsent.words import has_words

SAVE_EVERY = 10_000  # passages between two saves: about a minute's work on a Raspberry Pi

_MOST_TEXT = 1 << 22  # characters in memory before a save
_WORTH_COMPACTING = 10_000  # removed rows; and more than the other rows
_COMPLETE = "complete, there is nothing to resume"


@dataclass(frozen=True)
class Document:
    """A unit that is indexed, replaced and removed as a whole, such as a file."""

    name: str  #: the `source` of its hits; the folders in a relative path count as words of all its passages
    stamp: str  #: anything that changes with the document, such as its time and size
    #: Line, from 1, and text; a third item says what the text is about, such as the headings above it. It counts in
    #: vector and words, and stands in `Hit.context`.
    passages: Iterable[tuple[int, str] | tuple[int, str, str]]


def build_index(
    path: str | Path,
    texts: Iterable[str],
    encoder: SentenceEncoder,
    *,
    source: str = "",
    space: str | None = None,
    resume: bool = False,
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexState:
    """Make an index of lines of text in constant memory; the folder appears once it is complete.

    Until then the work is in `.NAME.partial` in the same folder. It is kept if the job is stopped after 10,000 lines
    or more.

    Args:
        path: The folder to make; its parent must exist.
        texts: The lines, numbered from 1. One without a letter or digit keeps its number and is never found; a long
            one is encoded in windows.
        encoder: The encoder; searching needs the same one, of any depth.
        source: Where the lines come from, such as a file; stored with each line.
        space: Another model's space, see `SentenceEncoder.encode`; searching needs the same.
        resume: Resume a stopped job, if there is one; `texts` must begin with the lines it has read.
        force: Replace an existing index; discard a stopped job.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: No line has text; a resumed job has read other lines; another process is writing; a folder that
            would be replaced holds other things than an index.
        FileExistsError: There is an index or a stopped job, and neither `resume` nor `force` says what to do with it.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    _check_free(path, partial, resume=resume, force=force)
    base = IndexState(encoder.fingerprint_of(space), encoder.dim, clean=int(encoder.clean))
    # The lock on `path` keeps others from adding to an index that will be replaced.
    with explain_write_errors(path), only_writer(path), _growing(partial, path, anew=force and not resume):
        with closing(_LineJob(partial, base, source)) as job:
            job.start(resume=resume, force=force)
            state = job.run(path, texts, encoder, space, show_progress_bar)
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
    resume: bool = False,
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexState:
    """Add lines to an index of lines; their numbers follow its own. Searches see it unchanged until all are in.

    Arguments and errors as in `build_index`, but `force` only discards a stopped addition. Raises FileExistsError also
    if there is nothing to `resume`, DataError if it is an index of documents or has links, FingerprintError if it is of
    another encoder, depth or space.
    """
    path = Path(path)
    with closing(IndexDatabase(path)) as database:
        if not database.complete_state().lines:
            raise DataError(f"{path}: an index of documents, as xsent notes makes; name another for lines")
    with explain_write_errors(path), only_writer(path):
        with closing(SearchIndex(path)) as index:
            index.state.check_fingerprint(encoder.fingerprint_of(space), path, clean=encoder.clean)
            index.check_passages()
            base = replace(index.state, start=index.state.lines, digest="")
        with closing(_LineJob(path, base, source)) as job:
            if resume and not force and not job.stopped():
                raise file_exists_error(path, f"{_COMPLETE}; without --resume the lines are added")
            job.start(resume=resume, force=force)
            return job.run(path, texts, encoder, space, show_progress_bar)


def update_index(
    path: str | Path,
    documents: Iterable[Document],
    encoder: SentenceEncoder,
    *,
    remove: Iterable[str] = (),
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexState:
    """Put documents into an index of documents in constant memory, replacing their older versions.

    The index is made if there is none. Every saved step can be searched at once, also by words. After a kill the same
    call continues: an incomplete document has no stamp in `SearchIndex.documents` and must be given again. Rows of
    removed documents are freed when they are more than the others.

    Args:
        path: The folder; its parent must exist.
        documents: New and changed documents, each name once; they are read one after the other.
        encoder: The encoder; a passage that is too long for it is encoded in windows.
        remove: Names of documents to remove; unknown names are ignored.
        force: Discard everything in an index first, also in one that is damaged or of another encoder.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: The folder holds an index of lines or something else, it or something in it is a link, or another
            process is writing.
        FingerprintError: The index is of another encoder, or of another depth of this one.
    """
    path = Path(os.path.abspath(path))
    recover(path)
    if force or not (path.exists() and has_index(path)):
        _make_empty(path, encoder)
    kept = "Indexed files are kept; run the same again to resume."
    with only_writer(path), explain_write_errors(path, lambda: kept, "make room, then the same call goes on"):
        with closing(IndexDatabase(path, write=True)) as database:
            state = database.complete_state()
            if state.lines:
                raise DataError(f"{path}: an index of lines, as xsent index makes; name another for documents")
            state.check_fingerprint(encoder.fingerprint, path, clean=encoder.clean)
            database.forget(state.rows)
        with closing(IndexWriter(path, state)) as writer:
            writer.save(state, remove=remove)
            _add(writer, documents, encoder, show_progress_bar)
            state = writer.state
        with suppress(OSError):  # a full disk; everything that matters is saved
            state = _compact(path) or state
        return state


class IndexWriter:
    """Appends passages to the index in a folder; saved passages survive errors and kills."""

    def __init__(self, folder: Path, state: IndexState) -> None:
        self.folder = folder
        self.database = IndexDatabase(folder, write=True)
        self._file = open_to_write(folder / VECTORS, permissions_within(folder), buffering=0)
        self.begin(state)

    def close(self) -> None:
        """Close its files."""
        self._file.close()
        self.database.close()

    @property
    def rows(self) -> int:
        """Number of all rows, saved or not."""
        return self.state.rows + len(self._passages)

    @property
    def is_full(self) -> bool:
        """Whether it is time to save."""
        return self._appended >= SAVE_EVERY or self._characters > _MOST_TEXT

    def begin(self, state: IndexState) -> None:
        """Continue from a saved state."""
        self.state = state
        if state.rows:
            check_length(self.folder / VECTORS, self._saved_bytes)
        self._passages: list[Passage] = []  # not saved yet, as all that follows
        self._vectors = bytearray()
        self._characters = 0
        self._appended = 0  # passages, those without a vector too

    def append(self, vector: Vectors, source: str, line: int, text: str, context: str = "", id: str = "") -> None:
        """Add a passage and its vector [D]; one without a letter or digit is left out, it would be near everything."""
        self._appended += 1
        if vector.any() and has_words(f"{context} {text}"):
            stored = vector.astype(STORED, copy=False).tobytes()
            self._vectors += stored  # first: after Ctrl-C between the two a surplus vector does no harm
            self._passages.append(Passage.of(stored, source, line, text, context, id))
            self._characters += len(context) + len(text)

    def save(
        self,
        state: IndexState,
        name: str = INDEX,
        *,
        documents: Iterable[StoredDocument] = (),
        remove: Iterable[str] = (),
    ) -> None:
        """Save everything: first the vectors, then passages and state; the state says how many vectors count."""
        try:
            self._file.truncate(self._saved_bytes)  # leftovers of a killed process
            self._file.seek(self._saved_bytes)
            left = memoryview(self._vectors)
            while left:  # a disk that is nearly full takes only a part
                left = left[self._file.write(left) :]
            sync(self._file)
        except OSError:
            self._file.truncate(self._saved_bytes)
            raise
        state = replace(state, rows=self.rows)
        self.database.save(
            state, name, first=self.state.rows, passages=self._passages, documents=documents, remove=remove
        )
        self.begin(state)

    @property
    def _saved_bytes(self) -> int:
        return self.state.rows * self.state.dim * STORED.itemsize


class _LineJob(IndexWriter):
    """Adds lines from a source to a folder that has the state `base`."""

    def __init__(self, folder: Path, base: IndexState, source: str) -> None:
        super().__init__(folder, base)
        self._base = base
        self._source = source

    def stopped(self) -> IndexState | None:
        """The saved state of a stopped job; a new index that only lacks its name is complete."""
        return self.database.state(UNFINISHED) or (None if self._base.rows else self.database.state())

    def start(self, *, resume: bool, force: bool) -> None:
        """Resume or discard a stopped job. Raises FileExistsError if there is one and neither is asked for."""
        stopped = self.stopped()
        if stopped and not (resume or force):
            done = f"{stopped.lines - stopped.start:,} lines"
            add = "--add " if self._base.rows else ""
            reason = f"holds {done} of a job that was stopped; {add}--resume goes on with it, {add}--force starts again"
            raise file_exists_error(self.folder, reason)
        if not resume:
            self.database.forget(self._base.rows)
        self.begin(stopped if stopped and resume else self._base)

    def run(
        self,
        path: Path,
        texts: Iterable[str],
        encoder: SentenceEncoder,
        space: str | None,
        show_progress_bar: bool,
    ) -> IndexState:
        """Add the lines that are missing, and complete the index that is or will be at `path`."""
        self.state.check_fingerprint(encoder.fingerprint_of(space), self.folder, clean=encoder.clean)
        kept = "What was indexed is kept; the same command with --resume goes on."
        with explain_write_errors(path, lambda: kept if self.stopped() else ""):
            digest = LineDigest()
            read = self.state.lines - self.state.start
            rest = digest.skip(texts, read, self.state.digest, self.folder)
            vectors = encoder.encode_items(rest, precision="float16", on_long="split", space=space)
            number = self.state.lines
            total = known_total(texts) if show_progress_bar else None
            with Progress("lines", total and total - read, enabled=show_progress_bar) as progress:
                for number, (text, vector) in enumerate(progress.count(vectors), self.state.lines + 1):
                    digest.add(text)
                    self.append(vector, self._source, number, text, id=text.id if isinstance(text, Text) else "")
                    if self.is_full:
                        self.save(replace(self.state, lines=number, digest=digest.hex), UNFINISHED)
            if self.rows == self._base.rows:
                self.database.forget(self._base.rows)  # lines without text are not worth resuming
                raise DataError(f"nothing to index: of {number - self._base.start:,} lines none has text")
            self.save(replace(self.state, lines=number, digest=digest.hex), UNFINISHED)
            self.database.save(self.state)
        return self.state


def _check_free(path: Path, partial: Path, *, resume: bool, force: bool) -> None:
    """Raises FileExistsError or DataError if making an index would lose anything else."""
    recover(path)
    if os.path.lexists(path) and (force or not has_index(path)):
        check_replaceable(path)
    elif path.exists():
        advice = "--force replaces it, --add adds to it"
        if resume and not partial.exists():
            raise file_exists_error(path, f"{_COMPLETE}; {advice}")
        raise file_exists_error(path, f"exists; {advice}")
    if os.path.lexists(partial):
        check_replaceable(partial, complete=False)


@contextmanager
def _growing(partial: Path, path: Path, *, anew: bool) -> Iterator[None]:
    """Lock the folder of a new index, which will be at `path`; after an error keep it only if something is saved."""
    try:
        partial.mkdir(0o700, exist_ok=True)
        keep_permissions(partial, path)
        with only_writer(partial):
            try:
                if anew or not has_index(partial):
                    for left in partial.iterdir():
                        left.unlink()
                yield
            except BaseException:
                if not _is_kept(partial):
                    shutil.rmtree(partial)
                raise
    except KeyboardInterrupt:
        with suppress(OSError):  # it is empty only if this process has just made it
            partial.rmdir()
        raise


def _is_kept(partial: Path) -> bool:
    """Whether a job that made an index has saved something, readable or not."""
    if not has_index(partial):
        return False  # it was stopped before it made its files
    try:
        with closing(IndexDatabase(partial, write=True)) as database:
            return bool(database.state(UNFINISHED) or database.state())
    except (DataError, OSError):
        return True


def _make_empty(path: Path, encoder: SentenceEncoder) -> None:
    """Make an index without documents, replacing any other."""
    with only_writer(path):
        if os.path.lexists(path):
            check_replaceable(path, complete=False)
        state = IndexState(encoder.fingerprint, encoder.dim, clean=int(encoder.clean))
        with atomic_folder(path, private=True) as folder, closing(IndexWriter(folder, state)) as writer:
            writer.save(state)


def _add(writer: IndexWriter, documents: Iterable[Document], encoder: SentenceEncoder, show: bool) -> None:
    """Append all passages of all documents, and save from time to time."""
    unsaved: list[StoredDocument] = []
    document: Document | None = None
    passages = encoder.encode_items(_passages(documents), _text_to_encode, precision="float16", on_long="split")
    first = writer.rows
    try:
        with Progress("passages", enabled=show) as progress:
            for (document, line, text, context), vector in passages:
                writer.append(vector, document.name, line, text, context)
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
    """Save complete documents, and the passages of the last one, whose first row is `first`, without a stamp."""
    if last is not None and writer.rows > first:
        complete = [*complete, StoredDocument(last.name, "", first, writer.rows - first)]
    writer.save(writer.state, documents=complete)


def _text_to_encode(passage: tuple[Document, int, str, str]) -> str:
    """A passage after its context: as one text they are found more often than by the mean of their vectors."""
    _, _, text, context = passage
    return f"{context}: {text}" if context and text.strip() else text


def _passages(documents: Iterable[Document]) -> Iterator[tuple[Document, int, str, str]]:
    """Passages with their documents and contexts; line 0, without text, ends each document."""
    names = set[str]()
    for document in documents:
        if document.name in names:
            raise ValueError(f"document {document.name!r} comes twice; give each name once")
        names.add(document.name)
        for line, text, *context in document.passages:
            if line < 1:
                raise ValueError(f"document {document.name!r}: line {line}; they are counted from 1")
            yield document, line, text, "".join(context)
        yield document, 0, "", ""


def _compact(path: Path) -> IndexState | None:
    """Write an index of documents anew without its removed rows, if that is worth it."""
    with closing(SearchIndex(path)) as index:
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
