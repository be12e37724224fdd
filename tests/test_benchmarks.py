"""The pytest-benchmark modules: they run, by layers, and say what is wrong with a bundle."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xsent.bench.run import run_benchmarks
from xsent.errors import DataError

ROOT = Path(__file__).parent.parent
pytest.importorskip("pytest_benchmark")


def run(*arguments: str, bundle: Path, folder: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """The benchmarks as plain tests, each called once."""
    command = [sys.executable, "-m", "pytest", *arguments, "--benchmark-disable", "-vv", "-p", "no:cacheprovider"]
    environment = {**os.environ, "XSENT_BUNDLES": str(bundle)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_every_benchmark_runs_for_a_bundle(mini_bundle: Path) -> None:
    done = run("bench", bundle=mini_bundle)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_encoding.py::test_one_sentence[2-32] PASSED" in done.stdout
    assert "test_encoding.py::test_one_sentence[2-128] SKIPPED" in done.stdout  # the bundle takes 64
    assert "test_encoding.py::test_hundred_sentences[2-1] PASSED" in done.stdout
    assert "test_encoding.py::test_opening[2] PASSED" in done.stdout


def test_a_bundle_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = run("--pyargs", "xsent.bench", bundle=Path("nowhere"), folder=tmp_path)
    assert done.returncode != 0
    assert "nowhere: no such folder; expected a bundle" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_they_are_run_and_read(mini_bundle: Path) -> None:
    found = {str(measurement): measurement.figures for measurement in run_benchmarks([mini_bundle], seconds=0.01)}
    assert "modules benchmark=one sentence layers=2 tokens=8" in found
    assert "modules benchmark=opening layers=2" in found
    assert all(0 < figures["min_ms"] <= figures["median_ms"] for figures in found.values())


def test_pytest_fails(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"pytest ended with \d: .*no such folder; expected a bundle"):
        list(run_benchmarks([tmp_path / "nowhere"], seconds=0.01))
