"""What the server counts, as Prometheus reads it."""

from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
GONE = 499  # a client that hung up, as nginx counts it


class Metrics:
    """Counters of one application; those of the process come with them."""

    def __init__(self, model: dict[str, str]) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Info("xsent_model", "What encodes", registry=registry).info(model)
        labels = ("path", "status")
        self.requests = Counter("xsent_requests", "Requests by path and status", labels, registry=registry)
        self.seconds = Histogram(
            "xsent_request_seconds", "From the header to the whole answer", ["path"], buckets=SECONDS, registry=registry
        )
        self.inside = Gauge("xsent_requests_inside", "Requests at work and waiting", registry=registry)
        self.texts = Counter("xsent_texts", "Texts encoded", registry=registry)
        self.tokens = Counter("xsent_tokens", "Their tokens", registry=registry)

    def page(self) -> bytes:
        """All of it as text."""
        return generate_latest(self._registry)


class Counted:
    """Middleware that counts and times requests; paths that do not exist count as one."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app, self._metrics, self._paths = app, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"
        status, began = 500, perf_counter()  # of a bug nothing is said in here

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._metrics.requests.labels(path, status).inc()
            self._metrics.seconds.labels(path).observe(perf_counter() - began)
