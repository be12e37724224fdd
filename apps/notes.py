"""`xsent notes`: a folder of notes, searched by meaning and by words in any language of the model."""

import os
import stat
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing
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
    update_index,
)
from xsent.apps.reading import READERS, cut_sentences, read_passages
from xsent.commands.options import BundleOption, JsonOption, LayersOption, ThreadsOption
from xsent.errors import needing
from xsent.files import naming_failed_write, recover
from xsent.terminal import one_line_errors, plain, print_json, print_row

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

INDEX = ".xsent-notes"  # in the folder itself, unless said otherwise

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Notes:
    """The files of a folder, and the index of what they said when it was last updated.

    Hidden files and folders, links, and files of other kinds are passed over.
    """

    def __init__(self, folder: Path, index: Path | None = None, *, max_bytes: int = 20_000_000) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder}: not a folder; expected one with notes")
        self.folder = folder
        self.index = index or folder / INDEX
        self.skipped: list[str] = []  # why a file could not be read, of the last update
        self._max_bytes = max_bytes

    def update(self, encoder: SentenceEncoder, *, force: bool = False, show_progress_bar: bool = False) -> int:
        """Bring new and changed files into the index, and what is gone out of it; how many these are comes back.

        A process that is killed meanwhile leaves what it has done; the next update does the rest.
        """
        self.skipped = []
        recover(self.index)
        empty = force or not self.index.is_dir() or not any(self.index.iterdir())
        known: dict[str, str] = {}
        if not empty:
            with closing(SearchIndex(self.index)) as index:
                if index.state.lines:
                    raise DataError(f"{self.index}: holds lines that xsent index has put in; name another --index")
                known = index.documents()
        there = dict(self._files())
        gone = known.keys() - there.keys()
        # What could not be read has no stamp; if it still cannot, the index need not be touched.
        changed = [
            name
            for name, stamp in there.items()
            if known.get(name) != stamp and (known.get(name) != "" or self._read(name, stamp).stamp)
        ]
        passed_over = len(self.skipped)
        if changed or gone or empty:
            documents = (self._read(name, there[name]) for name in changed)
            with naming_failed_write(self.index, "--index names another place; the same command goes on"):
                update_index(
                    self.index, documents, encoder, remove=gone, force=force, show_progress_bar=show_progress_bar
                )
        return len(changed) + len(gone) - (len(self.skipped) - passed_over)

    def search(self, encoder: SentenceEncoder, query: str, k: int = 5, *, words: bool = True) -> list[Hit]:
        """The passages that answer a query best, as of the last update."""
        if not self.index.is_dir():
            raise DataError(f"{self.index}: no index yet; leave --no-update away")
        return SearchIndex(self.index).search(encoder, [query], k, words=words)[0]

    def _files(self) -> Iterator[tuple[str, str]]:
        """Names within the folder, and what changes when the file does."""
        for parent, folders, names in os.walk(self.folder, onerror=lambda error: self.skipped.append(str(error))):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
                if path.suffix.lower() in READERS and (found := _regular_file(path)):
                    name = path.relative_to(self.folder).as_posix()
                    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
                        reason = "its name has control characters, or is not Unicode; rename it"
                        self.skipped.append(f"{str(path)!a}: {reason}")
                    else:
                        yield name, f"{found.st_size} {found.st_mtime_ns}"

    def _read(self, name: str, stamp: str) -> Document:
        """A file as a document; one that cannot be read is empty, and without stamp, so that it is tried again."""
        path = self.folder / name
        try:
            if (size := int(stamp.split()[0])) > self._max_bytes:
                raise DataError(f"{path}: {size:,} bytes, more than the {self._max_bytes:,} of --max-bytes")
            return Document(name, stamp, read_passages(path))
        except XsentError as error:
            self.skipped.append(str(error))
            return Document(name, "", [])


def _regular_file(path: Path) -> os.stat_result | None:
    """What a plain file is like; None for links and whatever else, and what has just gone."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


@app.command(epilog='Example: xsent notes ~/notes "wann ist das Treffen?"')
@one_line_errors()
def notes(
    folder: Annotated[Path, typer.Argument(help="With text, Markdown, HTML and PDF files, in folders as they are.")],
    query: Annotated[str | None, typer.Argument(help="In any language of the model; without it, only update.")] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Passages to find.")] = 5,
    index: Annotated[Path | None, typer.Option(help=f"The index; default: {INDEX} in the folder.")] = None,
    update: Annotated[bool, typer.Option(help="Look for new, changed and deleted files first.")] = True,
    words: Annotated[bool, typer.Option(help="Let passages with words of the query come first.")] = True,
    watch: Annotated[bool, typer.Option("--watch", help="Keep on updating whenever a file changes.")] = False,
    max_bytes: Annotated[int, typer.Option(min=1, help="Files that are larger are skipped.")] = 20_000_000,
    model: BundleOption = None,
    layers: LayersOption = None,
    threads: ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Make the index anew.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search a folder of notes by meaning and by words: score, file and line, and the passage, best first.

    What has changed since the last time is indexed first. A PDF has pages instead of lines.
    """
    if query is not None and not query.strip():
        raise DataError("the query is empty; ask for something")
    if watch and query is not None:
        raise typer.BadParameter("--watch takes no query: ask from another terminal meanwhile")
    found = Notes(folder, index, max_bytes=max_bytes)
    encoder = SentenceEncoder(model, layers=layers, threads=threads)
    encoder.count_tokens(query or "")  # refuses what is no text now, not after all the files
    try:
        if update or force or watch:
            _update(found, encoder, force, may_fail=query is not None and not force and found.index.is_dir())
        if query is not None:
            if not (hits := found.search(encoder, query, k, words=words)):
                raise DataError(f"{folder}: no text in it; notes end in {', '.join(READERS)}")
            _print(hits, encoder, query, as_json)
    except (DataError, FingerprintError) as error:  # the advice of other commands
        of_index = str(error).startswith((str(found.index), str(found.index.resolve())))
        remedy = "; --force makes it anew" if of_index and found.index.is_dir() and not force else ""
        raise type(error)(f"{error}{remedy}") from None
    if watch:
        with needing("apps"):
            from watchfiles import watch as changes

        place = found.index.resolve()
        ours = lambda _, path: not Path(path).resolve().is_relative_to(place)  # noqa: E731
        for _ in changes(folder, watch_filter=ours, raise_interrupt=True):
            _update(found, encoder, may_fail=True)


def _update(notes: Notes, encoder: SentenceEncoder, force: bool = False, *, may_fail: bool = False) -> None:
    """Update, and say what came of it; where it may fail, what there is can still be searched."""
    try:
        count = notes.update(encoder, force=force, show_progress_bar=sys.stderr.isatty())
    except KeyboardInterrupt:
        typer.echo("What was indexed is kept; the same command goes on.", err=True)
        raise
    except DataError as error:
        if not may_fail:
            raise
        typer.echo(f"Warning: not updated: {plain(error)}", err=True)
        return
    for reason in notes.skipped:
        typer.echo(f"Skipped: {plain(reason)}", err=True)
    if count:
        typer.echo(f"New, changed or gone: {count:,}. {notes.index} is up to date.", err=True)


def _print(hits: list[Hit], encoder: SentenceEncoder, query: str, as_json: bool) -> None:
    """All hits; on a terminal the sentence of each that is nearest to the query stands out."""
    if not (as_json or sys.stdout.isatty()):
        for hit in hits:
            print_row(f"{hit.score:.4f}", f"{hit.source}:{hit.line}", hit.text)
        return
    asked = encoder.encode(query, on_long="split")
    for hit in hits:
        sentences = cut_sentences(hit.text) or [hit.text]
        best = sentences[int(cosine_similarity(asked, encoder.encode(sentences, on_long="split")).argmax())]
        if as_json:
            found = {"score": hit.score, "file": hit.source, "line": hit.line, "text": hit.text, "best": best}
            print_json(found)
            continue
        place = f"{hit.source}, page {hit.line}" if hit.source.lower().endswith(".pdf") else f"{hit.source}:{hit.line}"
        text = hit.text.replace(best, f"{_BOLD}{best}{_PLAIN}", 1)
        typer.echo(f"{hit.score:.2f}  {_DIM}{place}{_PLAIN}\n      {text}")
