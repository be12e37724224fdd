"""Lines of text to an index: made new, or added to one. A job that was stopped can be resumed."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import tee
from pathlib import Path

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.files import existing, naming_full_disk, only_writer, put_in_place, recover, replace_folder
from xsent.lines import LineDigest
from xsent.options import Vectors
from xsent.search.database import UNFINISHED, IndexDatabase, check_replaceable, has_index
from xsent.search.graph import extend_graph, require_usearch
from xsent.search.index import SearchIndex
from xsent.search.records import IndexState
from xsent.search.writer import IndexWriter
from xsent.terminal import Progress

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
    with naming_full_disk(path), only_writer(path), _growing(partial, anew=force and not resume):
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
    with naming_full_disk(path), only_writer(path):
        with closing(SearchIndex(path)) as index:
            index.state.check_fingerprint(encoder.fingerprint_of(space), path, grows=True)
            index.verify()
            base = replace(index.state, start=index.state.lines, digest="")
        with closing(_LineWriter(path, base, source)) as writer:
            if resume and not force and not writer.stopped():
                raise existing(path, f"{_COMPLETE}; without --resume the lines are added")
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
            raise existing(self.folder, reason)
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
            raise existing(path, f"{_COMPLETE}; {advice}")
        raise existing(path, f"exists; {advice}")
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
    with naming_full_disk(path, lambda: writer.stopped() is not None):
        state = writer.state
        rest = writer.digest.skip(texts, state.lines - state.start, state.digest, writer.folder)
        texts, sentences = tee(rest)  # the encoder reads a few dozen ahead, no more
        vectors = encoder.encode_iter(sentences, precision="float16", on_long="split", space=space)
        with Progress("lines", enabled=show) as progress:
            for vector, text in zip(progress.count(vectors), texts, strict=False):
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
