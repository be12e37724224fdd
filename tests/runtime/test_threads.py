"""Threads: CPUs allowed in made-up containers, how a map ends, and numpy on one thread beside others."""

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commands import raises, write_files

from xsent.backends import threads
from xsent.backends.threads import OneThread, available_cpus, ordered_map

BOX, V1 = "sys/fs/cgroup/a", "sys/fs/cgroup/cpu/cpu.cfs"
V1_GROUPS = "3:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n"


def test_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[str | None, dict[str, str], int]] = [
        (None, {}, 8),
        *(
            ("0::/a/b\n", {f"{BOX}/b/cpu.max": f"{quota} 100000"}, cpus)
            for quota, cpus in {"max": 8, "200000": 2, "150000": 2, "10000": 1, "9900000": 8, "?": 8}.items()
        ),
        ("0::/a/b\n", {f"{BOX}/cpu.max": "300000 100000", f"{BOX}/b/cpu.max": "500000 100000"}, 3),
        (V1_GROUPS, {f"{V1}_quota_us": "-1", f"{V1}_period_us": "100000"}, 8),
        (V1_GROUPS, {f"{V1}_quota_us": "400000", f"{V1}_period_us": "100000"}, 4),
    ]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for number, (groups, quotas, cpus) in enumerate(cases):
        root = tmp_path / str(number)
        write_files(root, quotas if groups is None else {"proc/self/cgroup": groups, **quotas})
        assert available_cpus(root) == cpus, quotas
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus(root) == 1


def test_first_error_comes_in_order_and_threads_end() -> None:
    def work(item: int) -> int:
        if item >= 3:
            raise ValueError(f"item {item}")
        return item

    results = ordered_map(work, range(100), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    raises(ValueError, "item 3", next, results)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("xsent")]


@pytest.fixture
def one_thread() -> Iterator[OneThread]:
    one_thread = OneThread()
    before = one_thread.threads()
    if not before:
        pytest.skip("numpy's products are not OpenBLAS's here")
    one_thread._set(2)
    yield one_thread
    one_thread._set(before)


def test_one_inside_and_as_before_outside_also_after_an_error(one_thread: OneThread) -> None:
    before = one_thread.threads()
    with one_thread:
        with one_thread:
            assert one_thread.threads() == 1
        assert one_thread.threads() == 1
    assert one_thread.threads() == before
    with pytest.raises(ValueError, match="matmul"), one_thread:
        np.ones((2, 3)) @ np.ones((2, 3))
    assert one_thread.threads() == before
    inside = threading.Barrier(4)

    def work(_: int) -> int:
        with one_thread:
            inside.wait()
            return one_thread.threads()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [1] * 4
    assert one_thread.threads() == before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_it_lacks(one_thread: OneThread) -> None:
    before = one_thread.threads()
    with one_thread, one_thread._lock:  # as other threads hold them
        child = os.fork()
        if not child:
            signal.alarm(20)
            with one_thread:
                inside = one_thread.threads()
            os._exit((inside, one_thread.threads()) != (1, before))
    assert os.waitpid(child, 0)[1] == 0


def test_without_openblas_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for target, name, value in ((threads, "_NAMES", ()), (ctypes, "CDLL", mock.Mock(side_effect=OSError))):
        monkeypatch.setattr(target, name, value)
        with OneThread() as nothing:
            assert nothing is None and OneThread().threads() == 0
