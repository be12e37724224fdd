"""The latency of bundles, side by side: what is compared, not how fast it is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from xsent.backends import open_backend
from xsent.bench.latency import DEFAULT, compare, default_session, measure_latency, some_ids
from xsent.bundle import Bundle


def test_every_bundle_has_a_row_for_every_length(mini_bundle: Path) -> None:
    text = measure_latency(
        [mini_bundle], lengths=[5, 9], backends=["onnx"], default=True, rounds=1, command="xsent-bench latency mini"
    )
    lines = text.splitlines()
    assert lines[0].startswith("`xsent-bench latency mini` on ")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[4:]]
    assert [row[:2] for row in cells] == [
        [f"1: mini, {name}", tokens] for tokens in ("5", "9", "4 to 48") for name in ("onnx", DEFAULT)
    ]
    assert all(row[4] == "1.00" for row in cells[::2])


def test_the_rival_has_the_same_weights(mini_bundle: Path, tmp_path: Path) -> None:
    ids = some_ids(Bundle.open(mini_bundle).vocab_size, 7, 1)
    ours = open_backend("onnx", Bundle.open(mini_bundle)).embed(ids)
    theirs = default_session(mini_bundle, tmp_path)(ids)
    assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.95


def test_runners_take_turns() -> None:
    seen: list[str] = []

    def runner(name: str) -> Callable[[np.ndarray], np.ndarray]:
        def embed(ids: np.ndarray) -> np.ndarray:
            seen.append(name)
            return ids

        return embed

    compare({"a": runner("a"), "b": runner("b")}, [np.arange(3)], "3", rounds=2)
    assert "".join(seen) == "aaabbb" * 3
