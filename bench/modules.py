"""The pytest-benchmark modules of this room, run on bundles, and what they found."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xsent.bench.results import Measurement
from xsent.errors import DataError

ROOM = "xsent.bench"
MILLISECONDS = 1000
ERROR = r"^E +(.*)"  # how pytest begins the lines of what was raised
SHOWN = ("min", "median", "mean", "stddev")


def run_modules(bundles: Sequence[Path], *, seconds: float) -> Iterator[Measurement]:
    """Run the modules in a process of their own, as `pytest --pyargs xsent.bench` does.

    Args:
        bundles: What encodes; one for each number of layers.
        seconds: How long each benchmark is repeated, at most, in rounds of its own choice.

    Returns:
        Measurements of group modules with the axes benchmark and layers, and those of the benchmark.

    Raises:
        DataError: pytest fails; has the last error that it tells.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = subprocess.run(
            _command(report, seconds),
            cwd=folder,  # not the settings of whatever project the user stands in
            env={**os.environ, "XSENT_BUNDLES": os.pathsep.join(str(path.resolve()) for path in bundles)},
            capture_output=True,
            text=True,
        )
        if done.returncode or not report.is_file():
            errors = re.findall(ERROR, done.stdout, re.MULTILINE) or (done.stderr or "it said nothing").splitlines()
            raise DataError(f"pytest ended with {done.returncode}: {errors[-1]}")
        found = json.loads(report.read_bytes())["benchmarks"]
    yield from map(measurement, found)


def measurement(benchmark: Mapping[str, Any]) -> Measurement:
    """One benchmark of a report of pytest-benchmark, in milliseconds."""
    name = str(benchmark["name"]).partition("[")[0].removeprefix("test_").replace("_", " ")
    parameters: Mapping[str, Any] = benchmark["params"] or {}
    stats = benchmark["stats"]
    figures = {f"{figure}_ms": MILLISECONDS * stats[figure] for figure in SHOWN}
    return Measurement("modules", {"benchmark": name, **parameters}, {**figures, "rounds": stats["rounds"]})


def _command(report: Path, seconds: float) -> list[str]:
    settings = ["--benchmark-only", "--benchmark-json", str(report), f"--benchmark-max-time={seconds}"]
    settings += ["--benchmark-min-rounds=3", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."]
    return [sys.executable, "-m", "pytest", "--pyargs", ROOM, *settings]
