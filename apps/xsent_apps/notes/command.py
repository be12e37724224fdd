"""`xsent notes`: the files of a folder, indexed, and searched by meaning and by words."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from numpy.typing import ArrayLike

from xsent import DataError, Hit, SentenceEncoder, cosine_similarity, no_match_message
from xsent.cli import options
from xsent.cli.program import App, QueryCommand
from xsent.cli.rows import row_output
from xsent.cli.terminal import counted, plain
from xsent.errors import find_extra, require_extra
from xsent_apps.notes.folder import INDEX, Notes
from xsent_apps.notes.passages import headings_of, sentences_of
from xsent_apps.notes.read import READERS, kind_of
from xsent_apps.notes.source import Remarks

_COLUMNS = {"score": float, "place": str, "text": str, "context": str}
_JSON_COLUMNS = {
    "score": float,
    "file": str,
    "line": int,
    "text": str,
    "best": str,
    "context": str,
    "close": bool,
}
_NAMED = 8  # most skipped files, or kinds of them, to list
_CONTROL = re.compile(r"[\x80-\x9f]")  # of terminals; passages have no others
_INDENT = 6 * " "
_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"

app = App()


@app.command(
    short_help="Search a folder of notes.",
    epilog='Example: xsent notes ~/notes "wann ist das Treffen?"',
    cls=QueryCommand,
    rich_help_panel="Search",
)
def notes(
    folder: Annotated[
        Path, typer.Argument(help="A folder with texts, HTML, email, subtitles, PDF, .docx and .odt files.")
    ],
    query: Annotated[
        str | None, typer.Argument(help="A query in any language of the model; without it, only update.")
    ] = None,
    k: Annotated[int, typer.Option("-n", "-k", "--top-k", min=1, help="Number of passages to find.")] = 5,
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
    as_json: options.JsonLinesOption = False,
) -> None:
    """Search a folder of notes by meaning and by words: score, file and line, passage, and the headings above it.

    New and changed files are indexed first. In a PDF, the line is the page.
    """
    if query is not None and not query.strip():
        raise DataError("the query is empty; ask for something")
    if watch and query is not None:
        raise typer.BadParameter("--watch takes no query; search from another terminal while it runs")
    found = Notes(folder, index, max_bytes=max_bytes)
    if update or force or watch:
        find_extra("apps", "sentencex", *["watchfiles"] * watch)
    encoder = SentenceEncoder(model, layers=layers, threads=threads, clean=clean)
    encoder.count_tokens(query or "")  # reject a query that is not text before reading all files
    if update or force or watch:
        _update(found, encoder, force, is_asked=query is not None)
    if query is not None:
        hits = found.search(encoder, query, k, words=words, least=least)
        if not hits:
            raise DataError(_why_nothing(found, folder, least, update))
        if message := no_match_message(hits):
            typer.echo(message, err=True)
        _print(hits, encoder, query, as_json)
    if watch:
        _watch(found, folder, encoder)


def _why_nothing(notes: Notes, folder: Path, least: float | None, update: bool) -> str:
    """Why a search found nothing."""
    if least is not None:
        return f"no passage has a score of {least} or more; use a lower --least"
    if not update:
        return f"{notes.index}: empty so far; run again without --no-update"
    return f"{folder}: contains no notes with text; expected files that end in {', '.join(READERS)}"


def _watch(notes: Notes, folder: Path, encoder: SentenceEncoder) -> None:
    """Update whenever a file changes, and once at the start, because one may have changed in between."""
    with require_extra("apps"):
        from watchfiles import watch as changes

    place = notes.index.resolve()
    is_note = lambda _, path: not Path(path).resolve().is_relative_to(place)  # noqa: E731
    typer.echo(f"Watching {counted(notes.size()[0], 'file')}; Ctrl-C stops.", err=True)
    watching = changes(folder, watch_filter=is_note, raise_interrupt=True, yield_on_timeout=True, rust_timeout=1000)
    for number, changed in enumerate(watching):
        if changed or not number:
            _update(notes, encoder, is_asked=True)


def _update(notes: Notes, encoder: SentenceEncoder, force: bool = False, *, is_asked: bool) -> None:
    """Update and report. With a query, it reports less, and an error of an existing index is only a warning."""
    may_fail = is_asked and not force and notes.index.is_dir()
    before = notes.skipped.keys(), notes.ignored
    try:
        count = notes.update(encoder, force=force, show_progress_bar=None)
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
        typer.echo(f"Skipped: {kinds}; run xsent notes without a query to list {'all' if named else 'them'}.", err=True)
    _report_remarks(notes.remarks)
    if count or not is_asked:
        files, passages = notes.size()
        done = f"Indexed {counted(files, 'file')}, {counted(passages, 'passage')} in {notes.index}"
        typer.echo(f"{done}; new, changed or deleted: {count:,}.", err=True)
    if notes.ignored and (count or not may_fail) and notes.ignored != before[1]:
        typer.echo(f"Ignored, not notes: {_by_kind(notes.ignored)}.", err=True)


def _report_remarks(remarks: Remarks) -> None:
    """Report guessed encodings, and parts of files that were lost."""
    for encoding, files in remarks.guessed.items():
        paths = ", ".join(plain(path) for path in files[:_NAMED])
        more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
        typer.echo(f"Read as {encoding}, because they are not UTF-8: {paths}{more}.", err=True)
    for path, lost in remarks.lost.items():
        more = f"; and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        typer.echo(f"Read in part: {plain(path)}: {plain(lost[0])}{more}", err=True)


def _by_kind(files: Counter[str]) -> str:
    """The numbers of files of the most frequent kinds, by suffix."""
    ordered = sorted(files.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{number:,} {plain(kind or 'without a suffix')}" for kind, number in ordered]
    rest = f", and {len(kinds) - _NAMED:,} other kinds" if len(kinds) > _NAMED else ""
    return ", ".join(kinds[:_NAMED]) + rest


def _print(hits: list[Hit], encoder: SentenceEncoder, query: str, as_json: bool) -> None:
    """Print the hits as rows, or for people, with the sentence nearest to the query in bold."""
    if not as_json and not sys.stdout.isatty():
        with row_output(None, _COLUMNS) as write:
            for hit in hits:
                write([hit.score, f"{hit.source}:{hit.line}", hit.text, hit.context])
        return
    vector = encoder.encode(query, on_long="split")
    best = [_nearest_sentence(hit.text, vector, encoder) for hit in hits]
    if as_json:
        with row_output(None, _JSON_COLUMNS, as_json=True) as write:
            for hit, sentence in zip(hits, best, strict=True):
                write([hit.score, hit.source, hit.line, hit.text, sentence, hit.context, hit.close])
        return
    for hit, sentence in zip(hits, best, strict=True):
        where = f"{hit.source}, page {hit.line}" if hit.source.lower().endswith(".pdf") else f"{hit.source}:{hit.line}"
        text = hit.text.replace(sentence, f"{_BOLD}{sentence}{_PLAIN}", 1).replace("\n", f"\n{_INDENT}")
        text = _CONTROL.sub(" ", text)
        place = f"{where}  {headings_of(hit.context)}".rstrip()
        typer.echo(f"{hit.score:.2f}  {_DIM}{place}{_PLAIN}\n{_INDENT}{text}")


def _nearest_sentence(text: str, vector: ArrayLike, encoder: SentenceEncoder) -> str:
    """The sentence of a text that is nearest to the vector [D] of a query."""
    sentences = sentences_of(text) or [text]
    return sentences[int(cosine_similarity(vector, encoder.encode(sentences, on_long="split")).argmax())]
