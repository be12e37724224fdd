"""What `xsent notes` prints: about an update, and the passages that it found."""

import re
import sys
from collections import Counter
from pathlib import Path

import typer
from numpy.typing import ArrayLike

from xsent import DataError, Hit, SentenceEncoder, cosine_similarity
from xsent.cli.rows import row_output
from xsent.cli.terminal import plain
from xsent.errors import counted, require_extra
from xsent_apps.notes.folder import Notes
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


def why_nothing(notes: Notes, folder: Path, least: float | None, update: bool) -> str:
    """Why a search found nothing."""
    if least is not None:
        return f"no passage has a score of {least} or more; use a lower --least"
    if not update:
        return f"{notes.index}: empty so far; run again without --no-update"
    return f"{folder}: contains no notes with text; expected files that end in {', '.join(READERS)}"


def watch(notes: Notes, folder: Path, encoder: SentenceEncoder) -> None:
    """Update whenever a file changes, and once at the start, because one may have changed in between."""
    with require_extra("apps"):
        from watchfiles import watch as changes

    place = notes.index.resolve()
    is_note = lambda _, path: not Path(path).resolve().is_relative_to(place)  # noqa: E731
    typer.echo(f"Watching {counted(notes.size()[0], 'file')}; Ctrl-C stops.", err=True)
    watching = changes(folder, watch_filter=is_note, raise_interrupt=True, yield_on_timeout=True, rust_timeout=1000)
    for number, changed in enumerate(watching):
        if changed or not number:
            update(notes, encoder, is_asked=True)


def update(notes: Notes, encoder: SentenceEncoder, force: bool = False, *, is_asked: bool) -> None:
    """Update and report. With a query, it reports less, and an error of an existing index is only a warning."""
    may_fail = is_asked and not force and notes.index.is_dir()
    skipped_before, ignored_before = notes.skipped.keys(), notes.ignored
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
    if others and notes.skipped.keys() != skipped_before:
        kinds = _by_kind(Counter(kind_of(Path(name)) for name in others))
        typer.echo(f"Skipped: {kinds}; run xsent notes without a query to list {'all' if named else 'them'}.", err=True)
    _report_remarks(notes.remarks)
    if count or not is_asked:
        files, passages = notes.size()
        done = f"Indexed {counted(files, 'file')}, {counted(passages, 'passage')} in {notes.index}"
        typer.echo(f"{done}; new, changed or deleted: {count:,}.", err=True)
    if notes.ignored and (count or not may_fail) and notes.ignored != ignored_before:
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


def print_hits(hits: list[Hit], encoder: SentenceEncoder, query: str, as_json: bool) -> None:
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
        place = f"{where}  {headings_of(hit.context)}".rstrip()
        typer.echo(_CONTROL.sub(" ", f"{hit.score:.2f}  {_DIM}{place}{_PLAIN}\n{_INDENT}{text}"))


def _nearest_sentence(text: str, vector: ArrayLike, encoder: SentenceEncoder) -> str:
    """The sentence of a text that is nearest to the vector [D] of a query."""
    sentences = sentences_of(text) or [text]
    return sentences[int(cosine_similarity(vector, encoder.encode(sentences, on_long="split")).argmax())]
