"""The page as an ASGI application."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from threading import Thread

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

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

    async def send_file(request: Request) -> Response:
        name = request.path_params["name"] or "index.html"
        if name not in site.files:
            raise HTTPException(404)
        file = site.files[name]
        # A digest, not the time as in Starlette's own ETags, because a wheel may set all times alike.
        headers = {**HEADERS, "ETag": f'"{file.sha256}"'}
        if headers["ETag"] in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        kind = TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
        return FileResponse(file.path, headers=headers, media_type=kind)

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return Response(status_code=error.status_code, headers={**HEADERS, **(error.headers or {})})

    routes = [Route(f"/{FILES_JSON}", send_list), Route("/{name:path}", send_file)]
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
