"""Threads that all requests share, so that the event loop stays free and no request keeps the others out."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request

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
