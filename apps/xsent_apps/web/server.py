"""The page as an ASGI application."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from threading import Thread

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from xsent_apps.server.running import address, listen, make_server
from xsent_apps.web.site import FILES_JSON, Site

TYPES = {  # fixed, so that the page does not depend on the machine's MIME types
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".md": "text/plain",
}
HEADERS = {
    # Also in index.html, for hosts that send no headers; here it applies to the workers, too.
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
    "Cache-Control": "no-cache",  # browsers keep files, but check each time whether they have changed
}


def create_app(site: Site) -> Starlette:
    """An application that serves the files of a site and nothing else, whatever the path."""

    async def send_list(_: Request) -> Response:
        return Response(site.list, media_type=TYPES[".json"], headers=HEADERS)

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return Response(status_code=error.status_code, headers={**HEADERS, **(error.headers or {})})

    routes = [Route(f"/{FILES_JSON}", send_list), Mount("/", _Files(site))]
    return Starlette(routes=routes, exception_handlers={HTTPException: refuse})


@contextmanager
def open_site(site: Site) -> Iterator[str]:
    """Serve a site from a thread on a free local port until the context ends; yields its URL."""
    with listen("127.0.0.1", 0) as listener:
        server = make_server(create_app(site))
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"{address('127.0.0.1', listener)}/"
        finally:
            server.should_exit = True
            thread.join()


class _Files(StaticFiles):
    """The files of a site, from several folders; ETags are digests, because a wheel may set all times alike."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site = site

    def get_path(self, scope: Scope) -> str:
        """The name of the requested file."""
        path = super().get_path(scope).replace(os.sep, "/")
        return "index.html" if path == "." else path

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """The path of a file."""
        file = self._site.files.get(path)
        return (str(file.path), file.path.stat()) if file else ("", None)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The file, or status 304 if it has not changed."""
        name = self.get_path(scope)
        kind = TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
        headers = {**HEADERS, "ETag": f'"{self._site.files[name].sha256}"'}
        answer = FileResponse(full_path, status_code, headers, kind, stat_result=stat_result)
        is_kept = self.is_not_modified(answer.headers, Headers(scope=scope))
        return NotModifiedResponse(answer.headers) if is_kept else answer
