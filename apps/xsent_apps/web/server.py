"""The page: its files, and a server for them that listens to this machine unless told otherwise."""

import errno
import hashlib
import json
import shutil
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from xsent import Bundle, DataError, SentenceEncoder
from xsent.files.atomic import atomic_folder, file_exists_error, recover

LIST = "files.json"  # of the service worker, which keeps every file for offline use
MANIFEST = "xsent.json"
_STATIC = Path(__file__).parent / "static"
# Of a bundle; the card says whose the model is. Files of other backends stay behind.
_FETCHED = ("sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin", "README.md")


@dataclass(frozen=True)
class File:
    """A file of the site."""

    path: Path
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Site:
    """All files by their address, relative to the page's."""

    files: dict[str, File]

    @classmethod
    def of(cls, model: Path | None) -> "Site":
        """The page with a bundle, by default the built-in one; a BundleError or DataError says why not."""
        bundle = SentenceEncoder(model, threads=1).bundle  # opened whole, so that a page with it works too
        own = sorted(path for path in _STATIC.rglob("*") if path.is_file())
        files = {path.relative_to(_STATIC).as_posix(): _read(path) for path in own}
        if "index.html" not in files:
            raise DataError(f"{_STATIC}: the page is not there; install xsent again")
        return cls(files | {f"model/{name}": file for name, file in _model_files(bundle).items()})

    @property
    def list(self) -> bytes:
        """The file `LIST`: digest and size of each file, and a version that is another where any of them is."""
        files = {name: {"sha256": file.sha256, "bytes": file.bytes} for name, file in sorted(self.files.items())}
        version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
        return json.dumps({"version": version, "files": files}, indent=1).encode() + b"\n"

    def write(self, folder: Path, *, replace: bool = False) -> int:
        """Put everything into a folder that any static host can serve, and return its bytes.

        The folder appears whole or not at all; one that exists is replaced only on demand, by an OSError else.
        """
        folder = folder.absolute()
        recover(folder)
        if folder.exists() and not replace:
            raise file_exists_error(folder)
        if folder.exists() and not ((folder / LIST).is_file() or (folder.is_dir() and not any(folder.iterdir()))):
            raise DataError(f"{folder}: was not written by `xsent web`, so it is not replaced; choose another name")
        with atomic_folder(folder) as partial:
            for name, file in self.files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.path, partial / name)
            (partial / LIST).write_bytes(self.list)
        return sum(file.bytes for file in self.files.values()) + len(self.list)


def _model_files(bundle: Bundle) -> dict[str, File]:
    files = {name: bundle.files[name] for name in _FETCHED if name in bundle.files}
    named = {name: File(bundle.path / name, entry.sha256, entry.bytes) for name, entry in files.items()}
    return {MANIFEST: _read(bundle.path / MANIFEST), **named}


def _read(path: Path) -> File:
    content = path.read_bytes()
    return File(path, hashlib.sha256(content).hexdigest(), len(content))


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
