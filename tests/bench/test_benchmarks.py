"""The pytest-benchmark module: it runs, by layers, and says what is wrong with a bundle."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("pytest_benchmark")
PYTEST = [sys.executable, "-m", "pytest", "-p", "pytest_benchmark.plugin", "-p", "no:cacheprovider"]
DRAWS = find_spec("pygal") is not None  # not imported: its import hook is one of Python 2
FEW_PLUGINS = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # those of other packages take seconds to import


def test_every_benchmark_runs_for_bundles_of_the_same_depth_and_their_json_has_the_memory(
    mini_bundle: Path, tmp_path: Path
) -> None:
    path, mine = tmp_path / "times.json", tmp_path / "mine"
    shutil.copytree(mini_bundle, mine)
    command = [*PYTEST, "bench", f"--benchmark-json={path}", "-vv"]
    command += ["--benchmark-max-time=0.001", "--benchmark-min-rounds=1", "--benchmark-warmup=off"]
    command += [f"--benchmark-histogram={tmp_path / 'times'}"] * DRAWS
    environment = {**FEW_PLUGINS, "XSENT_BUNDLES": os.pathsep.join(map(str, (mini_bundle, mine))), "COLUMNS": "100"}
    done = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("one_sentence[mini, 2 layers-32 tokens]", "one_sentence[mine, 2 layers-32 tokens]"):
        assert f"test_encoding.py::test_{told} PASSED" in done.stdout
    assert "one_sentence[mine, 2 layers-128 tokens] SKIPPED" in done.stdout  # the bundle takes 64
    report = done.stdout.partition("Milliseconds per sentence by tokens")[2].splitlines()[1:4]
    assert report[0].split(maxsplit=4)[:4] == ["8", "16", "32", "64"]  # by length, not by letter
    assert [line.partition(" layers")[0] for line in report[1:]] == ["mine, 2", "mini, 2"]
    tables = done.stdout.partition("benchmark 'one sentence of 8 tokens': 2 tests")[2].splitlines()
    assert max(len(line) for line in tables if "[mine, 2 layers" in line) <= 100
    assert (tmp_path / "times-one_sentence_of_32_tokens.svg").exists() == DRAWS
    written = json.loads(path.read_text())
    facts = written["machine_info"]["xsent"]
    assert facts["versions"]["onnxruntime"] == version("onnxruntime") and facts["processor"] and facts["cpus"] >= 1
    for one in written["benchmarks"]:
        about = one["extra_info"]
        assert about["system"] in {"mini", "mine"} and about["layers"] == 2
        assert about["mib_1"] <= about["mib_1000"] <= about["peak_mib"] and about["first_ms"] > 0


def test_they_are_run_where_they_are_installed_and_name_a_bundle_that_is_none(tmp_path: Path) -> None:
    command = [*PYTEST, "--pyargs", "xsent_bench", "--benchmark-only"]
    environment = {**FEW_PLUGINS, "XSENT_BUNDLES": str(tmp_path / "nowhere")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode and "nowhere: no such folder; expected a bundle" in done.stdout + done.stderr
