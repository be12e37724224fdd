"""`xsent web`: a page that searches, sorts and maps sentences in the browser, where they stay."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.cli.options import BundleOption, ForceOption
from xsent.cli.terminal import one_line_errors

if TYPE_CHECKING:
    from xsent_apps.web.server import Site


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(epilog="Example: xsent web --open")
@one_line_errors()
def web(
    model: BundleOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8090,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine can ask.")
    ] = "127.0.0.1",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the page into this folder, for any static host, and serve nothing.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Search, sort and map your texts in the browser; nothing that you put in leaves the page."""
    from xsent_apps.web.server import Site

    site = Site.of(model)
    if out is not None:
        written = site.write(out, replace=force)
        typer.echo(f"{out}: {len(site.files) + 1} files, {written / 1e6:.1f} MB")
        return
    _serve(site, host, port, open_page)


def _serve(site: "Site", host: str, port: int, open_page: bool) -> None:
    import webbrowser

    from xsent_apps.web.server import open_server

    with open_server(site, host, port) as server:
        address = f"http://{host}:{server.server_port}/"
        try:
            typer.echo(f"{address}  (Ctrl-C ends)")
            if open_page:
                webbrowser.open(address)
            server.serve_forever()
        except KeyboardInterrupt:  # how one ends it, no failure
            typer.echo("", err=True)
