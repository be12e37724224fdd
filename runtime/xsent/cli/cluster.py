"""`xsent cluster`: groups of texts on one subject, with a name each."""

from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Annotated

import typer

from xsent.cli import options
from xsent.cli.mine import vectors_of
from xsent.cli.terminal import format_table, one_line_errors, row_output
from xsent.files.tables import TextSource, place_of


@one_line_errors()
def cluster(
    texts: Annotated[
        str, typer.Argument(metavar="TEXTS", help="One text a line; .gz and .xz too; - reads standard input.")
    ] = "-",
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    number: Annotated[
        int | None, typer.Option("-n", "--number", min=1, help="Clusters to make; default: as many as there are.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=-1, max=1, help="How near clusters must be to become one: less makes fewer clusters.")
    ] = 0.05,
    smallest: Annotated[int, typer.Option(min=1, help="Texts of the smallest cluster.")] = 5,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    clean: options.CleanOption = False,
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of TEXTS by xsent encode; default: they are made.")
    ] = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Group texts by their subjects, in any of the model's languages: cluster, its name, line or id, and text.

    Rows stand in the order of the texts. A text that belongs to no cluster has none. The list of all clusters, with
    the text nearest to the centre of each, goes to standard error.
    """
    from xsent.encoder import SentenceEncoder
    from xsent.mining import clusters

    place, kind = ("line", int) if id is None else ("id", str)
    columns = {"cluster": int, "name": str, place: kind, "text": str}
    output_rows = row_output(output, columns, as_json=as_json, force=force)
    read = TextSource(texts, column, id).read()
    open_encoder = partial(SentenceEncoder, model, layers=layers, threads=threads, clean=clean)
    (given,) = vectors_of([read], [vectors], open_encoder, on_long="split")
    found = clusters.cluster(given.rows, number, threshold=threshold, smallest=smallest)
    names = clusters.name_clusters(found, read)
    with output_rows as write:
        for row, (label, text) in enumerate(zip(found.labels.tolist(), read, strict=True)):
            found_in = (None, None) if label < 0 else (label + 1, str(names[label]))
            write([*found_in, place_of(text, row + 1), text])
    listed = [
        {
            "cluster": number,
            "texts": name.size,
            "name": str(name),
            "central text": shorten(read[name.central], 80, placeholder="…"),
        }
        for number, name in enumerate(names, 1)
    ]
    if listed:
        typer.echo(format_table(listed), err=True)
    none = len(read) - sum(name.size for name in names)
    typer.echo(f"{len(names):,} clusters of {len(read):,} texts; {none:,} belong{'s' * (none == 1)} to none", err=True)
