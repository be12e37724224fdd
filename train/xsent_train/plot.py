"""A picture of a training: its losses, and its P@1 on held-out pairs, by steps over all stages."""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from xsent.errors import DataError, require_extra
from xsent.files.atomic import as_data_error, atomic_file

Log = dict[str, dict[int, dict[str, dict[str, float]]]]  # what was measured, by stage and step


def read_log(path: Path) -> Log:
    """Read `log.jsonl`. Raises DataError if it is missing, damaged or empty."""
    log: Log = {}
    with as_data_error(path, "expected the folder of a run of xsent-train"):
        lines = path.read_text(encoding="utf-8").split("\n")
        for line in lines[:-1]:  # behind the last line break is nothing, or what a killed training did not finish
            row = dict(json.loads(line))
            stage, step, p1, loss = (row.pop(name) for name in ("stage", "step", "p1", "loss"))
            losses = {**row, "held out": fmean(dict(loss).values())}
            # A resumed training repeats steps: the last measurement counts.
            log.setdefault(str(stage), {})[int(step)] = {"p1": numbers(p1), "loss": numbers(losses)}
    if not log:
        raise DataError(f"{path}: empty; a training writes a line at each validation")
    return log


def numbers(measured: Mapping[str, Any]) -> dict[str, float]:
    """What was measured, by name."""
    return {name: float(value) for name, value in dict(measured).items()}


def plot_log(run: Path) -> Path:
    """Draw `log.jsonl` of a run as `log.png` beside it; returns its path. Raises DataError as `read_log` does."""
    with require_extra("bench"):
        from matplotlib.figure import Figure
    log = read_log(run / "log.jsonl")
    figure = Figure((10, 4), layout="constrained")
    panels = dict(zip(("loss", "p1"), figure.subplots(1, 2), strict=True))
    panels["loss"].set(title="losses", xlabel="steps", yscale="log")
    panels["p1"].set(title="P@1 of held-out pairs, per cent", xlabel="steps")
    for measure, axes in panels.items():
        lines, begin = defaultdict[str, list[tuple[int, float]]](list), 0
        for stage, steps in log.items():
            for step, row in sorted(steps.items()):
                for name, value in row[measure].items():
                    lines[name].append((begin + step, value))
            axes.axvline(begin, color="0.8", linewidth=1)
            axes.annotate(f" {stage}", (begin, 0.01), xycoords=("data", "axes fraction"), color="0.5")
            begin += max(steps)
        for name, points in lines.items():
            axes.plot(*zip(*points, strict=True), "o-", markersize=3, label=name)
        if lines:
            axes.legend()
    with atomic_file(run / "log.png") as file:
        figure.savefig(file, format="png", dpi=150)
    return run / "log.png"
