"""Turns: the parts of requests that wait for a thread, first come, first served; equal work is done together."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request

MOST = 16  # items: few enough to let other requests in between, and for an encoder to use only the caller's thread


@dataclass(eq=False)
class Turn:
    """A part of a request."""

    first: int  # number of its first item in the request
    items: Sequence[Any]
    kind: Hashable  # turns of one kind may be done together; of None, none
    result: Any = None
    error: Exception | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


class Workers:
    """Threads that requests share in turns."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._free = anyio.Semaphore(threads)
        self._limiter = anyio.CapacityLimiter(threads)  # anyio's default has 40
        self._waiting: deque[Turn] = deque()

    async def map(
        self, work: Callable[[Sequence[Turn]], None], items: Sequence[Any], request: Request, kind: Hashable = None
    ) -> list[Any]:
        """Results of turns of up to `MOST` items, in order.

        `work` sets the result or the error of each turn that it gets; with a `kind`, turns of other requests too, up to
        `MOST` items together. Raises the first error and drops the rest; raises ClientDisconnect if the client has
        disconnected.
        """
        request.state.texts = len(items)  # for the log
        turns = [Turn(first, items[first : first + MOST], kind) for first in range(0, len(items), MOST)]
        waiting = iter(turns)

        async def take_turns() -> None:
            for turn in waiting:
                self._waiting.append(turn)
                async with self._free:
                    if await request.is_disconnected():
                        self._drop(turn)
                        raise ClientDisconnect
                    if turn in self._waiting:
                        await self._do(work, self._take(turn))
                await turn.done.wait()
                if turn.error is not None:
                    raise turn.error

        try:
            async with anyio.create_task_group() as group:
                for _ in range(min(self.threads, len(turns))):
                    group.start_soon(take_turns)
        except ExceptionGroup as errors:
            first = errors.exceptions[0]
            raise first from first.__cause__
        finally:
            for turn in turns:
                self._drop(turn)
        return [turn.result for turn in turns]

    def _take(self, turn: Turn) -> list[Turn]:
        """A turn and others of its kind that wait, in order of arrival; they no longer wait."""
        taken, size = [turn], len(turn.items)
        for other in self._waiting:
            if other is not turn and turn.kind is not None and other.kind == turn.kind and size < MOST:
                size += len(other.items)
                taken += [other] if size <= MOST else []
        for one in taken:
            self._waiting.remove(one)
        return taken

    async def _do(self, work: Callable[[Sequence[Turn]], None], turns: list[Turn]) -> None:
        try:
            with anyio.CancelScope(shield=True):  # if this request ends, the turns of others must be done anyway
                await run_sync(work, turns, limiter=self._limiter)
        except Exception as error:
            for turn in turns:
                turn.error = error
        finally:
            for turn in turns:
                turn.done.set()

    def _drop(self, turn: Turn) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
