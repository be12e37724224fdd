"""An index of lines: documents of consecutive lines, whose stamps are the digests of their texts.

To resume an interrupted job, run it again: what the index already contains is skipped.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, lone_surrogate, not_text, warn
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
from xsent.tasks import each_text

_BLOCK_LINES, _BLOCK_TEXT = 1000, 1 << 20  # lines per block, and characters after which a block ends


@dataclass(frozen=True)
class _Lines(Document):
    """Consecutive lines of a source."""

    passages: list[tuple[int, str]]
    file: str = ""

    @property
    def source(self) -> str:
        """The source of the lines."""
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
    show_progress_bar: bool | None = False,
) -> IndexState:
    """Build an index of lines of text in constant memory.

    Saved lines can be searched at once, and are kept if the job is interrupted.

    Args:
        path: The folder to create; its parent must exist.
        texts: The lines, numbered from 1. A line without words, such as "..." or "N/A", keeps its number but is never
            found. A line that is too long to be encoded at once is found by the nearest of its windows.
        encoder: The encoder; searching needs the same one, at any depth.
        source: Where the lines come from, such as a file; stored with each line.
        space: Another model's space, see `SentenceEncoder.encode`; searching needs the same.
        resume: Continue an interrupted job, if there is one; `texts` must begin with the lines that it read. A
            complete index is not changed, and must contain the lines.
        force: Replace an existing index once the new one is complete.
        show_progress_bar: Show a bar on standard error; None shows it on a terminal, elsewhere a line a minute.

    Raises:
        DataError: No line has text; a resumed job read other lines; another process is writing; a folder that would be
            replaced is not just an index.
        FileExistsError: There is an index, complete or not, and neither `resume` nor `force` is given.

    Example:
        >>> build_index("lines.index", NOTES, encoder).lines
        3
    """
    texts = each_text(texts)
    path = Path(os.path.abspath(path))
    recover(path)
    refuse_links(path)
    add = partial(_add_lines, texts=texts, encoder=encoder, source=source, space=space, show=show_progress_bar)
    empty = IndexState(encoder.fingerprint_of(space), encoder.dim_of(space), clean=int(encoder.clean))
    if force:
        with new_index(path, empty, complete=True) as folder:
            try:
                return add(folder)
            except KeyboardInterrupt as error:
                error.add_note("The older index is kept, if there is one; run the same command again.")
                raise
    is_new = not os.path.lexists(path)
    try:
        with _explain_what_is_kept(path):
            if is_new:
                with new_index(path, empty):
                    pass
            with only_writer(path):
                state = state_of(path)
                stopped = _interruption_message(state)
                if state.rows and resume and not stopped:
                    return _nothing_to_resume(path, state, texts)
                if state.rows and not resume:
                    raise file_exists_error(path, stopped or "exists; --force replaces it, --add adds to it")
                return add(path)
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
    show_progress_bar: bool | None = False,
) -> IndexState:
    """Add lines to an index of lines; numbering continues after its last line.

    Arguments and errors as in `build_index`, but `force` only discards an interrupted addition. Also raises DataError
    if it is an index of documents or has links, FingerprintError if it is of another encoder, depth or space.

    Example:
        >>> state = build_index("more.index", NOTES, encoder)
        >>> extend_index("more.index", ["The train is at nine."], encoder).lines
        4
    """
    texts = each_text(texts)
    path = Path(os.path.abspath(path))
    refuse_links(path)
    with only_writer(path):
        state = state_of(path)
        stopped = _interruption_message(state)
        if resume and not stopped:
            return _nothing_to_resume(path, state, texts)
        _refuse_documents(path, state)
        if stopped and not (state.start and (resume or force)):
            raise file_exists_error(path, stopped)
        with SearchIndex(path) as index:
            index.state.check_fingerprint(encoder.fingerprint_of(space), path, clean=encoder.clean)
            index.check_passages()
        if stopped and force:
            with closing(IndexWriter(path)) as writer:
                _discard_addition(writer)
        with _explain_what_is_kept(path):
            return _add_lines(path, texts, encoder, source, space, show_progress_bar)


def _add_lines(
    path: Path, texts: Iterable[str], encoder: SentenceEncoder, source: str, space: str | None, show: bool | None
) -> IndexState:
    """Add the lines of a source to an index, or the missing ones to an unfinished index.

    Raises DataError if none of them has text, or if the earlier ones do not match the index.
    """
    with closing(IndexWriter(path)) as writer:
        if writer.database.documents():
            _refuse_documents(path, writer.state)
        start, read = writer.state.start, writer.state.lines - writer.state.start
        writer.state.check_fingerprint(encoder.fingerprint_of(space), path, clean=encoder.clean)
        blocks = _blocks(texts, source, start)
        for known in _blocks_of_addition(writer):
            if getattr(next(blocks, None), "stamp", "") != known.stamp:
                raise DataError(
                    f"{path}: the input does not begin with the {read:,} lines that were read before the interruption; "
                    "resume with the same input, or start over with --force"
                )
        with Progress("lines", known_total(texts), enabled=show) as progress:
            progress.start_at(read)
            add_documents(writer, blocks, encoder, progress, space)
        if writer.database.last_line() <= start:
            count = writer.state.lines - start
            _discard_addition(writer)
            raise DataError(f"{source or 'the texts'}: nothing to index; none of {count:,} lines has text")
        writer.save(replace(writer.state, start=writer.state.lines))
        return writer.state


def _blocks(texts: Iterable[str], source: str, start: int) -> Iterator[_Lines]:
    """Blocks of lines, numbered after `start`; a block depends only on its own and earlier lines."""
    lines: list[tuple[int, str]] = []
    length, digest = 0, LineDigest()
    for number, text in enumerate(texts, start + 1):
        if not isinstance(text, str):
            raise TypeError(f"line {number}: {not_text(text)}")
        try:
            digest.add(text)
        except UnicodeEncodeError as error:
            raise ValueError(f"line {number}: {lone_surrogate(error, text)}, which is not valid text") from error
        lines.append((number, text))
        length += len(text)
        if len(lines) == _BLOCK_LINES or length > _BLOCK_TEXT:
            yield _Lines(str(lines[0][0]), digest.hex, lines, source)
            lines, length, digest = [], 0, LineDigest()
    if lines:
        yield _Lines(str(lines[0][0]), digest.hex, lines, source)


def _blocks_of_addition(writer: IndexWriter) -> list[StoredDocument]:
    """The blocks of an incomplete addition; each is named after its first line."""
    return [block for block in writer.database.documents() if int(block.name) > writer.state.start]


def _discard_addition(writer: IndexWriter) -> None:
    """Remove the blocks of an incomplete addition."""
    state, blocks = writer.state, _blocks_of_addition(writer)
    first = min([state.rows, *(block.first for block in blocks)])
    writer.cut(replace(state, rows=first, lines=state.start), [block.name for block in blocks])


def _interruption_message(state: IndexState) -> str:
    """The message for an index whose last job was interrupted; empty if it is complete."""
    if not state.unfinished:
        return ""
    add, lines = "--add " * bool(state.start), state.lines - state.start
    return f"holds {lines:,} lines of an interrupted job; continue with {add}--resume or start over with {add}--force"


@contextmanager
def _explain_what_is_kept(path: Path) -> Iterator[None]:
    """Tell a user who interrupts a job what is kept."""

    def kept() -> str:
        with suppress(DataError, OSError):  # it is not made yet
            state = state_of(path)
            if state.unfinished:
                lines = f"Indexed lines are kept: {state.lines - state.start:,}"
                return f"{lines}; run the same command with --resume to continue."
        return ""

    with explain_write_errors(path, kept, nothing="No line is indexed yet; run the same command again."):
        yield


def _remove_if_empty(path: Path) -> None:
    """Remove an index without passages, unless another process is writing it."""
    with suppress(DataError, OSError), only_writer(path):
        if not state_of(path).rows:
            remove_folder(path)


def _refuse_documents(path: Path, state: IndexState) -> None:
    if not state.lines:
        raise DataError(f"{path}: an index of documents, from xsent notes; choose another name for lines")


def _nothing_to_resume(path: Path, state: IndexState, texts: Iterable[str]) -> IndexState:
    """Warn that the lines are in the index already. Raises DataError if they are not."""
    _refuse_documents(path, state)
    with SearchIndex(path) as index:
        known = {block.stamp for block in index.stored_documents()}
    if not all(block.stamp in known for block in _blocks(texts, "", 0)):
        raise DataError(
            f"{path}: complete, but without these lines; add them with --add, without --resume, or start over with "
            "--force"
        )
    warn(f"{path}: already complete; there is nothing to resume")
    return state
