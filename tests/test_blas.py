"""numpy keeps to one thread while sentences are encoded in parallel."""

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from xsent import blas
from xsent.threads import OneThread


@pytest.fixture
def one_thread() -> Iterator[OneThread]:
    one_thread = OneThread()
    before = one_thread.threads
    if not before:
        pytest.skip("numpy's products are not OpenBLAS's here")
    one_thread._set(2)
    yield one_thread
    one_thread._set(before)


def test_one_inside_and_as_before_outside(one_thread: OneThread) -> None:
    before = one_thread.threads
    with one_thread:
        assert one_thread.threads == 1
        with one_thread:
            assert one_thread.threads == 1
        assert one_thread.threads == 1
    assert one_thread.threads == before


def test_an_error_leaves_it_as_before(one_thread: OneThread) -> None:
    before = one_thread.threads
    with pytest.raises(ValueError, match="matmul"), one_thread:
        np.ones((2, 3)) @ np.ones((2, 3))
    assert one_thread.threads == before


def test_the_last_one_out_sets_it_back(one_thread: OneThread) -> None:
    before, inside = one_thread.threads, Barrier(4)

    def work(_: int) -> int:
        with one_thread:
            inside.wait()
            return one_thread.threads

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [1] * 4
    assert one_thread.threads == before


def test_without_openblas_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_NAMES", ())
    with OneThread() as nothing:
        assert nothing is None
    assert OneThread().threads == 0

    def refuse(_: str) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert OneThread().threads == 0
