"""Turns of requests that wait: done together where they can be, each with its own result, error and end."""

import asyncio
from collections.abc import Sequence
from threading import Event
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect

from xsent_apps.server.turns import MOST, Turn, Workers


class Desk:
    """Work that waits for `begin` at first, and remembers which items came together."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.begin = Event()

    def work(self, turns: Sequence[Turn]) -> None:
        """Each item in capital letters; "broken" has none, and "crash" ends everything."""
        self.begin.wait(10)
        self.seen.append([item for turn in turns for item in turn.items])
        for turn in turns:
            if "crash" in turn.items:
                raise RuntimeError("crash")
            if "broken" in turn.items:
                turn.error = ValueError("broken")
            turn.result = [item.upper() for item in turn.items]


def request(*, gone: bool = False) -> Any:  # noqa: ANN401  as much of a request as is used
    async def is_disconnected() -> bool:
        return gone

    return SimpleNamespace(state=SimpleNamespace(), is_disconnected=is_disconnected)


def ask(threads: int, *requests: tuple[Sequence[str], Any, Any]) -> tuple[Desk, list[Any]]:
    """Results or errors of requests that arrive in this order while the first one is being worked on."""
    desk, ends = Desk(), [None] * len(requests)

    async def send(place: int, workers: Workers) -> None:
        items, kind, sender = requests[place]
        try:
            turns = await workers.map(desk.work, items, sender, kind)
            ends[place] = [item for result in turns for item in result]
        except Exception as error:
            ends[place] = error

    async def run() -> None:
        workers = Workers(threads)
        async with anyio.create_task_group() as group:
            for place in range(len(requests)):
                group.start_soon(send, place, workers)
                await anyio.sleep(0.02)
            desk.begin.set()

    anyio.run(run)
    return desk, ends


def test_what_waits_is_done_together_and_everybody_gets_their_own() -> None:
    desk, ends = ask(1, (["a"], 1, request()), (["b", "c"], 1, request()), (["d"], 2, request()), (["e"], 1, request()))
    assert desk.seen == [["a"], ["b", "c", "e"], ["d"]] and ends == [["A"], ["B", "C"], ["D"], ["E"]]
    desk, ends = ask(1, (["a"], None, request()), (["b"], None, request()), (["c"], None, request()))
    assert desk.seen == [["a"], ["b"], ["c"]]


def test_a_long_request_lets_others_in_between() -> None:
    long = [f"{number}" for number in range(3 * MOST)]
    desk, ends = ask(1, (long, 1, request()), (["a"], 1, request()), ([*"bcd"] * 5, 1, request()))
    assert ends == [long, ["A"], [*"BCD"] * 5] and max(map(len, desk.seen)) == MOST
    assert desk.seen[1][0] == "a"
    assert ask(3, (long, 1, request()))[1] == [long]


def test_an_error_and_a_client_that_is_gone_are_only_their_own() -> None:
    _, ends = ask(
        1, (["a"], 1, request()), (["broken"], 1, request()), (["b"], 1, request(gone=True)), ("c", 1, request())
    )
    assert [type(end) for end in ends] == [list, ValueError, ClientDisconnect, list]
    _, ends = ask(1, (["a"], 1, request()), (["crash"], 1, request()), (["b"], 1, request()), (["c"], 2, request()))
    assert [type(end) for end in ends] == [list, RuntimeError, RuntimeError, list]
    with pytest.raises(RuntimeError, match="crash"):
        raise ends[2]


def test_a_request_that_ends_as_its_turn_begins_leaves_no_other_undone() -> None:
    ends: list[Any] = []

    async def run() -> None:
        workers, desk = Workers(1), Desk()
        desk.begin.set()

        async def send_and_end() -> None:
            with anyio.CancelScope() as scope:

                async def is_disconnected() -> bool:
                    await anyio.sleep(0)  # the other one arrives
                    asyncio.get_running_loop().call_soon(scope.cancel)  # as its time limit does
                    return False

                sender: Any = SimpleNamespace(state=SimpleNamespace(), is_disconnected=is_disconnected)
                await workers.map(desk.work, ["a"], sender, 1)

        async def send() -> None:
            ends.extend(await workers.map(desk.work, ["b"], request(), 1))

        async with anyio.create_task_group() as group:
            group.start_soon(send_and_end)
            group.start_soon(send)

    anyio.run(run)
    assert ends == [["B"]]
