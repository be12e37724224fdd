"""The ordered map."""

import threading
import time
from collections.abc import Iterator

import pytest

from xsent.threads import ordered_map


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_keeps_order(threads: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(ordered_map(work, range(30), threads)) == [item * item for item in range(30)]


@pytest.mark.parametrize("threads", [1, 3])
def test_looks_only_a_few_items_ahead(threads: int) -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        while True:
            read += 1
            yield read

    results = ordered_map(lambda item: item, items(), threads)
    for done in range(1, 20):
        assert next(results) == done
        assert read <= done + 2 * threads
    results.close()  # type: ignore[attr-defined]


def test_first_error_comes_in_order_and_threads_end() -> None:
    def work(item: int) -> int:
        if item >= 3:
            raise ValueError(f"item {item}")
        return item

    results = ordered_map(work, range(100), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="item 3"):
        next(results)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("xsent")]
