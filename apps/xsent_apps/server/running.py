"""A server from its first connection to its last: where it listens, its limits, and how it ends."""

import asyncio
import errno
import logging
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from xsent.errors import DataError

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn import Server

LOCAL = ("127.0.0.1", "::1", "localhost")
CONNECTIONS = 512  # open at once; for one more, that which has waited longest for its client is closed
IDLE_SECONDS = 40  # that a client may keep us waiting; longer than for a body, after which the application answers 408
HEADER_BYTES = 2**16  # of a request, and of the trailers after its body
GRACE_SECONDS = 30  # that running requests get after SIGTERM


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections at once. Raises DataError in one line, which uvicorn would not."""
    try:
        # With the protocol: asyncio knows by it that answers must not wait for the client's acknowledgement (40 ms).
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server may just have ended here
            listener.bind(address)
            listener.listen()
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = "another program listens there; choose another --port, or stop it"
        raise DataError(f"{host}, port {port}: {reason}") from error
    return listener


def address(host: str, listener: socket.socket) -> str:
    """Where a browser finds a server."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def run_server(application: "ASGIApp", listener: socket.socket, *, lifespan: Literal["on", "off"] = "off") -> None:
    """Serve until a signal comes, then finish running requests."""
    server = make_server(application, lifespan=lifespan)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn raises it again once it has stopped
    logging.getLogger("uvicorn.error").addFilter(  # of a request that was stopped one line says so already
        lambda record: record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)
    )
    with suppress(KeyboardInterrupt):
        server.run([listener])


def make_server(application: "ASGIApp", *, lifespan: Literal["on", "off"] = "off") -> "Server":
    """A server that lets no client keep others out, see `Connection`."""
    import uvicorn

    from xsent_apps.server.connections import Connection

    config = uvicorn.Config(
        application,
        http=Connection,
        h11_max_incomplete_event_size=HEADER_BYTES,
        lifespan=lifespan,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)
