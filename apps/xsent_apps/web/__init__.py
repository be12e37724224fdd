"""`xsent web`: a page that searches, sorts and maps texts in the browser, which they never leave."""

import hashlib
import json
import shutil
import socket
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files as resources
from io import BufferedReader, BytesIO
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer

from xsent.cli.options import BundleOption, ForceOption
from xsent.errors import DataError
from xsent.files.atomic import atomic_folder, file_exists_error, recover
from xsent_apps.server import address, listen

STATIC = Path(__file__).parent / "static"
CONNECTIONS = 32  # open at once, each with a thread; a browser opens six
HEADER_BYTES = 2**17  # of a request; http.client takes 100 headers of 64 KB
IDLE_SECONDS = 30  # that a client may neither send nor read anything
FILES_JSON = "files.json"  # the service worker keeps every file in it for offline use
# Files of a bundle that the page reads; the card names the model's licence. Files of other backends are left out.
MODEL_FILES = ("sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin", "README.md")
MANIFEST = "xsent.json"
FUNCTION_WORDS = "function_words.json"  # of the runtime
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
HEADERS = {
    # Also in index.html, for hosts that send no headers; here it holds for the workers too.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # browsers keep files, and ask each time whether they have changed
}

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(short_help="Search, sort and map texts in the browser.", epilog="Example: xsent web --open")
def web(
    model: BundleOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8090,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default serves this machine only.")
    ] = "127.0.0.1",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the page into this folder, for any static host, and serve nothing.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Search, sort and map your texts in the browser; they never leave the page."""
    site = Site.of(model)
    if out is not None:
        written = site.write(out, replace=force)
        typer.echo(f"{out}: {len(site.files) + 1} files, {written / 1e6:.1f} MB")
        return
    _serve(site, host, port, open_page)


def _serve(site: "Site", host: str, port: int, open_page: bool) -> None:
    with open_server(site, host, port) as server:
        page = f"{address(host, server.socket)}/"
        try:
            typer.echo(f"{page}  (Ctrl-C ends)")
            if open_page:
                webbrowser.open(page)
            server.serve_forever()
        except KeyboardInterrupt:  # the usual end, no failure
            typer.echo("", err=True)


@dataclass(frozen=True)
class File:
    """A file of the site."""

    path: Path
    sha256: str
    bytes: int

    @classmethod
    def of(cls, path: Path) -> "File":
        """Read a file."""
        content = path.read_bytes()
        return cls(path, hashlib.sha256(content).hexdigest(), len(content))


@dataclass(frozen=True)
class Site:
    """The files of the page and of its model, by their address relative to the page."""

    files: dict[str, File]

    @classmethod
    def of(cls, model: Path | None) -> "Site":
        """The page with a bundle, by default the built-in one. Raises BundleError or DataError if a file is bad."""
        from xsent import SentenceEncoder

        bundle = SentenceEncoder(model, threads=1).bundle  # opens all of it: a bad bundle fails here, not in the page
        names = [path.relative_to(STATIC).as_posix() for path in sorted(STATIC.rglob("*")) if path.is_file()]
        if "index.html" not in names:
            raise DataError(f"{STATIC}: the page is not there; install xsent again")
        files = {name: File.of(STATIC / name) for name in names}
        files[FUNCTION_WORDS] = File.of(Path(str(resources("xsent") / FUNCTION_WORDS)))
        for name in (MANIFEST, *MODEL_FILES):
            if name == MANIFEST or name in bundle.files:
                files[f"model/{name}"] = File.of(bundle.path / name)
        return cls(files)

    @property
    def list(self) -> bytes:
        """Content of `files.json`: digest and size of each file, and a version that depends on all of them."""
        files = {name: {"sha256": file.sha256, "bytes": file.bytes} for name, file in sorted(self.files.items())}
        version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
        return json.dumps({"version": version, "files": files}, indent=1).encode() + b"\n"

    def write(self, folder: Path, *, replace: bool = False) -> int:
        """Write everything into a folder for any static host, and return the number of bytes.

        The folder appears complete or not at all. Raises FileExistsError if it exists, unless with `replace`.
        """
        folder = folder.absolute()
        recover(folder)
        if folder.exists() and not replace:
            raise file_exists_error(folder)
        if folder.exists() and not ((folder / FILES_JSON).is_file() or (folder.is_dir() and not any(folder.iterdir()))):
            raise DataError(f"{folder}: was not written by `xsent web`, so it is not replaced; choose another name")
        with atomic_folder(folder) as partial:
            for name, file in self.files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.path, partial / name)
            (partial / FILES_JSON).write_bytes(self.list)
        return sum(file.bytes for file in self.files.values()) + len(self.list)


def open_server(site: Site, host: str, port: int) -> ThreadingHTTPServer:
    """A server that listens, on any free port if `port` is 0. Raises DataError if it cannot."""
    listener = listen(host, port)
    server = _Server((host, port), partial(_Handler, site), bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.server_port = listener.getsockname()[1]
    return server


class _Server(ThreadingHTTPServer):
    """Closes the connection whose last request is the oldest when there are too many, so that none locks it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  the server's
        super().__init__(*arguments, **options)
        self._connections: dict[socket.socket, None] = {}  # the latest request comes last
        self._lock = Lock()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  the server's
        """Accept a connection."""
        self.note_request(request)
        with self._lock:
            if len(self._connections) > CONNECTIONS:
                oldest = next(iter(self._connections))
                del self._connections[oldest]
                with suppress(OSError):  # it has just ended by itself
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
        super().process_request(request, client_address)

    def note_request(self, connection: socket.socket) -> None:
        """Put a connection behind all others."""
        with self._lock:
            self._connections.pop(connection, None)
            self._connections[connection] = None

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  the server's
        """Close a connection."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  the server's
        """Print what went wrong here, but not that a reader closed the page."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Lines(BufferedReader):
    """The lines of a client, those of a request up to a size."""

    size = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line. Raises HTTPException if there are too many, which is answered with 431."""
        line = super().readline(size)
        self.size += len(line)
        if self.size > HEADER_BYTES:
            raise HTTPException(f"more than {HEADER_BYTES:,} bytes of headers")
        return line


class _Handler(BaseHTTPRequestHandler):
    """Answers with the files of a site and nothing else, whatever the path."""

    protocol_version = "HTTP/1.1"
    server_version = "xsent"
    sys_version = ""
    timeout = IDLE_SECONDS
    server: _Server

    def __init__(self, site: Site, *args: Any) -> None:  # noqa: ANN401  the server's
        self._site = site
        super().__init__(*args)

    def setup(self) -> None:
        """Open the connection."""
        super().setup()
        self.rfile: _Lines = _Lines(self.connection.makefile("rb", buffering=0))

    def handle_one_request(self) -> None:
        """Answer the next request."""
        self.rfile.size = 0
        super().handle_one_request()

    def log_message(self, *_: object) -> None:
        """Log nothing: the page shows what it loads."""

    def do_GET(self) -> None:
        """Send a file; asked by HEAD, only its headers."""
        self.server.note_request(self.connection)
        name = unquote(urlsplit(self.path).path).removeprefix("/") or "index.html"
        file = self._site.files.get(name)
        length = len(self._site.list) if name == FILES_JSON else file.bytes if file else 0
        kind = TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
        headers = {"Content-Type": kind, "Content-Length": str(length), **HEADERS}
        status = HTTPStatus.OK if file or name == FILES_JSON else HTTPStatus.NOT_FOUND
        if file:
            headers["ETag"] = f'"{file.sha256}"'
            if self.headers.get("If-None-Match") == headers["ETag"]:
                status = HTTPStatus.NOT_MODIFIED
                del headers["Content-Length"]
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command == "GET" and status == HTTPStatus.OK:
            with file.path.open("rb") if file else BytesIO(self._site.list) as body:
                shutil.copyfileobj(body, self.wfile)

    do_HEAD = do_GET
