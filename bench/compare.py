"""Two runs side by side: what became slower or larger, beyond chance."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from xsent.bench.report.tables import Table
from xsent.bench.results import Measurement, Results
from xsent.errors import DataError

# Well below the tenth that must not go unseen: a figure that is a tenth slower comes out as 1.08 as often as 1.12.
THRESHOLD = 0.05
ENOUGH = 5  # turns; of fewer, chance alone puts all of one run beyond all of the other too often
DEVIATIONS = 2.58  # of the normal distribution: chance alone is beyond them once in a hundred times
# Of few sentences and mostly what else the machine did; nothing or noise: memory after 100,000 sentences shows growth.
UNSTEADY = ("p95_ms", "p99_ms", "slope_mib")
# What makes figures of two runs incomparable; another xsent is what they are compared for.
SAME = ("processor", "instructions", "cpus", "cpus_of_machine", "governor", "threads", "versions", "bundles")
TIMES = ("_ms", "_seconds", "_per_second")  # ends of their names; all other figures hardly know chance

Verdict = Literal["slower", "faster", "same"]


@dataclass(frozen=True)
class Change:
    """A figure in two runs; larger files and memory and lower scores count as slower."""

    name: str  # the measurement's
    figure: str
    old: float
    new: float
    ratio: float  # new to old, turned round where more is better: above 1 is always worse
    least: float  # the lower end of the ratio's spread by the turns of both runs; itself where there were none
    most: float
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """Two runs."""

    threshold: float  # share that a figure must change by
    changes: Sequence[Change]  # of every figure that both runs have
    remarks: Sequence[str]  # what differs between the runs, what only one of them has

    def of(self, verdict: Verdict) -> list[Change]:
        """The figures of a verdict, the largest change first."""
        found = [change for change in self.changes if change.verdict == verdict]
        return sorted(found, key=lambda change: -abs(math.log(change.ratio)))

    def text(self) -> str:
        """Markdown: what changed, the ratios by group, the remarks and the verdict."""
        slower, faster = self.of("slower"), self.of("faster")
        changed = [
            [c.name, c.figure, f"{c.old:,.4g}", f"{c.new:,.4g}", f"{c.ratio:.2f} ({c.least:.2f}–{c.most:.2f})"]
            for c in [*slower, *faster]
        ]
        groups: dict[str, list[float]] = {}
        for change in self.changes:
            groups.setdefault(change.name.partition(" ")[0], []).append(change.ratio)
        by_group = [
            [group, str(len(ratios)), *(f"{value:.2f}" for value in (median(ratios), min(ratios), max(ratios)))]
            for group, ratios in groups.items()
        ]
        parts = [
            Table(["measurement", "figure", "old", "new", "ratio (spread)"], changed).markdown() if changed else "",
            Table(["group", "figures", "ratio, median", "least", "most"], by_group).markdown(),
            "Ratios are new to old, turned round where more is better: above 1 is slower or larger.",
            "\n".join(f"- {remark}" for remark in self.remarks),
            f"{'SLOWER' if slower else 'Not slower'}: {len(self.changes)} figures, {len(slower)} worse and "
            f"{len(faster)} better by more than {self.threshold:.0%} and beyond the spread of their turns.",
        ]
        return "\n\n".join(filter(None, parts))


def compare_files(old: Path, new: Path, *, threshold: float = THRESHOLD, force: bool = False) -> Comparison:
    """Compare what two runs wrote; of other machines, versions of libraries or thread settings only if forced to."""
    if not threshold > 0:
        raise ValueError(f"threshold {threshold}: expected a share above 0, such as {THRESHOLD}")
    before, after = Results.read(old), Results.read(new)
    differences = list(_differences(before.environment, after.environment))
    if differences and not force:
        raise DataError(
            f"{old} and {new} are of other machines, versions or bundles; --force compares: {'; '.join(differences)}"
        )
    comparison = compare(before, after, threshold)
    if not comparison.changes:
        raise DataError(f"{old} and {new} have no figure in common")
    silent = [name for name in SAME if (name in before.environment) != (name in after.environment)]
    remarks = [f"differs: {difference}" for difference in differences]
    remarks += [f"only one of the runs says its {name}" for name in silent]
    return Comparison(threshold, comparison.changes, [*remarks, *comparison.remarks])


def compare(old: Results, new: Results, threshold: float = THRESHOLD) -> Comparison:
    """Compare the figures that two runs have in common.

    Left out are the shares of the time, which change whenever anything gets faster, other systems than ours, and what
    pytest-benchmark says of a single process.
    """
    before, after = ({m.name: m for m in run.measurements if _is_ours(m)} for run in (old, new))
    both = [name for name in before if name in after]
    gone = {name: sorted(before[name].figures.keys() - after[name].figures.keys()) for name in both}
    remarks = [f"only in the old run: {name}" for name in before if name not in after]
    remarks += [f"only in the new run: {name}" for name in after if name not in before]
    remarks += [f"only in the old run: {figure} of {name}" for name in both for figure in gone[name]]
    changes = [change for name in both for change in _changes(before[name], after[name], threshold)]
    return Comparison(threshold, changes, remarks)


def median_ratio(old: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """Both ends of where the ratio of new to old lies by ranks alone, which a few turns that went wrong do not move.

    Every new turn over every old one, without the smallest and largest that chance alone brings about (Hodges and
    Lehmann's interval); of fewer than five turns each, the least and the most.
    """
    ratios = sorted(b / a for a in old for b in new)
    deviation = math.sqrt(len(ratios) * (len(old) + len(new) + 1) / 12)
    left_out = max(0, math.floor(len(ratios) / 2 - DEVIATIONS * deviation))
    return ratios[left_out], ratios[-1 - left_out]


def _changes(old: Measurement, new: Measurement, threshold: float) -> Iterator[Change]:
    """Slower or faster if the ratio is beyond the threshold and its whole spread on that side of 1.

    The spread of a time of fewer than five turns has to be beyond the threshold as well, and a time that was taken once
    beyond twice of it.
    """
    for figure in (figure for figure in old.figures if figure in new.figures and figure not in UNSTEADY):
        before, after = old.figures[figure], new.figures[figure]
        is_score = old.group == "quality" and not figure.endswith(("_ms", "bytes"))
        more_is_better = is_score or figure.endswith("_per_second")
        if not 0 < before < math.inf or not 0 <= after < math.inf or not (after or more_is_better):
            continue
        turns = old.turns.get(figure, ()), new.turns.get(figure, ())
        ratio, (least, most) = after / before, median_ratio(turns[0] or [before], turns[1] or [after])
        if more_is_better:
            ratio, least, most = (1 / share if share else math.inf for share in (ratio, most, least))
        centre, end = _bounds(threshold, min(map(len, turns))) if figure.endswith(TIMES) else (1 + threshold, 1.0)
        verdict: Verdict = "same"
        if ratio > centre and least > end:
            verdict = "slower"
        elif 1 / ratio > centre and 1 / most > end:
            verdict = "faster"
        yield Change(old.name, figure, before, after, ratio, least, most, verdict)


def _bounds(threshold: float, turns: int) -> tuple[float, float]:
    """What the ratio of a time and the nearer end of its spread have to be above."""
    return 1 + threshold * (1 if turns else 2), 1 + threshold * (turns < ENOUGH)


def _is_ours(measurement: Measurement) -> bool:
    if measurement.group == "peers":
        return str(measurement.axes.get("system", "")).startswith("xsent")
    return measurement.group not in ("share", "modules")


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in (name for name in SAME if name in old and name in new):  # an older xsent did not say all
        a, b = old[name], new[name]
        if not isinstance(a, Mapping) or not isinstance(b, Mapping):
            a, b = {name: a}, {name: b}
        for key in sorted(a.keys() | b.keys()):
            if key != "xsent" and a.get(key) != b.get(key):
                yield f"{key} {a.get(key, 'not there')} and {b.get(key, 'not there')}"
