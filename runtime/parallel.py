"""A map over threads that keeps order and looks only a few items ahead."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Apply `work`, safe to call from several threads, to every item; yields the results in the order of the items.

    Items are read in the caller's thread, at most `2 * threads` ahead of the results; one thread is the caller's own.
    """
    if threads == 1:
        yield from map(work, items)
        return
    # Here, not above: it brings the logging of the standard library, and one thread needs neither.
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads, thread_name_prefix="xsent")
    pending: deque[Future[R]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) == 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:  # also when the caller stops early or presses Ctrl-C: what is queued is dropped
        pool.shutdown(cancel_futures=True)
