"""An index of lines: documents of lines that follow each other, whose stamps are the digests of their texts.

So a job that was stopped is run again, and what the index has already is skipped.
"""

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.files.atomic import (
    explain_write_errors,
    file_exists_error,
    only_writer,
    recover,
    refuse_links,
    remove_folder,
)
from xsent.files.text import LineDigest
from xsent.progress import Progress, known_total
from xsent.search.index import SearchIndex
from xsent.search.store import IndexState, StoredDocument
from xsent.search.writer import Document, IndexWriter, add_documents, new_index, state_of

_BLOCK_LINES, _BLOCK_TEXT = 1000, 1 << 20  # lines of a block, and characters after which it ends


@dataclass(frozen=True)
class _Lines(Document):
    """Lines of a source that follow each other."""

    passages: list[tuple[int, str]]
    file: str = ""

    @property
    def source(self) -> str:
        """Where the lines come from."""
        return self.file

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.passages)


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
    """Make an index of lines of text in constant memory.

    What is saved can be searched at once, and is kept if the job is stopped.

    Args:
        path: The folder to make; its parent must exist.
        texts: The lines, numbered from 1. One without a letter or digit keeps its number and is never found; a long
            one is encoded in windows.
        encoder: The encoder; searching needs the same one, of any depth.
        source: Where the lines come from, such as a file; stored with each line.
        space: Another model's space, see `SentenceEncoder.encode`; searching needs the same.
        resume: Continue a stopped job, if there is one; `texts` must begin with the lines that it has read. A complete
            index stays as it is.
        force: Replace an existing index once the new one is complete.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: No line has text; a resumed job has read other lines; another process is writing; a folder that
            would be replaced holds other things than an index.
        FileExistsError: There is an index, complete or not, and neither `resume` nor `force` says what to do with it.
    """
    path = Path(os.path.abspath(path))
    recover(path)
    refuse_links(path)
    job = _LineJob(texts, encoder, source, space, show_progress_bar)
    empty = IndexState(encoder.fingerprint_of(space), encoder.dim, clean=int(encoder.clean))
    if force:
        with new_index(path, empty, complete=True) as folder:
            return job.run(folder)
    is_new = not os.path.lexists(path)
    try:
        if is_new:
            with new_index(path, empty):
                pass
        with only_writer(path):
            state = state_of(path)
            stopped = _how_it_was_stopped(state)
            if state.rows and resume and not stopped:
                return _nothing_to_resume(path, state)
            if state.rows and not resume:
                raise file_exists_error(path, stopped or "exists; --force replaces it, --add adds to it")
            with _saying_what_is_kept(path):
                return job.run(path)
    except BaseException:
        if is_new:
            _remove_if_empty(path)
        raise


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
    """Add lines to an index of lines; their numbers follow its own.

    Arguments and errors as in `build_index`, but `force` only discards a stopped addition. Raises DataError also if it
    is an index of documents or has links, FingerprintError if it is of another encoder, depth or space.
    """
    path = Path(os.path.abspath(path))
    refuse_links(path)
    with only_writer(path):
        state = state_of(path)
        stopped = _how_it_was_stopped(state)
        if resume and not stopped:
            return _nothing_to_resume(path, state)
        _refuse_documents(path, state)
        if stopped and not (state.start and (resume or force)):
            raise file_exists_error(path, stopped)
        with closing(SearchIndex(path)) as index:
            index.state.check_fingerprint(encoder.fingerprint_of(space), path, clean=encoder.clean)
            index.check_passages()
        if stopped and force:
            with closing(IndexWriter(path)) as writer:
                _forget_addition(writer)
        with _saying_what_is_kept(path):
            return _LineJob(texts, encoder, source, space, show_progress_bar).run(path)


@dataclass(frozen=True)
class _LineJob:
    """Adds the lines of a source to an index, or those that are missing to an unfinished one."""

    texts: Iterable[str]
    encoder: SentenceEncoder
    source: str
    space: str | None
    show_progress_bar: bool

    def run(self, path: Path) -> IndexState:
        """Add the lines. Raises DataError if none of them has text."""
        with closing(IndexWriter(path)) as writer:
            start = writer.state.start
            writer.state.check_fingerprint(self.encoder.fingerprint_of(self.space), path, clean=self.encoder.clean)
            blocks = self._rest(path, writer)
            total = known_total(self.texts) if self.show_progress_bar else None
            with Progress("lines", total, enabled=self.show_progress_bar) as progress:
                progress.start_at(writer.state.lines - start)
                add_documents(writer, blocks, self.encoder, progress, self.space)
            if writer.database.last_line() <= start:
                count = writer.state.lines - start
                _forget_addition(writer)
                raise DataError(f"nothing to index: of {count:,} lines none has text")
            writer.save(replace(writer.state, start=writer.state.lines))
            return writer.state

    def _rest(self, path: Path, writer: IndexWriter) -> Iterator[_Lines]:
        """The blocks that the index lacks. Raises DataError if those before are not the ones that it has."""
        blocks = _blocks(self.texts, self.source, writer.state.start)
        for known in _blocks_of_addition(writer):
            if getattr(next(blocks, None), "stamp", "") != known.stamp:
                read = writer.state.lines - writer.state.start
                raise DataError(
                    f"{path}: the input does not begin with the {read:,} lines that were read before it was stopped; "
                    "resume with the same input, or start again with --force"
                )
        return blocks


def _blocks(texts: Iterable[str], source: str, start: int) -> Iterator[_Lines]:
    """Blocks of lines, numbered after `start`; a block depends only on its own lines and on those before it."""
    lines: list[tuple[int, str]] = []
    length, digest = 0, LineDigest()
    for number, text in enumerate(texts, start + 1):
        lines.append((number, text))
        length += len(text)
        digest.add(text)
        if len(lines) == _BLOCK_LINES or length > _BLOCK_TEXT:
            yield _Lines(str(lines[0][0]), digest.hex, lines, source)
            lines, length, digest = [], 0, LineDigest()
    if lines:
        yield _Lines(str(lines[0][0]), digest.hex, lines, source)


def _blocks_of_addition(writer: IndexWriter) -> list[StoredDocument]:
    """The blocks of an addition that is not complete; each is named by its first line."""
    return [block for block in writer.database.documents() if int(block.name) > writer.state.start]


def _forget_addition(writer: IndexWriter) -> None:
    """Remove what there is of an addition that is not complete."""
    state, firsts = writer.state, [block.first for block in _blocks_of_addition(writer)]
    writer.cut(replace(state, rows=min([state.rows, *firsts]), lines=state.start))


def _how_it_was_stopped(state: IndexState) -> str:
    """What to say of an index whose last job was stopped; "" if nothing is missing."""
    if not state.unfinished:
        return ""
    add, lines = "--add " * bool(state.start), state.lines - state.start
    return f"holds {lines:,} lines of a job that was stopped; {add}--resume continues it, {add}--force starts again"


def _saying_what_is_kept(path: Path) -> AbstractContextManager[None]:
    """Say to somebody who stops a job what is kept of it."""
    kept = "What was indexed is kept; the same command with --resume continues."
    return explain_write_errors(path, lambda: kept if state_of(path).unfinished else "")


def _remove_if_empty(path: Path) -> None:
    """Remove an index without passages, unless another process is writing it."""
    with suppress(DataError, OSError), only_writer(path):
        if not state_of(path).rows:
            remove_folder(path)


def _refuse_documents(path: Path, state: IndexState) -> None:
    if not state.lines:
        raise DataError(f"{path}: an index of documents, as xsent notes makes; name another for lines")


def _nothing_to_resume(path: Path, state: IndexState) -> IndexState:
    _refuse_documents(path, state)
    warnings.warn(f"{path}: complete, there is nothing to resume", stacklevel=3)
    return state
