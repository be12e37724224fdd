"""The pytest-benchmark module of this room, run on bundles, and what it found."""

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

ERROR = r"^E +(.*)"  # how pytest begins the lines of what was raised
SHOWN = ("min", "median", "mean", "stddev")
SETTINGS = ["--benchmark-only", "--benchmark-min-rounds=3", "-q", "-p", "no:cacheprovider", "-c", os.devnull]


def run_modules(bundles: Sequence[Path], *, seconds: float) -> Iterator[Measurement]:
    """Run it as `pytest --pyargs xsent.bench` does, on a bundle for each number of layers.

    Each benchmark is repeated so many seconds at most, in rounds of its own choice. If pytest fails, a DataError has
    the last error that it tells.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        settings = [*SETTINGS, "--rootdir", ".", "--benchmark-json", str(report), f"--benchmark-max-time={seconds}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--pyargs", "xsent.bench", *settings],
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
    stats = benchmark["stats"]
    figures = {f"{figure}_ms": 1000 * stats[figure] for figure in SHOWN}
    axes = {"benchmark": name, **(benchmark["params"] or {})}
    return Measurement("modules", axes, {**figures, "rounds": stats["rounds"]})
