"""Who and what is let in: the right key, so many requests at once, so many bytes, and no longer than so long."""

import hmac
import re
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xsent_apps.server.api import ApiError
from xsent_apps.server.metrics import Metrics

OPEN = "/health"  # needs no key: what looks after a service has none
BODY_SECONDS = 30  # for a client to send its body
LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)  # as a header Host names it


@dataclass(frozen=True)
class Limits:
    """Beyond them a request is refused."""

    bytes: int = 2**20  # of a body
    items: int = 2048  # texts of a request, as OpenAI has it; or hits that it asks for
    length: int = 8192  # tokens of one text, however it is split
    queue: int = 64  # requests that wait, beside those at work
    seconds: float = 120  # from the first byte of a request to the last of its answer


class Gate:
    """Middleware that refuses at once what cannot be served, so that nothing piles up: not bodies, nor answers.

    A request keeps its place until its answer is sent, since a slow reader holds memory too.
    """

    def __init__(
        self, app: ASGIApp, *, places: int, limits: Limits, api_key: str | None, local_only: bool, metrics: Metrics
    ) -> None:
        self._app, self._places, self._limits, self._metrics = app, places, limits, metrics
        self._bearer = f"Bearer {api_key}".encode() if api_key else None
        self._local_only = local_only
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http" or scope["path"] == OPEN:
            await self._app(scope, receive, send)
        elif error := self._refusal(scope):
            # Who is still sending would see a broken connection instead of the answer.
            with anyio.move_on_after(BODY_SECONDS):
                while (await receive()).get("more_body"):
                    pass
            await error.response()(scope, receive, send)
        elif scope["method"] != "POST":
            await self._app(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        self._inside += 1
        self._metrics.inside.set(self._inside)
        try:
            with anyio.move_on_after(self._limits.seconds) as deadline:
                await self._app(scope, receive, noting)
            if deadline.cancelled_caught and not started:
                message = f"not done within {self._limits.seconds:g} seconds; send fewer texts, or try again later"
                await ApiError(503, message, code="timeout").response()(scope, receive, send)
        except anyio.get_cancelled_exc_class():  # the server's patience has ended, see `xsent serve`
            if not started:
                with anyio.CancelScope(shield=True):
                    message = "this server was stopped before it was done; try again later"
                    await ApiError(503, message, code="stopped").response()(scope, receive, send)
            raise
        finally:
            self._inside -= 1
            self._metrics.inside.set(self._inside)

    def _refusal(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        given = headers.get("authorization", "").encode("latin-1")  # the bytes that were sent
        if given[:7].lower() == b"bearer ":  # names of schemes have no case
            given = b"Bearer " + given[7:]
        if self._bearer and not hmac.compare_digest(given, self._bearer):
            return ApiError(
                401, "expected this server's key, as in 'Authorization: Bearer KEY'", code="invalid_api_key"
            )
        host = headers.get("host", "")
        # A web page can have its own name lead to this machine, and would read answers meant for programs here.
        if self._local_only and not LOOPBACK.fullmatch(host):
            return ApiError(403, f"{host[:100]!r} is not localhost; a server that has other names needs an API key")
        # Not 429: that would say that this client asks too often. OpenAI's clients try again after both.
        if scope["method"] == "POST" and self._inside >= self._places:
            message = f"{self._inside} at once are all that this server takes; try again soon"
            return ApiError(503, message, code="overloaded")
        return None


async def read_body(request: Request, limit: int) -> bytearray:
    """The body of a request, whatever its header says of its length; beyond the limit nothing of it is kept."""
    if (coding := request.headers.get("content-encoding", "identity")) != "identity":
        raise ApiError(415, f"a body in {coding[:20]}; send it as it is, without Content-Encoding")
    body, size = bytearray(), 0
    with anyio.move_on_after(BODY_SECONDS) as deadline:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                body.clear()  # and read on, or the client would not see the answer
            else:
                body += part
    if size > limit:
        raise ApiError(413, f"the request has more than {limit:,} bytes; send fewer texts at once", code="too_large")
    if deadline.cancelled_caught:
        raise ApiError(408, f"the body did not come within {BODY_SECONDS} seconds")
    return body
