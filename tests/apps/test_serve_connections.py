"""`xsent serve` and clients that send too slowly, too much, or nothing, and that read nothing."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from select import select
from urllib.parse import urlsplit

import pytest
from httpx2 import post
from served import EMBED, serving

pytestmark = pytest.mark.network

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"  # and no more of the body
SCHEMA = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
PLACES = 8
SECONDS = 1


@pytest.fixture(scope="module")
def crowded(mini_bundle: Path) -> Iterator[str]:
    """A server of few connections that works on one request at a time, and lets none wait."""
    before = f"from xsent_apps.server import running; running.CONNECTIONS = {PLACES}"
    with serving(mini_bundle, "--threads", 1, "--queue", 0, before=before) as (address, _):
        yield address


@pytest.fixture(scope="module")
def impatient(mini_bundle: Path) -> Iterator[str]:
    """A server that waits a second for its clients, and needs three for each text."""
    before = f"from xsent_apps.server import running; running.IDLE_SECONDS = {SECONDS}; "
    before += "import time; from xsent import SentenceEncoder as S; e = S.encode; "
    before += f"S.encode = lambda *a, **o: (time.sleep({3 * SECONDS}), e(*a, **o))[1]"
    with serving(mini_bundle, before=before) as (address, _):
        yield address


def connect(address: str, sent: bytes = b"", *, buffer: int = 0) -> socket.socket:
    """A connection over which this was sent, maybe with a small buffer for what comes back."""
    connection = socket.socket()
    connection.settimeout(30)
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    url = urlsplit(address)
    connection.connect((url.hostname, url.port))
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed a connection; what it sent before is dropped."""
    connection.setblocking(False)
    try:
        while connection.recv(2**16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def is_served(address: str) -> bool:
    """Whether the server encodes a text."""
    return bool(post(f"{address}{EMBED}", json={"input": "Anna"}).status_code == 200)


def comes_true(what: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether something is so before the time is up."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("sent", [b"", GET[:9], GET], ids=["silent", "half a line", "half a header"])
def test_who_holds_back_a_request_keeps_nobody_out(crowded: str, sent: bytes) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(connect(crowded, sent)) for _ in range(PLACES)]
        assert not any(map(is_closed, held))
        for round in range(1, 4):  # each comes over a connection of its own
            assert post(f"{crowded}{EMBED}", json={"input": "Anna"}).status_code == 200
            # The one that has waited longest has gone; what has been answered leaves its place to the next.
            assert comes_true(lambda: is_closed(held[0])) and not any(map(is_closed, held[1:])), round
        held += [stack.enter_context(connect(crowded, sent)) for _ in range(3)]
        assert comes_true(lambda: all(map(is_closed, held[:3]))) and not any(map(is_closed, held[3:]))


def test_a_client_that_was_answered_last_is_not_the_one_that_goes(crowded: str) -> None:
    with ExitStack() as stack, closing(HTTPConnection(urlsplit(crowded).netloc)) as client:
        for _ in range(3 * PLACES):
            client.request("GET", "/health")
            assert client.getresponse().read().startswith(b'{"status":"ok"')
            ours = client.sock
            stack.enter_context(connect(crowded))
        assert client.sock is ours  # it was never opened again


def test_a_body_that_does_not_come_loses_its_place_to_one_that_does(crowded: str) -> None:
    with connect(crowded, POST) as slow:
        # A request that comes before the server has read the slow one is served too.
        assert comes_true(lambda: is_served(crowded) and bool(select([slow], [], [], 0)[0]))
        answer = slow.recv(2**16)
        assert answer.startswith(b"HTTP/1.1 503") and b"before its body arrived; try again soon" in answer
    with ExitStack() as stack:
        for _ in range(3 * PLACES):
            stack.enter_context(connect(crowded, POST))
        assert is_served(crowded)
    assert is_served(crowded)


@pytest.mark.parametrize(
    "ahead", [GET, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: localhost\r\n\r\n0\r\n"]
)
@pytest.mark.parametrize("line", [b"X: a\r\n", b"a" * 1000])
def test_headers_without_end_are_not_read_to_their_end(crowded: str, ahead: bytes, line: bytes) -> None:
    with connect(crowded, ahead) as endless, pytest.raises(OSError, match=r"reset|[Bb]roken pipe|abort"):
        for _ in range(500):
            endless.sendall(line * (60_000 // len(line)))
    with connect(crowded, GET + b"X: " + b"a" * 15_000 + b"\r\n\r\n") as long:
        assert long.recv(2**16).startswith(b"HTTP/1.1 200")


def test_what_is_not_http_gets_no_traceback(crowded: str) -> None:
    chunked = GET + b"Transfer-Encoding: chunked\r\n\r\n"
    for first, then in (
        (chunked + b"no size\r\n", b""),
        (chunked, b"no size\r\n"),
        (GET + b"\r\nno HTTP\r\n\r\n", b""),
    ):
        with connect(crowded, first) as bad:  # the server says what it printed when it ends
            begun = bad.recv(2**16)
            assert begun.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))
            bad.sendall(then)
            assert comes_true(lambda: is_closed(bad))


def test_nobody_is_waited_for_longer_than_that(impatient: str) -> None:
    answered = GET + b"\r\n"
    starts = {
        "silent": b"",
        "half a line": b"GET",
        "half a header": GET,
        "no body": POST,
        "answered": answered,
        "a body too late": GET + b"Content-Length: 900\r\n\r\n",
    }
    with ExitStack() as stack:
        held = {name: stack.enter_context(connect(impatient, sent)) for name, sent in starts.items()}
        slowly = [
            stack.enter_context(connect(impatient, starts[name])) for name in ("half a header", "a body too late")
        ]
        assert not any(map(is_closed, (*held.values(), *slowly)))
        end = time.monotonic() + 3 * SECONDS
        while time.monotonic() < end:
            for connection in slowly:
                if not is_closed(connection):
                    connection.send(b"a")
            time.sleep(0.1)
        assert [name for name, connection in held.items() if not is_closed(connection)] == []
        assert all(map(is_closed, slowly))


def test_a_request_that_is_worked_on_is_not_closed(impatient: str) -> None:
    assert post(f"{impatient}{EMBED}", json={"input": "Anna"}, timeout=60).status_code == 200


def test_who_reads_nothing_is_closed_and_who_reads_slowly_is_not(impatient: str) -> None:
    with connect(impatient, buffer=4096) as deaf, connect(impatient, buffer=2**16) as slow:
        for connection in (deaf, slow):
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):  # while answers are unread, the server reads no more requests
                connection.sendall(SCHEMA * 100_000)
            connection.settimeout(30)
        end = time.monotonic() + 4 * SECONDS
        while time.monotonic() < end:
            assert slow.recv(2**16)
            time.sleep(0.01)
        with pytest.raises(ConnectionError):
            deaf.sendall(SCHEMA * 100_000)
