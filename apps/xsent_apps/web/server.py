"""The server of the page."""

import shutil
import socket
import sys
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, BytesIO
from pathlib import PurePosixPath
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

from xsent_apps.server.running import listen
from xsent_apps.web.site import FILES_JSON, Site

CONNECTIONS = 32  # open at once, each with a thread; a browser opens six
HEADER_BYTES = 2**17  # of a request; http.client takes 100 headers of 64 KB
IDLE_SECONDS = 30  # that a client may neither send nor read anything
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
