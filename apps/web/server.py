"""Serves the page over HTTP, to this machine unless told otherwise."""

import errno
import shutil
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from xsent.apps.web.site import LIST, Site

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
_HEADERS = {
    # As in index.html, for hosts that send no headers; here also for the workers.
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
    "Cache-Control": "no-cache",  # may be kept, and is asked for again: the answer is that nothing changed
}


def open_server(site: Site, host: str, port: int) -> ThreadingHTTPServer:
    """A server that listens, on any free port where `port` is 0; an OSError says what to do where it is taken."""
    try:
        return ThreadingHTTPServer((host, port), partial(_Handler, site))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(error.errno, f"port {port} is in use; choose another with --port, or 0 for any") from error
        raise OSError(error.errno, f"cannot listen on {host}, port {port}: {error.strerror or error}") from error


class _Handler(BaseHTTPRequestHandler):
    """Answers with the files of a site and with nothing else, whatever path is asked for."""

    protocol_version = "HTTP/1.1"
    server_version = "xsent"
    sys_version = ""

    def __init__(self, site: Site, *args: Any) -> None:  # noqa: ANN401  the server's
        self._site = site
        super().__init__(*args)

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Send what would come before a file."""
        self._answer(with_body=False)

    def log_message(self, *_: object) -> None:
        """Say nothing: the page tells its reader what it loads."""

    def _answer(self, *, with_body: bool) -> None:
        name = unquote(urlsplit(self.path).path).removeprefix("/") or "index.html"
        file = self._site.files.get(name)
        if name == LIST:
            self._start(HTTPStatus.OK, _TYPES[".json"], len(self._site.list))
            if with_body:
                self.wfile.write(self._site.list)
        elif file is None:
            self._start(HTTPStatus.NOT_FOUND, _TYPES[".txt"], 0)
        elif self.headers.get("If-None-Match") == f'"{file.sha256}"':
            self._start(HTTPStatus.NOT_MODIFIED, None, None, file.sha256)
        else:
            kind = _TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
            self._start(HTTPStatus.OK, kind, file.bytes, file.sha256)
            if with_body:
                self._send(file.path.open("rb"))

    def _start(self, status: HTTPStatus, kind: str | None, length: int | None, digest: str | None = None) -> None:
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if digest is not None:
            self.send_header("ETag", f'"{digest}"')
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, file: Any) -> None:  # noqa: ANN401
        try:
            with file:
                shutil.copyfileobj(file, self.wfile)
        except ConnectionError:  # the reader closed the page
            self.close_connection = True
