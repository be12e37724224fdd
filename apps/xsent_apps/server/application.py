"""The server as an ASGI application: OpenAI's embeddings, heads and indexes over HTTP."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from xsent import LinearClassifier, SearchIndex, SentenceEncoder, XsentError
from xsent_apps.server.api import ApiError, OnLong
from xsent_apps.server.gate import OPEN, Gate, Limits
from xsent_apps.server.metrics import GONE, Counted, Metrics
from xsent_apps.server.service import Service

logger = logging.getLogger(__name__)


def create_app(
    encoder: SentenceEncoder,
    *,
    heads: Mapping[str, LinearClassifier] | None = None,
    indexes: Mapping[str, SearchIndex] | None = None,
    aliases: Iterable[str] = (),
    api_key: str | None = None,
    on_long: OnLong = "error",
    limits: Limits | None = None,
    local_only: bool = False,
) -> Starlette:
    """An application for any ASGI server.

    Args:
        encoder: Its threads are how many turns of 16 texts are encoded at once.
        heads: Of this encoder, by the names that requests call them.
        indexes: Of this encoder, likewise; a FingerprintError says that one is not.
        aliases: More names that requests may call the model by.
        api_key: What clients must send; None lets everyone in.
        on_long: What becomes of texts over `max_length` tokens where a request to embed does not say.
        limits: Beyond them requests are refused.
        local_only: Refuse requests that came by another name than localhost.
    """
    limits = limits or Limits()
    metrics = Metrics({"name": encoder.bundle.name, "fingerprint": encoder.fingerprint})
    service = Service(encoder, heads or {}, indexes or {}, {*aliases}, on_long, limits, metrics)
    routes = [
        Route("/v1/embeddings", service.embeddings, methods=["POST"]),
        Route("/v1/models", service.models),
        Route("/classify", service.classify, methods=["POST"]),
        Route("/search", service.search, methods=["POST"]),
        Route("/metrics", service.metrics),
        Route(OPEN, service.health),
    ]
    gate: dict[str, Any] = {"api_key": api_key, "local_only": local_only, "limits": limits, "metrics": metrics}
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Counted, metrics=metrics, paths=frozenset(route.path for route in routes)),
            Middleware(Gate, places=encoder.threads + limits.queue, **gate),
        ],
        exception_handlers={
            ApiError: _refused,
            HTTPException: _refused,
            ClientDisconnect: _refused,
            XsentError: _failed,
            OSError: _failed,
            Exception: _failed,
        },
    )


async def _refused(request: Request, error: Exception) -> Response:
    """What the client did wrong, in OpenAI's form."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=GONE)  # nobody reads it
    if isinstance(error, HTTPException):  # of the routes
        answer = ApiError(error.status_code, f"{request.method} {request.url.path[:100]}: {error.detail}").response()
        answer.headers.update(error.headers or {})
        return answer
    assert isinstance(error, ApiError)
    return error.response()


async def _failed(_: Request, error: Exception) -> Response:
    """What went wrong here: the log says what, a client need not know our paths; of a bug it has the traceback."""
    if isinstance(error, (XsentError, OSError)):
        logger.error("%s", error)
    return ApiError(500, "this server failed; its log says why").response()
