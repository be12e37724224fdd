"""Connections to the server: limits on their number and on how long each may keep it waiting."""

import asyncio
from time import monotonic
from typing import Any, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A connection that cannot block others by sending nothing or half a request, or by not reading its answer.

    uvicorn counts open connections and answers 503 beyond `limit_concurrency`, and its `timeout_keep_alive` starts only
    after an answer. So a few hundred connections that send half a header could block the server for as long as they
    like. Here both settings mean something else:

    - Beyond `limit_concurrency` connections, a new one is still accepted, and the one that has kept the server waiting
      longest is closed. A client that sends its request at once is served, however many others hold theirs back. A
      limit per address would not work: behind a proxy, all clients have the same address.
    - A connection is closed if the server has waited `timeout_keep_alive` seconds for a whole header, for a whole body,
      or for the client to read any more of its answer.

    A connection whose complete request is being processed is not closed; the application limits those, see `Gate`.
    """

    def __init__(self, config: Config, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  uvicorn's
        super().__init__(config, *arguments, **options)
        self._most = config.limit_concurrency
        self.limit_concurrency = None  # or uvicorn answers 503
        self._since = monotonic()  # start of the client's turn, or its last read; finer than uvloop's clock
        self._unsent = 0  # unsent bytes at the last check
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether it is the client's turn: to send a request or the rest of it, or to read."""
        cycle = self.cycle
        return not cycle or cycle.response_complete or cycle.more_body or self.transport.get_write_buffer_size() > 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Accept the connection, and close another one if there are too many."""
        super().connection_made(transport)
        self._watch()
        everyone = cast("set[Connection]", self.connections)
        if self._most and len(everyone) > self._most:
            longest = min((one for one in everyone if one.waits), key=lambda one: one._since)  # at least this one
            everyone.discard(longest)  # uvicorn does so only in the next iteration of the loop
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        super().connection_lost(exc)
        if self._timer:
            self._timer.cancel()

    def handle_events(self) -> None:
        """Record when a complete header has arrived."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._since = monotonic()

    def on_response_complete(self) -> None:
        """Record when an answer is complete; the next request may have arrived with the last one."""
        self._since = monotonic()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. If an answer has started or starts now, uvicorn would log a traceback."""
        if self.cycle:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _watch(self) -> None:
        """Close the connection if its client has kept the server waiting too long; otherwise check again later.

        The timer is never moved, because most requests are shorter.
        """
        now = monotonic()
        unsent = self.transport.get_write_buffer_size()
        if not self.waits or unsent < self._unsent:
            self._since = now
        left = self._since + self.timeout_keep_alive - now
        if left > 0:
            self._unsent = unsent
            self._timer = self.loop.call_later(left, self._watch)
        else:
            self.transport.abort()  # close() would wait until the client has read everything
