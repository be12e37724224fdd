"""The commands `xsent map` and `xsent mcp`, which import their programs when they run, so that help appears at once."""

from pathlib import Path
from typing import Annotated

import typer

from xsent.cli.options import BundleOption, ColumnOption, ForceOption, LayersOption, ThreadsOption
from xsent.cli.program import App
from xsent.errors import find_extra
from xsent.files.atomic import check_output

map_app, mcp_app = App(), App()


@map_app.command(
    "map",
    short_help="Draw a map of texts.",
    rich_help_panel="Understand",
    epilog="Example: xsent map mails.csv mails.html --column text --by language --by cluster",
)
def map_file(
    texts: Annotated[str, typer.Argument(metavar="TEXTS", help="One text per line, or a table; - is standard input.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new .html file.")],
    column: ColumnOption = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column to colour by, such as the language; or cluster, the default."),
    ] = None,
    model: BundleOption = None,
    threads: ThreadsOption = None,
    force: ForceOption = False,
) -> None:
    """Draw a map of texts: nearby points have similar meanings, in any of the model's languages.

    The page opens in a browser without a network. Point at a text to read it. Repeat --by to switch between several
    colourings.
    """
    from xsent import SentenceEncoder, strip_boilerplate
    from xsent_apps.map import CLUSTER, map_texts, read_texts

    if out.suffix != ".html":
        raise ValueError(f"{out}: expected a name that ends in .html")
    check_output(out, force=force)
    by = by or [CLUSTER]
    if CLUSTER in by:
        find_extra("cluster", "scipy", "sklearn")
    read, colours = read_texts(texts, column, by)
    rows = SentenceEncoder(model, threads=threads).encode(strip_boilerplate(read), on_long="split")
    made = map_texts(read, rows, by=colours, title=out.stem)
    made.save(out)
    typer.echo(f"{out}: {made.count}, coloured by {', '.join(colours)}", err=True)


@mcp_app.command(
    short_help="Let an assistant search notes.",
    epilog="Example: xsent mcp ~/notes ~/papers",
    rich_help_panel="Search",
)
def mcp(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders with notes, as for xsent notes.")],
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve over HTTP, on this machine only; 0 takes a free port."),
    ] = None,
    max_bytes: Annotated[int, typer.Option(min=1, help="Skip files that are larger.")] = 20_000_000,
    model: BundleOption = None,
    layers: LayersOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Let an assistant search notes by meaning, through the Model Context Protocol.

    The assistant starts this command itself and uses standard input and output or, with --port, HTTP.
    """
    find_extra("mcp", "mcp")
    from xsent import SentenceEncoder
    from xsent_apps.mcp import Library, are_clean, create_server
    from xsent_apps.server.running import LOCAL, address, listen, run_server

    encoder = SentenceEncoder(model, layers=layers, threads=threads, clean=are_clean(folders))
    server = create_server(Library(folders, encoder, max_bytes=max_bytes))
    if port is None:
        server.run()
        return
    with listen(LOCAL[0], port) as listener:
        typer.echo(f"On {address(LOCAL[0], listener)}/mcp; Ctrl-C stops.", err=True)
        run_server(server.streamable_http_app(), listener, lifespan="on")
