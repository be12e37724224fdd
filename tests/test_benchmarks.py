"""The pytest-benchmark module: it runs, by layers, and says what is wrong with a bundle."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xsent.bench.run import run_benchmarks
from xsent.errors import DataError

pytest.importorskip("pytest_benchmark")


def test_every_benchmark_runs_for_a_bundle_as_a_plain_test(mini_bundle: Path) -> None:
    command = [sys.executable, "-m", "pytest", "bench", "--benchmark-disable", "-vv", "-p", "no:cacheprovider"]
    environment = {**os.environ, "XSENT_BUNDLES": str(mini_bundle)}
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("one_sentence[2-32] PASSED", "hundred_sentences[2-1] PASSED", "opening[2] PASSED"):
        assert f"test_encoding.py::test_{told}" in done.stdout
    assert "test_encoding.py::test_one_sentence[2-128] SKIPPED" in done.stdout  # the bundle takes 64


def test_they_are_run_where_they_are_installed_and_read(mini_bundle: Path, tmp_path: Path) -> None:
    found = {str(measurement): measurement.figures for measurement in run_benchmarks([mini_bundle], seconds=0.01)}
    assert {"modules benchmark=one sentence layers=2 tokens=8", "modules benchmark=opening layers=2"} <= found.keys()
    assert all(0 < figures["min_ms"] <= figures["median_ms"] for figures in found.values())
    with pytest.raises(DataError, match=r"pytest ended with \d: .*nowhere: no such folder; expected a bundle"):
        list(run_benchmarks([tmp_path / "nowhere"], seconds=0.01))
