"""Threads: the available CPUs, an ordered parallel map, and BLAS limited to one thread."""

import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future


T = TypeVar("T")
R = TypeVar("R")

# In numpy's wheels, with and without 64-bit sizes, and in OpenBLAS of the system.
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


def available_cpus(root: Path = Path("/")) -> int:
    """CPUs this process may run on: its affinity, capped by the quota of its container.

    The machine's CPU count is wrong in containers. Only tests pass another `root`.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """CPU quotas of the control groups of this process and of all groups above them."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no control groups here: not Linux
        return
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if not controllers:
            mount, files = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            mount, files = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        folder = mount / path.lstrip("/")
        for level in (folder, *folder.parents):
            # Skipped: no quota at this level, or a group of the host that the container cannot see.
            with suppress(OSError, ValueError, ZeroDivisionError):
                quota, period = " ".join((level / file).read_text() for file in files).split()
                if int(quota) >= 0:  # no quota is "max" in version 2, a ValueError, and -1 in version 1
                    yield int(quota) / int(period)
            if level == mount:
                break


def ordered_map(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Apply `work`, safe to call from several threads, to every item; yields the results in the order of the items.

    Items are read in the caller's thread, at most `2 * threads` ahead of the results. `threads` = 1 starts none.
    """
    if threads == 1:
        yield from map(work, items)
        return
    # Here, not above: it imports logging, and one thread needs neither.
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads, thread_name_prefix="xsent")
    pending: deque[Future[R]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(work, item))
            while pending and (len(pending) == 2 * threads or pending[0].done()):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:  # also when the caller stops early or presses Ctrl-C: queued items are dropped
        pool.shutdown(cancel_futures=True)


class OneThread:
    """Keeps numpy's OpenBLAS to one thread while any thread of this process is inside.

    OpenBLAS's threads spin while they wait for work. While sentences are encoded in parallel, or under any other load,
    they cost several times what they gain. Other BLAS libraries are not changed.

    `threadpoolctl` would not do: with it, only the thread that first set a limit on OpenBLAS can change it again. Here
    the last thread to leave restores the limit, whichever came first.
    """

    def __init__(self) -> None:
        self._before = self._inside = 0
        self._reset_in_child()
        os.register_at_fork(after_in_child=self._reset_in_child)

    @cached_property
    def _functions(self) -> tuple[Callable[[], int], Callable[[int], object]]:
        return _openblas_functions()  # at the first use: this module is also imported where numpy is not

    def threads(self) -> int:
        """OpenBLAS's number of threads."""
        return self._functions[0]()

    def _set(self, count: int) -> None:
        self._functions[1](count)

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self.threads()
                self._set(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._set(self._before)

    def _reset_in_child(self) -> None:
        """After a fork, the other threads are gone, including the lock's owner."""
        self._lock = Lock()
        if self._inside:
            self._inside = 0
            self._set(self._before)


# One for all who need it: of two, the last to leave would not restore the threads.
ONE_THREAD = OneThread()


def _openblas_functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """OpenBLAS's functions to get and set its number of threads; with another BLAS they return 0 and do nothing."""
    import ctypes  # here, not above: `available_cpus` does not need it

    try:
        # Already loaded; a lookup in it covers the libraries that it is linked to.
        library = ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)
    except OSError:
        return lambda: 0, lambda _: None
    for name in _NAMES:
        get, change = (getattr(library, name.format(f"{verb}_num_threads"), None) for verb in ("get", "set"))
        if get is not None and change is not None:
            return get, change
    return lambda: 0, lambda _: None
