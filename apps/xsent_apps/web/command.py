"""`xsent web`: a page that searches, sorts and maps texts in the browser, without sending them anywhere."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from xsent.cli.options import BundleOption, ForceOption
from xsent.cli.program import App
from xsent.errors import require_extra
from xsent_apps.server.running import address, listen, run_server
from xsent_apps.web.site import Site

app = App()


@app.command(
    short_help="Search, sort and map texts in the browser.",
    epilog="Example: xsent web --open",
    rich_help_panel="Search",
)
def web(
    model: BundleOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8090,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; by default only this machine can connect.")
    ] = "127.0.0.1",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the page to this folder, for any static host, instead of serving it.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Search, sort and map your texts in the browser; they never leave the page."""
    site = Site.of(model)
    if out is not None:
        written = site.write(out, replace=force)
        typer.echo(f"{out}: {len(site.files) + 1} files, {written / 1e6:.1f} MB")
        return
    with require_extra("apps"):
        from xsent_apps.web.server import create_app
    with listen(host, port) as listener, suppress(KeyboardInterrupt):  # the usual way to stop
        page = f"{address(host, listener)}/"
        typer.echo(f"{page}  (press Ctrl-C to stop)")
        if open_page:
            webbrowser.open(page)
        run_server(create_app(site), listener)
