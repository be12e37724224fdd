"""`xsent index` and `xsent search`: lines of text searched by meaning."""

import sys
import warnings
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from xsent.cli.options import (
    BundleOption,
    CleanOption,
    JsonOption,
    LayersOption,
    LeastOption,
    SpaceOption,
    ThreadsOption,
    WordsOption,
)
from xsent.cli.terminal import one_line_errors, print_json, print_row

_QUERIES = 256  # searched at once, in one pass over the vectors


@one_line_errors()
def index(
    file: Annotated[str, typer.Argument(help="One text a line; .gz and .xz too; - reads standard input.")],
    index: Annotated[Path, typer.Argument(help="The folder to make, or with --add to add to.")],
    model: BundleOption = None,
    layers: LayersOption = None,
    clean: CleanOption = False,
    space: SpaceOption = None,
    add: Annotated[
        bool, typer.Option("--add", help="Add the lines to an index; their numbers follow its own.")
    ] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Make a graph too: above a million lines it is faster, but misses a few.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a stopped job; the input must begin with the same lines.")
    ] = False,
    threads: ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing index; discard a stopped job.")] = False,
) -> None:
    """Index a file, one text a line, for `xsent search`; lines without a letter or digit are never found."""
    from xsent.encoder import SentenceEncoder
    from xsent.files.text import steady_lines
    from xsent.search.write import build_index, can_resume, extend_index

    try:
        made = (extend_index if add else build_index)(
            index,
            steady_lines(file),
            SentenceEncoder(model, layers=layers, threads=threads, clean=clean),
            source=file,
            space=space,
            graph=graph,
            resume=resume,
            force=force,
            show_progress_bar=sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        if can_resume(index, add=add):
            typer.echo("What was indexed is kept; the same command with --resume goes on.", err=True)
        raise
    if empty := made.lines - made.rows:
        warnings.warn(f"{empty:,} of {made.lines:,} lines have no letter or digit; they are never found", stacklevel=1)


@one_line_errors()
def search(
    index: Annotated[Path, typer.Argument(help="A folder made by `xsent index`.")],
    query: Annotated[
        str | None, typer.Argument(help="A text, in any language of the model; - for --queries -.")
    ] = None,
    queries: Annotated[str | None, typer.Option(help="A file of queries, one a line; - reads standard input.")] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Number of lines to find.")] = 10,
    exact: Annotated[bool, typer.Option("--exact", help="Do not use the graph.")] = False,
    words: WordsOption = True,
    least: LeastOption = None,
    model: BundleOption = None,
    layers: LayersOption = None,
    space: SpaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the nearest lines, by meaning and by words, best first: score, line number and text, with tabs between.

    The score is the cosine and up to 0.5 for words. With queries from a file, the number of the query comes first.
    With --json, an object for every query. A query that begins with - stands after --.
    """
    from xsent.encoder import SentenceEncoder
    from xsent.errors import DataError
    from xsent.files.text import read_lines
    from xsent.search.index import SearchIndex, say_nothing_close

    if (query is None) == (queries is None):
        raise typer.BadParameter("give either a QUERY or --queries FILE")
    if query is not None and not query.strip():
        raise DataError("the query is empty; ask for something")
    source = "-" if query == "-" else queries
    opened = SearchIndex(index)
    encoder = SentenceEncoder(model, layers=layers)
    texts = read_lines(source) if source else iter([query or ""])
    number = 0
    while batch := list(islice(texts, _QUERIES)):
        found = opened.search(encoder, batch, k, exact=exact, words=words, least=least, space=space)
        for text, hits in zip(batch, found, strict=True):
            number += 1
            if nothing := say_nothing_close(hits):
                typer.echo(f"Query {number}: {nothing}" if source else nothing, err=True)
            if as_json:
                shown = [
                    {name: value for name, value in vars(hit).items() if name not in ("source", "context")}
                    for hit in hits
                ]
                print_json({"query": text, "hits": shown})
            else:
                first = [str(number)] if source else []
                for hit in hits:
                    print_row(*first, f"{hit.score:.4f}", str(hit.line), hit.text)
    if not number:
        raise DataError(f"{source}: empty; expected one query a line")
    if not (source or hits or as_json):
        raise DataError(f"no line has a score of {least} or more; give a lower --least")
