"""The server as an ASGI application: OpenAI's embeddings, heads and indexes over HTTP."""

import logging
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from inspect import getdoc
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from xsent import Hit, LinearClassifier, SearchIndex, SentenceEncoder, XsentError, no_match_message
from xsent_apps.server.requests import (
    DEFAULT,
    FINGERPRINT,
    FORMS,
    HEALTH,
    SPLIT,
    ApiError,
    ClassifyForm,
    EmbeddingsForm,
    Gate,
    Limits,
    OnLong,
    SearchForm,
    allow_origins,
    json_response,
    read_form,
)
from xsent_apps.server.turns import Turn, Workers

GONE = 499  # status for a client that disconnected, as in nginx

_ANSWERS = {"200": {"description": "OK"}, "default": {"description": "Refused: `error.message` explains why"}}

T = TypeVar("T")

logger = logging.getLogger(__name__)


def create_app(
    encoder: SentenceEncoder,
    *,
    heads: Mapping[str, LinearClassifier] | None = None,
    indexes: Mapping[str, SearchIndex] | None = None,
    aliases: Iterable[str] = (),
    api_key: str | None = None,
    on_long: OnLong = "split",
    limits: Limits | None = None,
    hosts: Iterable[str] | None = None,
    origins: Sequence[str] = (),
) -> Starlette:
    """An application for any ASGI server.

    Args:
        encoder: The encoder; each of its threads encodes 16 texts at a time.
        heads: Heads of this encoder, by the names that requests use.
        indexes: Indexes of this encoder, by name. Raises FingerprintError if one is of another encoder.
        aliases: Other names for the model in requests.
        api_key: The key that clients must send; None lets everyone in.
        on_long: What an embedding request does with texts over `max_length` tokens unless it sets `on_long` itself.
        limits: Limits beyond which requests are refused.
        hosts: Host names besides localhost that requests may be sent to; None allows all.
        origins: Origins of web pages that may read answers, such as https://example.org.

    Example:
        >>> app = create_app(encoder)  # `uvicorn MODULE:app` serves it
    """
    limits = limits or Limits()
    served = {name: ServedIndex(index, encoder) for name, index in (indexes or {}).items()}
    service = Service(encoder, heads or {}, served, {*aliases}, on_long, limits)
    routes = [
        Route("/v1/embeddings", service.embeddings, methods=["POST"]),
        Route("/v1/models", service.models),
        Route("/classify", service.classify, methods=["POST"]),
        Route("/search", service.search, methods=["POST"]),
        Route(HEALTH, service.health),
    ]
    schema = _make_schema(routes, needs_key=api_key is not None)

    async def show_schema(_: Request) -> Response:
        return json_response(schema)

    routes.append(Route("/openapi.json", show_schema))
    gate = Middleware(
        Gate,
        places=encoder.threads + limits.queue,
        seconds=limits.seconds,
        api_key=api_key,
        hosts=hosts,
    )
    refused = dict.fromkeys((ApiError, HTTPException, ClientDisconnect), _refused)
    failed = dict.fromkeys((XsentError, OSError, Exception), _failed)
    middleware = [*allow_origins(origins), gate]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={**refused, **failed})


async def _refused(request: Request, error: Exception) -> Response:
    """Report the client's mistake."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=GONE)  # nobody will read it
    if isinstance(error, HTTPException):  # from the routes
        answer = ApiError(error.status_code, _routing_message(request, error)).response()
        answer.headers.update(error.headers or {})
        return answer
    assert isinstance(error, ApiError)
    return error.response()


def _routing_message(request: Request, error: HTTPException) -> str:
    """Say which paths and methods there are, to somebody who asked for another."""
    asked = f"{request.method} {request.url.path[:100]}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"{asked}: this path takes {(error.headers or {}).get('Allow', 'another method')}"
    if error.status_code == HTTPStatus.NOT_FOUND:
        offered = ", ".join(route.path for route in request.app.routes)
        return f"{asked}: no such path; this server has {offered}; the base_url of OpenAI's clients ends in /v1"
    return f"{asked}: {error.detail}"


async def _failed(_: Request, error: Exception) -> Response:
    """Log a failure of the server without exposing paths to the client; the traceback of a bug is logged anyway."""
    if isinstance(error, (XsentError, OSError)):
        logger.error("%s", error)
    return ApiError(500, "internal error; the server's log has the details").response()


class ServedIndex:
    """An index that is reloaded after it changes on disk; threads may share it."""

    def __init__(self, index: SearchIndex, encoder: SentenceEncoder) -> None:
        index.state.check_fingerprint(encoder.fingerprint, index.path)
        self._index = index
        self._encoder = encoder
        self._lock = Lock()
        self._problem = ""  # why it could not be reloaded

    def search(self, queries: Sequence[str], form: SearchForm) -> list[list[Hit]]:
        """The hits of every query."""
        with self._lock:
            if self._index.has_changed():
                self._reload()
            return self._index.search(self._encoder, queries, form.k, words=form.words, least=form.least)

    def _reload(self) -> None:
        """Reload the index; on failure keep serving the old one and log once."""
        old = self._index
        try:
            index = SearchIndex(old.path)
            index.state.check_fingerprint(self._encoder.fingerprint, index.path)
        except (XsentError, OSError) as error:
            if self._problem != str(error):
                logger.warning("could not reload the changed index; still searching the previous one: %s", error)
            self._problem = str(error)
            return
        self._index, self._problem = index, ""
        old.close()


@dataclass(eq=False, repr=False)
class Service:
    """Answers the requests of each route."""

    encoder: SentenceEncoder
    heads: Mapping[str, LinearClassifier]
    indexes: Mapping[str, ServedIndex]
    aliases: set[str]
    on_long: OnLong
    limits: Limits

    def __post_init__(self) -> None:
        self._workers = Workers(self.encoder.threads)
        self._name = self.encoder.bundle.name
        self._names = {self._name, DEFAULT, *self.aliases}
        self._widths = sorted({*self.encoder.bundle.trained.prefixes, self.encoder.dim})

    async def embeddings(self, request: Request) -> Response:
        """Vectors in OpenAI's format."""
        form = await read_form(EmbeddingsForm, request, self.limits.bytes)
        self._check(form.model, len(form.input), "input")
        if form.dimensions not in (None, *self._widths):
            widths = ", ".join(map(str, self._widths))
            message = f"dimensions: {form.dimensions} is not among those that this model was trained for: {widths}"
            raise ApiError(400, message, param="dimensions")
        options = {"truncate_dim": form.dimensions, "on_long": form.on_long or self.on_long}
        vectors, used = await self._encode(form.input, request, options)
        if form.encoding_format == "base64":
            embeddings = [b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        else:
            embeddings = vectors.tolist()
        data = [{"object": "embedding", "index": row, "embedding": one} for row, one in enumerate(embeddings)]
        return self._reply(data, used)

    async def classify(self, request: Request) -> Response:
        """Labels of texts or of pairs."""
        form = await read_form(ClassifyForm, request, self.limits.bytes)
        name, head = _choose(self.heads, form.head, "head")
        size = 2 if head.pairs else 1
        for row, group in enumerate(form.input):
            if len(group) != size:
                expected = "a list of pairs, [[TEXT, TEXT], …]" if head.pairs else "a text or a list of texts"
                raise ApiError(400, f"input[{row}]: the head {name!r} takes {expected}", param="input")
        texts = [*chain.from_iterable(form.input)]
        self._check(form.model, len(texts), "input")
        vectors, used = await self._encode(texts, request, {"on_long": "split"}, may_be_empty=True)
        if head.pairs:
            vectors = vectors.reshape(-1, 2, self.encoder.dim)
        data = [
            {"index": row, "label": label, "probability": probability}
            for row, (label, probability) in enumerate(head.answers(vectors, unknown=form.unknown, texts=texts))
        ]
        return self._reply(data, used, head=name)

    async def search(self, request: Request) -> Response:
        """Lines of an index."""
        form = await read_form(SearchForm, request, self.limits.bytes)
        name, index = _choose(self.indexes, form.index, "index")
        self._check(form.model, len(form.query) * form.k, "k")

        def find(turns: Sequence[Turn]) -> None:
            for turn in turns:
                used = self._count(turn, "query", self.limits.length)
                turn.result = index.search(turn.items, form), used

        turns = await self._workers.map(find, form.query, request)
        hits = chain.from_iterable(found for found, _ in turns)
        data = [
            {"index": row, "query": query, "hits": [vars(hit) for hit in found], "note": no_match_message(found)}
            for row, (query, found) in enumerate(zip(form.query, hits, strict=True))
        ]
        return self._reply(data, [used for _, used in turns], index=name)

    async def models(self, _: Request) -> Response:
        """The model under its name and its aliases, in OpenAI's format."""
        encoder = self.encoder
        facts = {"fingerprint": encoder.fingerprint, "dimensions": self._widths, "max_length": encoder.max_length}
        facts |= {"languages": encoder.languages, "heads": [*self.heads], "indexes": [*self.indexes]}
        about = {"object": "model", "created": 0, "owned_by": "xsent", **facts}
        names = [self._name, *sorted(self._names - {self._name, DEFAULT})]
        return json_response({"object": "list", "data": [{"id": name, **about} for name in names]})

    async def health(self, _: Request) -> Response:
        """Whether the server is running, and with which model."""
        return json_response({"status": "ok", "model": self._name, "fingerprint": self.encoder.fingerprint})

    async def _encode(
        self, texts: list[str], request: Request, options: dict[str, Any], *, may_be_empty: bool = False
    ) -> tuple[NDArray[np.float32], list[tuple[int, int]]]:
        """Vectors [n, D], and the counts of each turn, see `_count`; requests that wait are encoded together."""
        longest = self.limits.length
        if options["on_long"] == "error":
            longest = min(longest, self.encoder.max_length)

        def encode(turns: Sequence[Turn]) -> None:
            used: dict[Turn, tuple[int, int]] = {}
            for turn in turns:
                try:
                    used[turn] = self._count(turn, "input", longest, may_be_empty=may_be_empty)
                except ApiError as error:
                    turn.error = error
            vectors = self.encoder.encode([text for turn in used for text in turn.items], **options)
            end = 0
            for turn in used:
                start, end = end, end + len(turn.items)
                turn.result = vectors[start:end], used[turn]

        kind = (*options.items(), longest, may_be_empty)
        turns = await self._workers.map(encode, texts, request, kind)
        return np.concatenate([vectors for vectors, _ in turns]), [used for _, used in turns]

    def _count(self, turn: Turn, param: str, longest: int, *, may_be_empty: bool = False) -> tuple[int, int]:
        """Number of tokens and of texts that are split. Raises ApiError if a text is too long or invalid.

        An empty text has no vector and no hits, so it is refused, unless it `may_be_empty`: then it has no label.
        """
        total = split = 0
        for row, text in enumerate(turn.items, turn.first):
            try:
                tokens = self.encoder.count_tokens(text)
            except ValueError as error:  # a lone surrogate
                raise ApiError(400, f"{param}[{row}]: {error}", param=param) from error
            if not (tokens or may_be_empty):
                raise ApiError(400, f"{param}[{row}] is empty; omit it", param=param)
            if tokens > longest:
                message = f"{param}[{row}] has {tokens:,} tokens, at most {longest:,} fit; shorten it"
                more = ', send "on_long": "split", or start the server with --on-long split'
                more = more if longest < self.limits.length else ""
                raise ApiError(400, message + more, param=param, code="context_length_exceeded")
            total += tokens
            split += tokens > self.encoder.max_length
        return total, split

    def _check(self, model: str, items: int, param: str) -> None:
        """Raise ApiError if the model has another name or there are too many items."""
        if model not in self._names:
            names = ", ".join(sorted(self._names))
            message = f"no model {model[:100]!r}; this server has {names}; add a name with --alias"
            raise ApiError(404, message, param="model", code="model_not_found")
        if items > self.limits.items:
            what = "hits in total over all queries" if param == "k" else "texts"
            message = f"{items:,} {what}; at most {self.limits.items:,} in one request"
            raise ApiError(400, message, param=param, code="too_many")

    def _reply(self, data: list[dict[str, Any]], used: list[tuple[int, int]], **named: str) -> Response:
        tokens, split = map(sum, zip(*used, strict=True))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        content = {"object": "list", "data": data, "model": self._name, **named, "usage": usage}
        return json_response(content, headers={FINGERPRINT: self.encoder.fingerprint, SPLIT: str(split)})


def _choose(known: Mapping[str, T], name: str | None, kind: str) -> tuple[str, T]:
    """The name and the head or index that a request asks for; a single one needs no name."""
    if not known:
        raise ApiError(404, f"this server has no {kind}; start it with --{kind} NAME=PATH", param=kind)
    if name is None and len(known) > 1:
        raise ApiError(400, f"{kind}: name one of {', '.join(known)}", param=kind)
    chosen = next(iter(known)) if name is None else name
    if chosen not in known:
        raise ApiError(404, f"no {kind} {chosen[:100]!r}; this server has {', '.join(known)}", param=kind)
    return chosen, known[chosen]


def _make_schema(routes: Iterable[Route], *, needs_key: bool) -> dict[str, Any]:
    """The OpenAPI schema of the routes, with the fields of their requests."""
    paths = {}
    for route in routes:
        summary = (getdoc(route.endpoint) or "").partition("\n")[0]
        operation: dict[str, Any] = {"summary": summary, "responses": _ANSWERS}
        if form := FORMS.get(route.path):
            content = {"application/json": {"schema": form.model_json_schema()}}
            operation["requestBody"] = {"required": True, "content": content}
        paths[route.path] = {"post" if form else "get": operation}
    about = {"title": "xsent", "version": version("xsent")}
    schema: dict[str, Any] = {"openapi": "3.1.0", "info": about, "paths": paths}
    if needs_key:
        schema["components"] = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
        schema["security"] = [{"key": []}]
    return schema
