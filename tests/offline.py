"""The guard of every test against connections."""

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def offline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No connection opens in a test, and none is tried, not even by a library that would take a refusal in silence.

    Those that need one are marked `network`; it goes to this machine itself.
    """
    tried = []

    def refuse(*where: object) -> None:
        tried.append(where)
        raise OSError("this test opens no connection")

    if not request.node.get_closest_marker("network"):
        for name in ("connect", "connect_ex", "sendto"):
            real = getattr(socket.socket, name)  # what processes of one machine say to each other through a file stays
            guarded = lambda s, *w, real=real: real(s, *w) if s.family == socket.AF_UNIX else refuse(s, *w)  # noqa: E731
            monkeypatch.setattr(socket.socket, name, guarded)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert not tried
