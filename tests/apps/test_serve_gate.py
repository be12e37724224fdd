"""The gate in front of the server's application, by the messages that it gets and sends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xsent_apps.server.requests import Gate

BODY = {"type": "http.request", "body": b"x", "more_body": False}
PART = {**BODY, "more_body": True}


def gate(app: ASGIApp, api_key: str | None = None) -> Gate:
    """A gate with one place."""
    return Gate(app, places=1, seconds=30, api_key=api_key, hosts=None)


@dataclass
class Client:
    """A client that sends some messages, then nothing more."""

    sends: list[Message]
    heard: list[Message] = field(default_factory=list)
    waits: anyio.Event = field(default_factory=anyio.Event)

    async def receive(self) -> Message:
        """The next of its messages, as the application reads them."""
        if self.sends:
            return self.sends.pop(0)
        self.waits.set()
        return await anyio.Event().wait()  # type: ignore[return-value]

    async def send(self, message: Message) -> None:
        """Hear a part of the answer."""
        self.heard.append(message)

    async def ask(self, of: Gate) -> None:
        """Send one request."""
        await of({"type": "http", "path": "/embed", "method": "POST", "headers": []}, self.receive, self.send)

    @property
    def statuses(self) -> list[int]:
        """Of the answers that it got."""
        return [message["status"] for message in self.heard if "status" in message]


def run(work: Callable[[], Any]) -> None:
    async def limited() -> None:
        with anyio.fail_after(30):
            await work()

    anyio.run(limited)


async def reads_all(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b""})


def test_a_refusal_waits_for_what_the_client_still_sends() -> None:
    async def work() -> None:
        client = Client([PART, PART, BODY])
        await client.ask(gate(reads_all, api_key="key"))
        assert (client.sends, client.statuses) == ([], [401])

    run(work)


def test_the_place_of_a_client_that_holds_back_its_body_goes_to_another() -> None:
    async def work() -> None:
        given, slow, quick = gate(reads_all), Client([PART]), Client([BODY])
        async with anyio.create_task_group() as group:
            group.start_soon(slow.ask, given)
            await slow.waits.wait()
            await quick.ask(given)
        assert (slow.statuses, quick.statuses, given.inside) == ([503], [200], 0)
        assert any(b"other requests needed its place" in message.get("body", b"") for message in slow.heard)

    run(work)


def test_a_stopped_server_answers_once() -> None:
    """Who has no answer yet is told that the server stopped; who has its beginning gets no second one."""

    async def begins(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        await receive()

    async def work() -> None:
        for app, status in ((begins, 200), (reads_all, 503)):
            client = Client([])
            async with anyio.create_task_group() as group:
                group.start_soon(client.ask, gate(app))
                await client.waits.wait()
                group.cancel_scope.cancel()
            assert client.statuses == [status]

    run(work)
