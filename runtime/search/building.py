"""Lines of text to an index: made new, or added to one. A job that was stopped can be resumed."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING

from xsent.errors import DataError
from xsent.files import replace_folder
from xsent.progress import Progress
from xsent.search.graph import extend_graph, require_usearch
from xsent.search.manifest import GRAPHS, GROWING, MANIFEST, NO_INPUT, UNFINISHED, IndexManifest
from xsent.search.writer import IndexWriter

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder

_SAVE_EVERY = 10_000  # lines: about a minute's work on a Raspberry Pi
_OURS = (*GROWING, MANIFEST, UNFINISHED, GRAPHS, f".{MANIFEST}.*.part", f".{UNFINISHED}.*.part")  # patterns of names


def build_index(
    path: str | Path,
    texts: Iterable[str],
    encoder: "SentenceEncoder",
    *,
    graph: bool = False,
    resume: bool = False,
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexManifest:
    """Make an index of lines of text in constant memory; the folder appears once it is complete.

    Until then what is done lies beside it in `.NAME.partial`. It stays there if the job is stopped after 10,000 lines
    or more, or while the graph is made.

    Args:
        path: The folder to make; its parent must exist.
        texts: The lines, numbered from 1. An empty line keeps its number and is never found; a long one is encoded
            in windows.
        encoder: What makes the vectors; searching needs the same.
        graph: Add a graph for faster, approximate search, see `xsent.search.graph`.
        resume: Go on with a job that was stopped, if there is one; `texts` must begin with the lines it has read.
        force: Replace an existing index; forget a job that was stopped.
        show_progress_bar: Report progress on standard error.

    Returns:
        What the index says about itself.

    Raises:
        DataError: No line has text; a resumed job has read other lines; another process is writing; a folder that
            would be replaced holds other things than an index.
        FileExistsError: There is an index (without `force`) or a stopped job (without `force` or `resume`).
        FingerprintError: Another encoder began the job.
        MissingExtraError: usearch, which makes the graph, is not installed.
    """
    path = Path(path)
    partial = partial_folder(path)
    if path.exists():
        if force or not (path / MANIFEST).is_file():
            _check_ours(path)
        elif resume and not (partial / UNFINISHED).exists():
            raise _complete(path, "--force replaces it, --add adds to it")
        else:
            raise FileExistsError(errno.EEXIST, "exists; --force replaces it, --add adds to it", str(path))
    if partial.exists() or partial.is_symlink():
        _check_ours(partial, complete=False)
    partial.mkdir(exist_ok=True)
    with _alone(partial):
        base = IndexManifest(encoder.fingerprint, encoder.dim)
        try:
            state = _stopped(partial, base, resume=resume, force=force)
            manifest = _fill(partial, base, state, texts, encoder, graph=graph, show_progress_bar=show_progress_bar)
            if path.exists():
                _check_ours(path)
        except BaseException:
            if not (partial / UNFINISHED).exists():
                _remove_ours(partial)
            raise
        if force:
            replace_folder(partial, path)
        else:
            partial.rename(path)
    (path / UNFINISHED).unlink(missing_ok=True)
    return manifest


def extend_index(
    path: str | Path,
    texts: Iterable[str],
    encoder: "SentenceEncoder",
    *,
    graph: bool = False,
    resume: bool = False,
    force: bool = False,
    show_progress_bar: bool = False,
) -> IndexManifest:
    """Add lines to an index; until all are in, searches see the index as it was.

    Args:
        path: The index.
        texts: The lines; their numbers follow those of the index.
        encoder: The one that made the index.
        graph: Bring the graph up to date, or make one; otherwise new lines are searched exactly beside it.
        resume: Go on with an addition that was stopped, see `build_index`.
        force: Forget an addition that was stopped.
        show_progress_bar: Report progress on standard error.

    Returns:
        What the index now says about itself.

    Raises:
        DataError: As `build_index`; or there is no index, or it is damaged.
        FileExistsError: An addition was stopped, and neither `resume` nor `force` is set; or with `resume` none was.
        FingerprintError: Another encoder made the index.
        MissingExtraError: usearch, which makes the graph, is not installed.
    """
    path = Path(path)
    IndexManifest.open(path)  # says so if there is none
    with _alone(path):
        known = IndexManifest.open(path)
        base = replace(known, start=known.lines, input=NO_INPUT)
        state = _stopped(path, base, resume=resume, force=force)
        if resume and not force and state is base:
            raise _complete(path, "without --resume the lines are added")
        manifest = _fill(path, base, state, texts, encoder, graph=graph, show_progress_bar=show_progress_bar)
        (path / UNFINISHED).unlink(missing_ok=True)
    return manifest


def partial_folder(path: Path) -> Path:
    """Where a new index grows until it is complete."""
    return path.with_name(f".{path.name}.partial")


def _check_ours(folder: Path, *, complete: bool = True) -> None:
    """See that nothing but an index would be lost if a folder went."""
    if folder.is_symlink() or not folder.is_dir() or (complete and not (folder / MANIFEST).is_file()):
        raise DataError(f"{folder}: not an index, so it is not replaced; choose another name")
    if others := sorted(entry.name for entry in folder.iterdir() if not _is_ours(entry)):
        raise DataError(f"{folder}: holds {others[0]}, which is of no index; move it, or choose another name")


def _is_ours(entry: Path) -> bool:
    return entry.is_file() and any(entry.match(pattern) for pattern in _OURS)


def _remove_ours(folder: Path) -> None:
    for entry in filter(_is_ours, list(folder.iterdir())):
        entry.unlink()
    with suppress(OSError):  # someone has put something there meanwhile
        folder.rmdir()


def _complete(path: Path, advice: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, f"complete, there is nothing to resume; {advice}", str(path))


def _stopped(folder: Path, base: IndexManifest, *, resume: bool, force: bool) -> IndexManifest:
    """What a stopped job has saved on top of `base`; if there is none, `base`."""
    file = folder / UNFINISHED
    if force and not resume:
        file.unlink(missing_ok=True)
    if not file.exists():
        return base
    state = IndexManifest.read(file)
    if state.start != base.lines:  # of a job that was complete, and killed before it could remove its file
        file.unlink()
        return base
    if not resume:
        done = f"{state.lines - state.start:,} lines"
        reason = f"holds {done} of a job that was stopped; --resume goes on with it, --force starts again"
        raise FileExistsError(errno.EEXIST, reason, str(folder))
    return state


def _fill(
    folder: Path,
    base: IndexManifest,
    state: IndexManifest,
    texts: Iterable[str],
    encoder: "SentenceEncoder",
    *,
    graph: bool,
    show_progress_bar: bool,
) -> IndexManifest:
    """Add to `base` what `state` is missing, and write the manifest last."""
    state.check_fingerprint(encoder.fingerprint, folder)
    if graph:
        require_usearch()
    with IndexWriter(folder, state) as writer, Progress("lines", enabled=show_progress_bar) as progress:
        texts, sentences = tee(writer.skip_known(texts))  # the encoder reads a few dozen ahead, no more
        vectors = encoder.encode_iter(sentences, precision="float16", on_long="split")
        for vector, text in zip(vectors, texts, strict=False):
            writer.add(text, vector)
            progress.advance()
            if (writer.lines - state.start) % _SAVE_EVERY == 0:
                writer.save().write(folder / UNFINISHED)
        if writer.rows == base.rows:
            (folder / UNFINISHED).unlink(missing_ok=True)  # empty lines are not worth resuming
            raise DataError(f"nothing to index: of {writer.lines - state.start:,} lines none has text")
        manifest = writer.save()
    if graph:
        manifest.write(folder / UNFINISHED)
        manifest = extend_graph(folder, manifest, show_progress_bar=show_progress_bar)
    manifest.write(folder / MANIFEST)
    for file in folder.glob(GRAPHS):
        if file.name not in manifest.files:
            file.unlink()
    return manifest


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a folder; without effect on Windows."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataError(f"{folder}: another process is writing to it; wait until it is done") from error
        yield
    finally:
        os.close(handle)
