"""`xsent notes`: the files of a folder, indexed, and searched by meaning and by words."""

from pathlib import Path
from typing import Annotated

import typer

from xsent.cli import options
from xsent.cli.program import App, QueryCommand
from xsent.errors import DataError, find_extra

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
    index: Annotated[Path | None, typer.Option(help="The index; default: .xsent-notes in the folder.")] = None,
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
    from xsent import SentenceEncoder, no_match_message
    from xsent_apps.notes import report
    from xsent_apps.notes.folder import Notes

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
        report.update(found, encoder, force, is_asked=query is not None)
    if query is not None:
        hits = found.search(encoder, query, k, words=words, least=least)
        if not hits:
            raise DataError(report.why_nothing(found, folder, least, update))
        if message := no_match_message(hits):
            typer.echo(message, err=True)
        report.print_hits(hits, encoder, query, as_json)
    if watch:
        report.watch(found, folder, encoder)
