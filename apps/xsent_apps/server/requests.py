"""Requests and answers: OpenAI's fields and additional ones, limits, and errors in OpenAI's format."""

import hmac
import json
import logging
import re
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Annotated, Any, Literal, TypeVar

import anyio
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, ValidationError, model_validator
from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xsent.cli.terminal import plain

OnLong = Literal["error", "split"]  # not "warn": nobody would notice that a text was cut
DEFAULT = "default"  # a name that works for every model
HEALTH = "/health"
FINGERPRINT, SPLIT = "X-Xsent-Fingerprint", "X-Xsent-Split"  # headers of answers
# Need no key: monitors and browsers have none, and nothing there is secret.
OPEN = frozenset({HEALTH, "/openapi.json"})
BODY_SECONDS = 30  # for a client to send the body

_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})  # names of this machine in the Host header
_PORT = re.compile(r":\d+$")

logger = logging.getLogger(__name__)

AnyForm = TypeVar("AnyForm", bound="Form")
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a request is refused."""

    bytes: int = 2**20  # of a body
    items: int = 2048  # texts per request, as at OpenAI, or requested hits
    length: int = 8192  # tokens of one text, even if it is split
    queue: int = 64  # waiting requests, in addition to those being processed
    seconds: float = 120  # from the first byte of a request to the last of its answer


class ApiError(Exception):
    """A refused request; its message is sent to the client."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param  # the wrong field
        self.code = code  # machine-readable kind of error

    def response(self) -> Response:
        """The answer; its headers show a client whether to try again."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        headers = {"Retry-After": "1"} if self.status == 503 else {}
        headers |= {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return json_response({"error": error}, self.status, headers)


def json_response(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(to_json(content), status, headers, "application/json")


def _texts(value: object) -> object:
    """Accept a string or a list; a pydantic union would report an error per alternative."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise ValueError("expected a text, or a list of at least one")
    if all(type(text) is int or (isinstance(text, list) and text[:1] and type(text[0]) is int) for text in texts):
        advice = "send text (in LangChain check_embedding_ctx_length=False)"
        raise ValueError(f"tokens of another model's vocabulary are meaningless to this one; {advice}")
    return texts


def _groups(value: object) -> object:
    """Turn each text into a group of one; pairs are unchanged."""
    texts = _texts(value)
    assert isinstance(texts, list)
    for row, text in enumerate(texts):
        if not isinstance(text, str | list):
            raise ValueError(f"item {row} is {json.dumps(text)[:20]}; expected a text")
    return [[text] if isinstance(text, str) else text for text in texts]


Texts = Annotated[list[str], FailFast(), BeforeValidator(_texts, json_schema_input_type=str | list[str])]
_Groups = str | list[str] | list[tuple[str, str]]


class Form(BaseModel):
    """Fields of a request; a misspelt field is refused, a null field counts as missing."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    model: str = Field(DEFAULT, description="The model: its name, an alias, or `default`.")

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            raise ValueError(f"expected an object with {', '.join(cls.model_fields)}")
        return {name: value for name, value in fields.items() if value is not None}


class EmbeddingsForm(Form):
    """Fields of `/v1/embeddings`; unknown ones are ignored, because programs send those of other servers."""

    model_config = ConfigDict(extra="ignore")

    input: Texts = Field(description="A text, or a list of texts.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="The form of a vector: a list, or base64 of little-endian float32."
    )
    dimensions: int | None = Field(
        None, description="Numbers per vector: one of the lengths that `/v1/models` lists; default: all."
    )
    on_long: OnLong | None = Field(
        None, description="Split texts that are too long, or refuse them; default: the server's `--on-long`."
    )


class ClassifyForm(Form):
    """Fields of `/classify`; the input has groups of one text, or of two if the head is for pairs."""

    input: Annotated[list[list[str]], FailFast(), BeforeValidator(_groups, json_schema_input_type=_Groups)] = Field(
        description="A text, a list of texts, or a list of pairs if the head is for pairs."
    )
    head: str | None = Field(None, description="The name of the head; needed if there are several.")
    unknown: float | None = Field(
        None, ge=0, le=1, description="Probability below which a text has no label; default: the head's own."
    )


class SearchForm(Form):
    """Fields of `/search`."""

    query: Texts = Field(description="A text, or a list of texts.")
    k: int = Field(10, ge=1, description="Most hits per query.")
    index: str | None = Field(None, description="The name of the index; needed if there are several.")
    words: bool = Field(True, description="Rank lines that share words with the query higher.")
    least: float | None = Field(None, description="Lowest score of a hit; default: any.")


FORMS: dict[str, type[Form]] = {"/v1/embeddings": EmbeddingsForm, "/classify": ClassifyForm, "/search": SearchForm}


async def read_form(kind: type[AnyForm], request: Request, limit: int) -> AnyForm:
    """Read and check the fields of a request. Raises ApiError with the first problem."""
    body = await _read_body(request, limit)
    try:
        return kind.model_validate(json.loads(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    except UnicodeDecodeError as error:
        raise ApiError(400, f"the body is not UTF-8 (at byte {error.start:,}); encode it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"Invalid JSON: {error}") from error
    names = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    place = "".join(names).removeprefix(".")[:100]  # such as input[3]
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_type":
        reason = "expected a text"
    if first["type"] == "extra_forbidden":
        reason = f"unknown field; known fields: {', '.join(kind.model_fields)}"
    raise ApiError(400, f"{place}: {reason}" if place else reason, param=place or None)


async def _read_body(request: Request, limit: int) -> bytearray:
    """Read the body of a request; beyond the limit it is read and dropped, whatever length its header claims."""
    if (coding := request.headers.get("content-encoding", "identity")) != "identity":
        raise ApiError(415, f"the body is encoded as {coding[:20]}; send it without Content-Encoding")
    body = bytearray()
    size = 0
    with anyio.move_on_after(BODY_SECONDS) as deadline:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                body.clear()  # but continue reading, or the client would not see the answer
            else:
                body += chunk
    if size > limit:
        raise ApiError(413, f"the request has more than {limit:,} bytes; send fewer texts at once", code="too_large")
    if deadline.cancelled_caught:
        raise ApiError(408, f"the body did not arrive within {BODY_SECONDS} seconds")
    return body


def allow_origins(origins: Sequence[str]) -> list[Middleware]:
    """CORS middleware for these origins; it comes before the gate, because browsers send a preflight without a key."""
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=[FINGERPRINT, SPLIT],
    )
    return [cors] if origins else []


def host_name(host: str) -> str:
    """The name in a Host header for comparison: without the port, in lower case."""
    return _PORT.sub("", host).lower()


@dataclass
class _Answer:
    """Sends an answer and records its status."""

    send: Send
    status: int = 0  # 0 until it has started

    async def __call__(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        await self.send(message)


@dataclass(eq=False, repr=False)
class Gate:
    """Middleware that logs requests, and refuses at once those that cannot be served.

    So nothing piles up. A request keeps its place until its answer is sent, because a slow reader uses memory, too.
    When all places are taken, a new request gets the place of the one that has waited longest for its client to send
    the body or to read, so clients that hold back their bodies cannot block others.
    """

    app: ASGIApp
    _: KW_ONLY
    places: int  # for requests being processed or waiting
    seconds: float  # most seconds per request
    api_key: str | None
    hosts: Iterable[str] | None
    inside: int = 0
    full: bool = False  # from the first refusal until half of the places are free
    # Requests waiting for their client, longest first
    waiting: dict[anyio.CancelScope, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bearer = f"Bearer {self.api_key}".encode() if self.api_key else None
        self._hosts = None if self.hosts is None else _LOCAL | {host_name(name) for name in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request, and log it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send)
        began = perf_counter()
        try:
            if scope["path"] in OPEN:
                await self.app(scope, receive, answer)
            elif error := self._refusal(scope):
                with anyio.move_on_after(BODY_SECONDS):  # a client that is still sending would not see the answer
                    while (await receive()).get("more_body"):
                        pass
                await error.response()(scope, receive, answer)
            elif scope["method"] != "POST":
                await self.app(scope, receive, answer)
            else:
                await self._serve(scope, receive, answer)
        finally:
            if scope["path"] != HEALTH:  # monitors request it twice a minute
                named, status = plain(scope["path"][:100]), answer.status or 500  # no answer means a bug
                took, texts = 1000 * (perf_counter() - began), scope.get("state", {}).get("texts", 0)
                logger.info("%s %s %d, %.1f ms, texts: %d", scope["method"], named, status, took, texts)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        """Serve one request within the time limit."""
        self._take_places(1)
        try:
            with anyio.move_on_after(self.seconds) as request:
                await self.app(scope, self._receiver(receive, request), self._sender(answer, request))
        except anyio.get_cancelled_exc_class():  # the server is stopping and has waited long enough
            if not answer.status:
                with anyio.CancelScope(shield=True):
                    message = "this server was stopped before the request was done; try again later"
                    await ApiError(503, message, code="stopped").response()(scope, receive, answer)
            raise
        finally:
            self._take_places(-1)
        if request.cancelled_caught and not answer.status:
            message, code = "other requests needed its place before its body arrived; try again soon", "overloaded"
            if anyio.current_time() >= request.deadline:
                message = f"not done within {self.seconds:g} seconds; send fewer texts, or try again later"
                code = "timeout"
            await ApiError(503, message, code=code).response()(scope, receive, answer)

    def _take_places(self, change: int) -> None:
        self.inside += change
        self.full = self.full and self.inside > self.places // 2

    async def _wait(self, request: anyio.CancelScope, client: Awaitable[T]) -> T:
        """Wait for the client of a request, which may lose its place in the meantime."""
        self.waiting[request] = None
        try:
            return await client
        finally:
            self.waiting.pop(request, None)

    def _receiver(self, receive: Receive, request: anyio.CancelScope) -> Receive:
        whole = False

        async def receive_body() -> Message:
            nonlocal whole
            if whole:  # only checks whether the client is still there
                return await receive()
            message = await self._wait(request, receive())
            whole = not message.get("more_body")
            return message

        return receive_body

    def _sender(self, send: Send, request: anyio.CancelScope) -> Send:
        async def send_answer(message: Message) -> None:
            await self._wait(request, send(message))

        return send_answer

    def _free_place(self) -> bool:
        """Cancel the request that has waited longest for its client; returns False if none is waiting."""
        longest = next(iter(self.waiting), None)
        if longest is not None:
            del self.waiting[longest]
            longest.cancel()
        return longest is not None

    def _refusal(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        given = headers.get("authorization", "").encode("latin-1")  # the bytes as sent
        if given[:7].lower() == b"bearer ":  # scheme names are case-insensitive
            given = b"Bearer " + given[7:]
        if self._bearer and not hmac.compare_digest(given, self._bearer):
            expected = "expected this server's key, in the form 'Authorization: Bearer KEY'"
            return ApiError(401, expected, code="invalid_api_key")
        host = headers.get("host", "")
        # A web page could point its own host name to this machine and read answers meant for local programs.
        if self._hosts is not None and host_name(host) not in self._hosts:
            advice = "start the server with --allow-host and this name, or with an API key"
            return ApiError(403, f"{host[:100]!r} is not among {', '.join(sorted(self._hosts))}; {advice}")
        # Not 429, which would mean that this client sends too many requests. OpenAI's clients retry after both.
        if scope["method"] == "POST" and self.inside >= self.places and not self._free_place():
            if not self.full:
                logger.warning(
                    "all %d places are taken; further requests get 503 (raise --queue to let more wait)", self.places
                )
            self.full = True
            message = f"this server is at its limit of {self.inside} requests; try again soon"
            return ApiError(503, message, code="overloaded")
        return None
