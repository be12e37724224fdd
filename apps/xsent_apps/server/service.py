"""What the server does with a request: it embeds, labels and searches, and says what it is."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import anyio
import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from xsent import LinearClassifier, SearchIndex, SentenceEncoder
from xsent_apps.server.api import (
    DEFAULT,
    ApiError,
    ClassifyRequest,
    EmbeddingsRequest,
    OnLong,
    SearchRequest,
    parse,
    reply,
)
from xsent_apps.server.gate import Limits, read_body
from xsent_apps.server.metrics import Metrics

T = TypeVar("T")
R = TypeVar("R")

# Items of a turn: few enough for others to come in between, not more than an encoder encodes in the caller's thread.
_TURN = 16


class Workers:
    """So many threads; requests take turns, first come first served."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._free = anyio.Semaphore(threads)
        self._limiter = anyio.CapacityLimiter(threads)  # else anyio's own, of 40

    async def map(self, work: Callable[[int, Sequence[T]], R], items: Sequence[T], request: Request) -> list[R]:
        """Results of `work`, given the number of its first item and some items, in their order.

        What it raises first is raised, and the rest is left; a ClientDisconnect where nobody waits for it any more.
        """
        found, errors = dict[int, R](), list[Exception]()
        starts = iter(range(0, len(items), _TURN))

        async def take_turns() -> None:
            for start in starts:
                try:
                    async with self._free:
                        if errors or await request.is_disconnected():
                            raise ClientDisconnect
                        part = items[start : start + _TURN]
                        found[start] = await run_sync(work, start, part, limiter=self._limiter)
                except Exception as error:  # kept: a task group would wrap it
                    errors.append(error)
                    return

        async with anyio.create_task_group() as group:
            for _ in range(min(self.threads, -(-len(items) // _TURN))):
                group.start_soon(take_turns)
        if errors:
            raise errors[0]
        return [found[start] for start in sorted(found)]


class Service:
    """What the routes lead to; see `xsent_apps.server.application.create_app`."""

    def __init__(
        self,
        encoder: SentenceEncoder,
        heads: Mapping[str, LinearClassifier],
        indexes: Mapping[str, SearchIndex],
        aliases: set[str],
        on_long: OnLong,
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self._encoder, self._heads, self._on_long, self._limits = encoder, heads, on_long, limits
        self._metrics = metrics
        self._workers = Workers(encoder.threads)
        self._name = encoder.bundle.name
        self._names = {self._name, DEFAULT, *aliases}
        self._widths = sorted({*encoder.bundle.trained.prefixes, encoder.dim})
        self._indexes = {name: (index, Lock()) for name, index in indexes.items()}
        for index in indexes.values():
            index.state.check_fingerprint(encoder.fingerprint, index.path)

    async def embeddings(self, request: Request) -> Response:
        """Vectors, as OpenAI's clients read them."""
        asked = parse(EmbeddingsRequest, await read_body(request, self._limits.bytes))
        self._check(asked.model, len(asked.input), "input")
        if asked.dimensions not in (None, *self._widths):
            widths = ", ".join(map(str, self._widths))
            message = f"dimensions: {asked.dimensions} is none of those that this model was trained for: {widths}"
            raise ApiError(400, message, param="dimensions")
        options = {"truncate_dim": asked.dimensions, "on_long": asked.on_long or self._on_long}
        vectors, tokens = await self._encode(asked.input, request, "input", options)
        if asked.encoding_format == "base64":
            embeddings = [b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        else:
            embeddings = vectors.tolist()
        data = [{"object": "embedding", "index": row, "embedding": one} for row, one in enumerate(embeddings)]
        return self._reply(data, tokens)

    async def classify(self, request: Request) -> Response:
        """Labels of texts or of pairs."""
        asked = parse(ClassifyRequest, await read_body(request, self._limits.bytes))
        name, head = _choose(self._heads, asked.head, "head")
        size = 2 if head.pairs else 1
        if strange := [row for row, group in enumerate(asked.input) if len(group) != size]:
            expected = "a list of pairs, [[TEXT, TEXT], …]" if head.pairs else "a text or a list of texts"
            raise ApiError(400, f"input[{strange[0]}]: the head {name!r} takes {expected}", param="input")
        texts = [*chain.from_iterable(asked.input)]
        self._check(asked.model, len(texts), "input")
        vectors, tokens = await self._encode(texts, request, "input", {"on_long": "split"})
        if head.pairs:
            vectors = vectors.reshape(-1, 2, self._encoder.dim)
        labels, probabilities = head.predict(vectors, unknown=asked.unknown), head.predict_proba(vectors).max(axis=1)
        data = [
            {"index": row, "label": label, "probability": probability}
            for row, (label, probability) in enumerate(zip(labels, probabilities.tolist(), strict=True))
        ]
        return self._reply(data, tokens, head=name)

    async def search(self, request: Request) -> Response:
        """Lines of an index."""
        asked = parse(SearchRequest, await read_body(request, self._limits.bytes))
        name, (index, lock) = _choose(self._indexes, asked.index, "index")
        self._check(asked.model, len(asked.query) * asked.k, "k")

        def find(first: int, queries: Sequence[str]) -> tuple[list[list[Any]], int]:
            tokens = self._count(first, queries, "query", self._limits.length)
            with lock:  # an index that has changed is opened again in between
                found = index.search(self._encoder, queries, asked.k, exact=asked.exact, words=asked.words)
            return found, tokens

        parts = await self._workers.map(find, asked.query, request)
        hits = chain.from_iterable(found for found, _ in parts)
        data = [
            {"index": row, "query": query, "hits": [vars(hit) for hit in found]}
            for row, (query, found) in enumerate(zip(asked.query, hits, strict=True))
        ]
        return self._reply(data, sum(tokens for _, tokens in parts), index=name)

    async def models(self, _: Request) -> Response:
        """What is served, in the form of OpenAI's list."""
        encoder = self._encoder
        facts = {"fingerprint": encoder.fingerprint, "dimensions": self._widths, "max_length": encoder.max_length}
        facts |= {"languages": encoder.languages, "heads": [*self._heads], "indexes": [*self._indexes]}
        names = [self._name, *sorted(self._names - {self._name, DEFAULT})]
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "xsent", **facts} for name in names]
        return reply({"object": "list", "data": data})

    async def health(self, _: Request) -> Response:
        """That it runs; whatever else can be asked is in the metrics."""
        return reply({"status": "ok", "model": self._name, "fingerprint": self._encoder.fingerprint})

    async def metrics(self, _: Request) -> Response:
        """Counters for Prometheus."""
        return Response(self._metrics.page(), media_type=CONTENT_TYPE_LATEST)

    async def _encode(
        self, texts: list[str], request: Request, param: str, options: dict[str, Any]
    ) -> tuple[NDArray[Any], int]:
        """Vectors [n, D] and the number of all tokens."""
        longest = self._limits.length
        if options["on_long"] == "error":
            longest = min(longest, self._encoder.max_length)

        def encode(first: int, some: Sequence[str]) -> tuple[NDArray[Any], int]:
            tokens = self._count(first, some, param, longest)
            return self._encoder.encode(some, **options), tokens

        parts = await self._workers.map(encode, texts, request)
        return np.concatenate([vectors for vectors, _ in parts]), sum(tokens for _, tokens in parts)

    def _count(self, first: int, texts: Sequence[str], param: str, longest: int) -> int:
        """Tokens of texts; one that is empty or too long is an ApiError."""
        total = 0
        for row, text in enumerate(texts, first):
            tokens = self._encoder.count_tokens(text)
            if not tokens:
                raise ApiError(400, f"{param}[{row}] has no text in it: leave it out", param=param)
            if tokens > longest:
                message = f"{param}[{row}] has {tokens:,} tokens, at most {longest:,} fit; shorten it"
                more = ', or send "on_long": "split"' if longest < self._limits.length else ""
                raise ApiError(400, message + more, param=param, code="context_length_exceeded")
            total += tokens
        self._metrics.texts.inc(len(texts))
        self._metrics.tokens.inc(total)
        return total

    def _check(self, model: str, items: int, param: str) -> None:
        if model not in self._names:
            names = ", ".join(sorted(self._names))
            message = f"there is no model {model[:100]!r} here, only {names}; --alias gives it another name"
            raise ApiError(404, message, param="model", code="model_not_found")
        if items > self._limits.items:
            what = "hits of all queries together" if param == "k" else "texts"
            message = f"{items:,} {what}; at most {self._limits.items:,} in one request"
            raise ApiError(400, message, param=param, code="too_many")

    def _reply(self, data: list[dict[str, Any]], tokens: int, **named: str) -> Response:
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        content = {"object": "list", "data": data, "model": self._name, **named, "usage": usage}
        return reply(content, headers={"X-Xsent-Fingerprint": self._encoder.fingerprint})


def _choose(known: Mapping[str, T], name: str | None, kind: str) -> tuple[str, T]:
    """What a request names; it need not where there is only one."""
    if not known:
        raise ApiError(404, f"this server has no {kind}; start it with --{kind} NAME=PATH", param=kind)
    if name is None and len(known) > 1:
        raise ApiError(400, f"{kind}: name one of {', '.join(known)}", param=kind)
    chosen = next(iter(known)) if name is None else name
    if chosen not in known:
        raise ApiError(404, f"there is no {kind} {chosen[:100]!r}, only {', '.join(known)}", param=kind)
    return chosen, known[chosen]
