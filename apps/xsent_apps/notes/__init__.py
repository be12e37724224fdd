"""`xsent notes`: the files of a folder, indexed, and searched by meaning and by words."""

import os
import stat
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
    say_nothing_close,
    update_index,
)
from xsent.cli import options
from xsent.cli.terminal import plain, print_json, print_row
from xsent.errors import require_extra
from xsent.files.atomic import as_write_error, recover, refuse_links
from xsent_apps.notes.passages import headings_of, sentences_of
from xsent_apps.notes.read import READERS, kind_of, read_passages

INDEX = ".xsent-notes"  # default name of the index, in the folder itself
READING = "6"  # of the rules by which files become passages; after a change of it all files are read again

_NAMED = 8  # files that were skipped, or kinds of them
_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Notes:
    """The files of a folder and their index; hidden files and folders, links and other kinds of files are ignored."""

    def __init__(self, folder: Path, index: Path | None = None, *, max_bytes: int = 20_000_000) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder}: not a folder; expected one with notes")
        self.folder = folder
        self.index = index or folder / INDEX
        refuse_links(self.index)
        self._max_bytes = max_bytes
        self._opened: SearchIndex | None = None  # if the last update has not changed the index
        self._begin()

    def _begin(self) -> None:
        self.skipped: dict[str, str] = {}  # files that the last update could not read, and why
        self.newly_skipped: list[str] = []  # those that are not known from an earlier update
        self.guessed: list[Path] = []  # texts that the last update has read as cp1252
        self.passed_over = Counter[str]()  # files of other kinds, by the end of their name

    def update(self, encoder: SentenceEncoder, *, force: bool = False, show_progress_bar: bool = False) -> int:
        """Index new and changed files and drop removed ones; return how many these are.

        After a kill, the next update does the rest. Raises DataError if the index, or something in it, is a link.
        """
        self._begin()
        refuse_links(self.index)
        recover(self.index)
        self._close()
        is_new = force or not self.index.is_dir() or not any(self.index.iterdir())
        known: dict[str, str] = {}
        if not is_new:
            with _advise_force(DataError):
                self._opened = SearchIndex(self.index)
                known = self._opened.documents()
            if self._opened.state.lines:
                raise DataError(f"{self.index}: an index of lines, as xsent index makes; name another --index")
        stamps = dict(self._files())
        changed = []
        for name, stamp in stamps.items():
            # A file that could not be read has an empty stamp; if it still cannot, the index stays as it is.
            if known.get(name) != stamp and (known.get(name) != "" or self._read(name, stamp).stamp):
                changed.append(name)
        removed = known.keys() - stamps.keys()
        if not (changed or removed or is_new):
            return 0
        self._close()
        self.guessed = []  # all of these are read again
        skipped_before = len(self.skipped)
        documents = (self._read(name, stamps[name]) for name in changed)
        resume = "--index names another place; the same command goes on"
        with as_write_error(self.index, resume), _advise_force(FingerprintError):
            update_index(
                self.index, documents, encoder, remove=removed, force=force, show_progress_bar=show_progress_bar
            )
        self.newly_skipped = [name for name in self.skipped if is_new or name in changed]
        return len(changed) + len(removed) - (len(self.skipped) - skipped_before)

    def search(
        self, encoder: SentenceEncoder, query: str, k: int = 5, *, words: bool = True, least: float | None = None
    ) -> list[Hit]:
        """Find the best passages for a query in the index as it was last updated."""
        refuse_links(self.index)
        if not self.index.is_dir():
            raise DataError(f"{self.index}: no index yet; leave --no-update away")
        with _advise_force(DataError, FingerprintError):
            self._opened = self._opened or SearchIndex(self.index)
            return self._opened.search(encoder, [query], k, words=words, least=least)[0]

    def size(self) -> tuple[int, int]:
        """Number of the files in the index, and of their passages."""
        self._opened = self._opened or SearchIndex(self.index)
        return sum(map(bool, self._opened.documents().values())), len(self._opened)

    def _close(self) -> None:
        if self._opened:
            self._opened.close()
            self._opened = None

    def _files(self) -> Iterator[tuple[str, str]]:
        """Yield the names of files within the folder, and a stamp that changes when the file does."""
        unread = lambda error: self.skipped.setdefault(f"{error.filename}/", str(error))  # noqa: E731
        for parent, folders, names in os.walk(self.folder, onerror=unread):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
                try:
                    found = path.lstat()
                except OSError:  # it has just been removed
                    continue
                if not stat.S_ISREG(found.st_mode):
                    continue
                if kind_of(path) not in READERS:
                    self.passed_over[path.suffix.lower()] += 1
                    continue
                name = path.relative_to(self.folder).as_posix()
                if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
                    reason = "its name has control characters, or is not Unicode; rename it"
                    self.skipped[name] = f"{str(path)!a}: {reason}"
                    continue
                yield name, f"{found.st_size} {found.st_mtime_ns} {READING}"

    def _read(self, name: str, stamp: str) -> Document:
        """Read a file as a document; one that cannot be read is empty, without a stamp, so that it is tried again."""
        path = self.folder / name
        size = int(stamp.split()[0])
        try:
            if size > self._max_bytes:
                raise DataError(f"{path}: {size:,} bytes, more than the {self._max_bytes:,} of --max-bytes")
            found = read_passages(path, self.guessed)
        except XsentError as error:
            self.skipped[name] = str(error)
            return Document(name, "", [])
        if not found and kind_of(path) == ".pdf":
            self.skipped[name] = f"{path}: its pages have no text, as after a scan; text recognition adds it"
        return Document(name, stamp, found)


@contextmanager
def _advise_force(*errors: type[XsentError]) -> Iterator[None]:
    """Add to these errors of an index that it can be rebuilt."""
    try:
        yield
    except errors as error:
        raise type(error)(f"{error}; --force rebuilds it") from None


@app.command(
    short_help="Search a folder of notes.",
    epilog='Example: xsent notes ~/notes "wann ist das Treffen?"',
    cls=options.QueryCommand,
)
def notes(
    folder: Annotated[Path, typer.Argument(help="A folder with texts, pages, mails, subtitles, PDF, .docx and .odt.")],
    query: Annotated[str | None, typer.Argument(help="In any language of the model; without it, only update.")] = None,
    k: Annotated[int, typer.Option("--top-k", "-n", "--k", "-k", min=1, help="Passages to find.")] = 5,
    index: Annotated[Path | None, typer.Option(help=f"The index; default: {INDEX} in the folder.")] = None,
    update: Annotated[bool, typer.Option(help="Look for new, changed and deleted files first.")] = True,
    words: options.WordsOption = True,
    least: options.LeastOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Update again whenever a file changes.")] = False,
    max_bytes: Annotated[int, typer.Option(min=1, help="Skip files that are larger.")] = 20_000_000,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    clean: options.CleanOption = False,
    threads: options.ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Rebuild the index.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Search a folder of notes by meaning and by words: score, file and line, passage, and what is above it.

    New and changed files are indexed first. A PDF has pages instead of lines.
    """
    if query is not None and not query.strip():
        raise DataError("the query is empty; ask for something")
    if watch and query is not None:
        raise typer.BadParameter("--watch takes no query: ask from another terminal meanwhile")
    found = Notes(folder, index, max_bytes=max_bytes)
    encoder = SentenceEncoder(model, layers=layers, threads=threads, clean=clean)
    encoder.count_tokens(query or "")  # raises before all files are read if the query is no text
    if update or force or watch:
        _update(found, encoder, force, is_asked=query is not None)
    if query is not None:
        hits = found.search(encoder, query, k, words=words, least=least)
        if not hits and least is not None:
            raise DataError(f"no passage has a score of {least} or more; give a lower --least")
        if not hits:
            raise DataError(f"{folder}: no text in it; notes end in {', '.join(READERS)}")
        if nothing := say_nothing_close(hits):
            typer.echo(nothing, err=True)
        _print(hits, encoder, query, as_json)
    if watch:
        _watch(found, folder, encoder)


def _watch(notes: Notes, folder: Path, encoder: SentenceEncoder) -> None:
    """Update whenever a file changes, and once when the watch has begun: one may have changed before."""
    with require_extra("apps"):
        from watchfiles import watch as changes

    place = notes.index.resolve()
    ours = lambda _, path: not Path(path).resolve().is_relative_to(place)  # noqa: E731
    typer.echo(f"Watching {_count(notes.size()[0], 'file')}; Ctrl-C stops.", err=True)
    watching = changes(folder, watch_filter=ours, raise_interrupt=True, yield_on_timeout=True, rust_timeout=1000)
    for number, changed in enumerate(watching):
        if changed or not number:
            _update(notes, encoder, is_asked=True)


def _update(notes: Notes, encoder: SentenceEncoder, force: bool = False, *, is_asked: bool) -> None:
    """Update and report it. Where something is asked, it reports less, and an error of an index is only a warning."""
    may_fail = is_asked and not force and notes.index.is_dir()
    before = notes.skipped.keys(), notes.passed_over
    try:
        count = notes.update(encoder, force=force, show_progress_bar=sys.stderr.isatty())
    except DataError as error:
        if not may_fail:
            raise
        typer.echo(f"Warning: not updated: {plain(error)}", err=True)
        return
    named = notes.newly_skipped[:_NAMED] if is_asked else [*notes.skipped]
    for name in named:
        typer.echo(f"Skipped: {plain(notes.skipped[name])}", err=True)
    others = notes.skipped.keys() - named
    if others and notes.skipped.keys() != before[0]:
        kinds = _by_kind(Counter(kind_of(Path(name)) for name in others))
        typer.echo(f"Skipped: {kinds}; xsent notes without a query names {'all' if named else 'them'}.", err=True)
    if notes.guessed:
        paths = ", ".join(plain(path) for path in notes.guessed[:_NAMED])
        more = f" and {len(notes.guessed) - _NAMED:,} more" if len(notes.guessed) > _NAMED else ""
        typer.echo(f"Read as cp1252, because they are not UTF-8: {paths}{more}.", err=True)
    if count or not is_asked:
        files, passages = notes.size()
        done = f"Indexed {_count(files, 'file')}, {_count(passages, 'passage')} in {notes.index}"
        typer.echo(f"{done}; new, changed or gone: {count:,}.", err=True)
    if notes.passed_over and (count or not may_fail) and notes.passed_over != before[1]:
        typer.echo(f"Passed over, not notes: {_by_kind(notes.passed_over)}.", err=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _by_kind(files: Counter[str]) -> str:
    """How many files there are of the most frequent kinds, by the ends of their names."""
    ordered = sorted(files.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{number:,} {plain(kind or 'without a suffix')}" for kind, number in ordered]
    rest = f", and {len(kinds) - _NAMED:,} other kinds" if len(kinds) > _NAMED else ""
    return ", ".join(kinds[:_NAMED]) + rest


def _print(hits: list[Hit], encoder: SentenceEncoder, query: str, as_json: bool) -> None:
    """Print the hits; on a terminal the sentence of each that is nearest to the query is bold."""
    if not (as_json or sys.stdout.isatty()):
        for hit in hits:
            print_row(f"{hit.score:.4f}", f"{hit.source}:{hit.line}", hit.text, hit.context)
        return
    vector = encoder.encode(query, on_long="split")
    for hit in hits:
        sentences = sentences_of(hit.text) or [hit.text]
        best = sentences[int(cosine_similarity(vector, encoder.encode(sentences, on_long="split")).argmax())]
        if as_json:
            place = {"file": hit.source, "line": hit.line}
            found = {"score": hit.score, **place, "text": hit.text, "best": best, "context": hit.context}
            print_json({**found, "close": hit.close})
            continue
        where = f"{hit.source}, page {hit.line}" if hit.source.lower().endswith(".pdf") else f"{hit.source}:{hit.line}"
        text = hit.text.replace(best, f"{_BOLD}{best}{_PLAIN}", 1)
        headings = headings_of(hit.context)
        typer.echo(f"{hit.score:.2f}  {_DIM}{where}  {headings}{_PLAIN}\n      {text}")
