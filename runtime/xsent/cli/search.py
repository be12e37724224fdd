"""`xsent index` and `xsent search`: lines of text searched by meaning."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.cli import options
from xsent.cli.rows import asks_json, row_output
from xsent.errors import counted

if TYPE_CHECKING:
    from xsent.search.index import Hit

_QUERIES = 256  # searched at once, in one pass over the vectors
_COLUMNS: dict[str, type] = {"score": float, "place": str, "text": str}
_JSON_COLUMNS: dict[str, type] = {"score": float, "line": int, "id": str, "text": str, "close": bool}


def index(
    file: Annotated[str, typer.Argument(help=options.LINES)],
    index: Annotated[Path, typer.Argument(help="The folder to create, or with --add to add to.")],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    clean: options.CleanOption = False,
    space: options.SpaceOption = None,
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    add: Annotated[
        bool, typer.Option("--add", help="Add the lines to an index; numbering continues after its last line.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a stopped job; the input must begin with the same lines.")
    ] = False,
    threads: options.ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing index; discard a stopped job.")] = False,
) -> None:
    """Index a file, one text per line, or a column of a table, for `xsent search`.

    Texts without words, such as "..." or "N/A", are never found.
    """
    from xsent.encoder import SentenceEncoder
    from xsent.files.tables import TextSource
    from xsent.search.index import SearchIndex
    from xsent.search.lines import build_index, extend_index

    texts = TextSource(file, column, id)
    made = (extend_index if add else build_index)(
        index,
        texts,
        SentenceEncoder(model, layers=layers, threads=threads, clean=clean),
        source=os.fsencode(file).decode(errors="replace"),  # a name may be in another encoding
        space=space,
        resume=resume,
        force=force,
        show_progress_bar=None,
    )
    with SearchIndex(index) as opened:
        count = len(opened)
    if empty := made.lines - count:
        warnings.warn(f"{empty:,} of {made.lines:,} {texts.unit} have no words; they are never found", stacklevel=1)
    typer.echo(f"{index}: {counted(count, 'text')}", err=True)


def search(
    index: Annotated[Path, typer.Argument(help="An index from `xsent index`.")],
    query: Annotated[
        str | None, typer.Argument(help="A text, in any language of the model; - for --queries -.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="PATH", help="A file of queries, one per line; - reads standard input.")
    ] = None,
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    k: Annotated[int, typer.Option("-n", "-k", "--top-k", min=1, help="Number of lines to find.")] = 10,
    words: options.WordsOption = True,
    least: options.LeastOption = None,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    space: options.SpaceOption = None,
    output: options.RowsOption = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Print the nearest lines, by meaning and by words, best first: score, line number or id, and text.

    The score is the cosine plus up to 0.75 for words. With queries from a file, the number or id of the query comes
    first. Put -- before a query that starts with a dash.
    """
    from xsent.encoder import SentenceEncoder
    from xsent.errors import DataError
    from xsent.files.tables import TextSource
    from xsent.files.text import source_name
    from xsent.search.index import SearchIndex, no_match_message

    if (query is None) == (queries is None):
        raise typer.BadParameter("give either a QUERY or --queries FILE")
    if query is not None and not query.strip():
        raise DataError("the query is empty; ask for something")
    source = "-" if query == "-" else queries
    if not source and (column or id):
        raise ValueError("--column and --id are for a table of --queries; an index has its texts and ids")
    opened = SearchIndex(index)
    if opened.state.unfinished:
        lines = f"{opened.state.lines:,} lines so far"
        typer.echo(f"{index}: incomplete, {lines}; xsent index --resume continues it", err=True)
    encoder = SentenceEncoder(model, layers=layers, threads=threads)
    texts = TextSource(source, column, id) if source else [query or ""]
    name: str | None = None
    as_json = asks_json(output, as_json)
    columns = {**({"query": str} if source else {}), **(_JSON_COLUMNS if as_json else _COLUMNS)}
    with row_output(output, columns, as_json=as_json, force=force) as write:
        for name, hits in _answers(texts, partial(opened.search, encoder, k=k, words=words, least=least, space=space)):
            if nothing := no_match_message(hits) if hits or not source else "nothing found":
                typer.echo(f"Query {name}: {nothing}" if source else nothing, err=True)
            for hit in hits:
                place = [hit.line, hit.id or None, hit.text, hit.close] if as_json else [hit.id or hit.line, hit.text]
                write([*([name] if source else []), hit.score, *place])
        if name is None:
            raise DataError(f"{source_name(source or '')}: empty; expected one query per line")
        if not (source or hits):
            reason = "it has no lines" if least is None else f"no line has a score of {least} or more; lower --least"
            raise DataError(f"{index}: {reason}")


def _answers(texts: Iterable[str], find: "Callable[[list[str]], list[list[Hit]]]") -> "Iterator[tuple[str, list[Hit]]]":
    """Yield the number or id of each query, and its hits."""
    from xsent.files.tables import place_of

    numbered = enumerate(texts, 1)
    while batch := list(islice(numbered, _QUERIES)):
        found = find([text for _, text in batch])
        for (number, text), hits in zip(batch, found, strict=True):
            yield str(place_of(text, number)), hits
