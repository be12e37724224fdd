"""The measurement of mining; its figures are not looked at."""

import re
from pathlib import Path

import numpy as np
import pytest

from xsent.bench.mining import measure_mining, product, run, write_vectors
from xsent.errors import XsentError


def test_report(tmp_path: Path) -> None:
    report = measure_mining(rows=50, dim=8, rounds=1, command="xsent-bench mining", folder=tmp_path)
    assert "`xsent-bench mining` on " in report
    assert "50 × 50 sentences of 8 numbers" in report
    assert re.search(r"\| product \| [\d.]+ \| [\d.]+ \| [1-9][\d.]+ \|", report)
    assert re.search(r"\| mining \| [\d.]+ \| [\d.]+ \| [1-9][\d.]+ \|", report)
    assert re.search(r"Mining takes [\d.]+ times", report)
    assert not list(tmp_path.iterdir())


def test_made_up_vectors_are_the_same_each_time(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_vectors(folder, 9, 4)
    src, trg = np.load(tmp_path / "a" / "src.npy"), np.load(tmp_path / "a" / "trg.npy")
    assert src.shape == trg.shape == (9, 4)
    assert np.array_equal(src, np.load(tmp_path / "b" / "src.npy"))
    product(src, trg)


def test_a_child_that_fails_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(XsentError, match="mining ended with exit code 1"):
        run("mining", tmp_path)
