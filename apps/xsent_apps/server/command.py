"""`xsent serve`: embeddings, labels and search over HTTP."""

import logging
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from xsent.cli.options import BundleOption, LayersOption, ThreadsOption
from xsent.cli.program import App
from xsent.cli.terminal import plain
from xsent.errors import DataError, require_extra
from xsent_apps.server.running import LOCAL, address, listen, run_server

KEY = "XSENT_API_KEY"

app = App()


@app.command(
    short_help="Serve vectors, labels and search over HTTP.",
    rich_help_panel="Vectors",
    epilog="Example: xsent serve --head topics.npz --index notes.index",
)
def serve(
    model: BundleOption = None,
    layers: LayersOption = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; by default only this machine can connect.")
    ] = LOCAL[0],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000,
    head: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH", help="A head of `xsent classify fit`; may be repeated."),
    ] = None,
    index: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]PATH", help="An index of `xsent index`; may be repeated.")
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name for the model in requests; may be repeated."),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help=f"File with the key that clients must send. Default: {KEY}; without either, no key is needed."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Let web pages from this origin, such as https://example.org, read answers; repeatable.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name besides localhost that requests may be sent to; repeatable."),
    ] = None,
    on_long: Annotated[
        Literal["split", "error"], typer.Option(help="Split texts that are too long for the model, or refuse them.")
    ] = "split",
    max_bytes: Annotated[int, typer.Option(min=1, help="Most bytes per request.")] = 2**20,
    max_items: Annotated[int, typer.Option(min=1, help="Most texts or hits per request.")] = 2048,
    max_length: Annotated[int, typer.Option(min=1, help="Most tokens of a text that is split.")] = 8192,
    queue: Annotated[int, typer.Option(min=0, help="Requests that may wait; others get status 503.")] = 64,
    timeout: Annotated[float, typer.Option(min=1, help="Most seconds per request.")] = 120,
    access_log: Annotated[bool, typer.Option(help="Log each request in one line, without its texts.")] = True,
    threads: ThreadsOption = None,
) -> None:
    """Serve an OpenAI-compatible /v1/embeddings, and /classify, /search and /health.

    Ctrl-C and SIGTERM let running requests finish.
    """
    with require_extra("apps"):
        import uvicorn  # noqa: F401  if it is missing, fail before the model is loaded

        from xsent_apps.server.application import create_app
        from xsent_apps.server.requests import Limits
    from xsent import LinearClassifier, SearchIndex, SentenceEncoder, UnknownTextWarning

    key = _api_key(api_key_file)
    _check_names(allow_origin or (), allow_host or (), key)
    is_local = host in LOCAL and key is None
    with listen(host, port) as listener:
        encoder = SentenceEncoder(model, layers=layers, threads=threads)
        heads = _named(head).items()
        application = create_app(
            encoder,
            heads={name: LinearClassifier.load(path, fingerprint=encoder.fingerprint) for name, path in heads},
            indexes={name: SearchIndex(path) for name, path in _named(index).items()},
            aliases=alias or (),
            api_key=key,
            on_long=on_long,
            limits=Limits(max_bytes, max_items, max_length, queue, timeout),
            hosts=allow_host or () if allow_host or is_local else None,
            origins=allow_origin or (),
        )
        # Python keeps the text of each warning forever, and each number of texts yields another.
        warnings.simplefilter("ignore", UnknownTextWarning)
        if host not in LOCAL and key is None:
            warnings.warn(
                f"anybody who can reach {host} can use this server; set {KEY} or --api-key-file", stacklevel=1
            )
        logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
        logging.getLogger(__package__).setLevel(logging.INFO if access_log else logging.WARNING)
        where = address(host, listener)
        typer.echo(f"{plain(encoder.bundle.name)} ({encoder.fingerprint}) on {where}; Ctrl-C stops.", err=True)
        run_server(application, listener)


def _api_key(file: Path | None) -> str | None:
    """The key; not a command-line option, because every user of the machine could read it."""
    key = os.environ.get(KEY) if file is None else file.read_text(errors="replace").strip()
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        raise DataError(f"{file or KEY}: expected one line, the key, of printable ASCII without spaces")
    return key


def _check_names(origins: Iterable[str], hosts: Iterable[str], key: str | None) -> None:
    """Raise DataError for an origin or a name that no browser would send, which would never match."""
    for origin in origins:
        if origin == "*" and key is None:
            raise DataError(f"--allow-origin '*' lets every web page read the answers; set {KEY} or --api-key-file")
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\sA-Z]+", origin):
            expected = "SCHEME://NAME[:PORT] in lower case, such as https://example.org"
            raise DataError(f"--allow-origin {origin!r}: expected {expected}")
    for host in hosts:
        if not re.fullmatch(r"[^/\s*:]+|\[[^/\s*]+\]", host):
            raise DataError(f"--allow-host {host!r}: expected a name, such as pi.local")


def _named(options: Iterable[str] | None) -> dict[str, Path]:
    """Paths by name; a path without a name is named after its file."""
    found = dict[str, Path]()
    for option in options or ():
        name, equals, path = option.partition("=")
        if not equals:
            name = Path(option).stem
            path = option
        if name in found or not name or not path:
            reason = f"the name {name!r} is taken; use" if name in found else "expected"
            raise ValueError(f"{option!r}: {reason} NAME=PATH, with another name for each")
        found[name] = Path(path)
    return found
