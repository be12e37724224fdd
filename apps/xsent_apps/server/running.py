"""Runs a server: where it listens, its limits, and how it stops."""

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
CONNECTIONS = 512  # most open connections; for one more, the one that has waited longest for its client is closed
IDLE_SECONDS = 40  # most seconds of waiting for a client; longer than for a body, after which the answer is 408
HEADER_BYTES = 2**16  # most bytes of a header, and of the trailers after a body
GRACE_SECONDS = 30  # for running requests to finish after SIGTERM


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections at once. Raises a one-line DataError, which uvicorn would not."""
    try:
        # With the protocol, so that asyncio does not delay answers until the client's acknowledgement (40 ms).
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # another server may just have stopped here
            listener.bind(address)
            listener.listen()
        except BaseException:
            listener.close()
            raise
    except UnicodeError as error:  # a part of the name is empty or too long
        raise DataError(f"--host {host!r}: expected an address or a host name, such as 127.0.0.1") from error
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = "another program is using this port; choose another --port, or stop it"
        raise DataError(f"{host}, port {port}: {reason}") from error
    return listener


def address(host: str, listener: socket.socket) -> str:
    """The URL of a server."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def run_server(application: "ASGIApp", listener: socket.socket, *, lifespan: Literal["on", "off"] = "off") -> None:
    """Serve until a signal arrives, then finish running requests."""
    server = make_server(application, lifespan=lifespan)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn re-raises it after it has stopped
    logging.getLogger("uvicorn.error").addFilter(  # an interrupted request is already logged in one line
        lambda record: record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)
    )
    with suppress(KeyboardInterrupt):
        server.run([listener])


def make_server(application: "ASGIApp", *, lifespan: Literal["on", "off"] = "off") -> "Server":
    """A server in which no client can block others, see `Connection`."""
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
