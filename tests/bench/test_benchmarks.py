"""The pytest-benchmark module: it runs, by layers, and says what is wrong with a bundle."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("pytest_benchmark")
PYTEST = [sys.executable, "-m", "pytest", "-p", "pytest_benchmark.plugin", "-p", "no:cacheprovider"]
FEW_PLUGINS = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # those of other packages take seconds to import


def test_every_benchmark_runs_for_a_bundle_and_their_json_has_the_machine(mini_bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    command = [*PYTEST, "bench", f"--benchmark-json={path}", "-vv"]
    command += ["--benchmark-max-time=0.001", "--benchmark-min-rounds=1", "--benchmark-warmup=off"]
    environment = {**FEW_PLUGINS, "XSENT_BUNDLES": str(mini_bundle)}
    done = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("one_sentence[2-32] PASSED", "hundred_sentences[2-1] PASSED", "opening[2] PASSED"):
        assert f"test_encoding.py::test_{told}" in done.stdout
    assert "test_encoding.py::test_one_sentence[2-128] SKIPPED" in done.stdout  # the bundle takes 64
    written = json.loads(path.read_text())
    [opening] = (one["extra_info"] for one in written["benchmarks"] if one["name"] == "test_opening[2]")
    assert opening["mib_1"] <= opening["mib_1000"] <= opening["peak_mib"] and opening["first_ms"] > 0
    facts = written["machine_info"]["xsent"]
    assert facts["versions"]["onnxruntime"] == version("onnxruntime") and facts["processor"] and facts["cpus"] >= 1


def test_they_are_run_where_they_are_installed_and_name_a_bundle_that_is_none(tmp_path: Path) -> None:
    command = [*PYTEST, "--pyargs", "xsent_bench", "--benchmark-only"]
    environment = {**FEW_PLUGINS, "XSENT_BUNDLES": str(tmp_path / "nowhere")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode and "nowhere: no such folder; expected a bundle" in done.stdout + done.stderr
