"""Two runs side by side: what became slower or larger, beyond chance."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from xsent.bench.markdown import markdown_table
from xsent.bench.results import Measurement, Results
from xsent.errors import DataError

# Well below the tenth that must not go unseen: a figure that is a tenth slower comes out as 1.08 as often as 1.12.
THRESHOLD = 0.05
ENOUGH = 5  # turns; of fewer, chance alone puts all of one run beyond all of the other too often
TAILS = ("p95_ms", "p99_ms")  # of few sentences, and mostly what else the machine did
DEVIATIONS = 2.58  # of the normal distribution: chance alone is beyond them once in a hundred times

# What makes figures of two runs incomparable; another xsent is what they are compared for.
SAME = ("processor", "instructions", "cpus", "cpus_of_machine", "governor", "threads", "versions", "bundles")

TIMES = ("_ms", "_seconds", "_per_second")  # ends of their names; all other figures hardly know chance

Verdict = Literal["slower", "faster", "same"]


@dataclass(frozen=True)
class Change:
    """A figure in two runs.

    Attributes:
        name: The measurement, see `Measurement.name`.
        figure: Which of its figures.
        old: Its value before.
        new: Its value now.
        ratio: New to old, turned round where more is better: above 1 is always worse.
        least: The lower end of the ratio's spread by the turns of both runs; the ratio itself where there were none.
        most: The upper end.
        verdict: "slower" or "faster" if the ratio is beyond the threshold and its whole spread on that side of 1; the
            spread of a time of fewer than five turns has to be beyond the threshold as well, and a time that was
            taken once beyond twice of it. Larger files and memory and lower scores count as slower.
    """

    name: str
    figure: str
    old: float
    new: float
    ratio: float
    least: float
    most: float
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """Two runs.

    Attributes:
        threshold: Share that a figure must change by.
        changes: Every figure that both runs have.
        remarks: What a reader must know: what differs between the runs, what only one of them has.
    """

    threshold: float
    changes: Sequence[Change]
    remarks: Sequence[str]

    def of(self, verdict: Verdict) -> list[Change]:
        """The figures of a verdict, the largest change first."""
        found = [change for change in self.changes if change.verdict == verdict]
        return sorted(found, key=lambda change: -abs(math.log(change.ratio)))

    def text(self) -> str:
        """Markdown: what changed, the ratios by group, the remarks and the verdict."""
        slower, faster = self.of("slower"), self.of("faster")
        parts = []
        if changed := [*slower, *faster]:
            parts.append(markdown_table(["measurement", "figure", "old", "new", "ratio (spread)"], _rows(changed)))
        parts.append(markdown_table(["group", "figures", "ratio, median", "least", "most"], _groups(self.changes)))
        parts.append("Ratios are new to old, turned round where more is better: above 1 is slower or larger.")
        if self.remarks:
            parts.append("\n".join(f"- {remark}" for remark in self.remarks))
        parts.append(
            f"{'SLOWER' if slower else 'Not slower'}: {len(self.changes)} figures, {len(slower)} worse and "
            f"{len(faster)} better by more than {self.threshold:.0%} and beyond the spread of their turns."
        )
        return "\n\n".join(parts)


def compare_files(old: Path, new: Path, *, threshold: float = THRESHOLD, force: bool = False) -> Comparison:
    """Compare what two runs wrote.

    Args:
        old: Results of the first run.
        new: Results of the second.
        threshold: Share that a figure must change by.
        force: Whether to compare runs of other machines, versions of libraries or thread settings.

    Raises:
        DataError: A file is no results, they have nothing in common, or differ in what `force` allows.
        ValueError: The threshold is not positive.
    """
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
    remarks = [f"differs: {difference}" for difference in differences]
    remarks += [
        f"only one of the runs says its {name}"
        for name in SAME
        if (name in before.environment) != (name in after.environment)
    ]
    remarks += comparison.remarks
    return Comparison(threshold, comparison.changes, remarks)


def compare(old: Results, new: Results, threshold: float = THRESHOLD) -> Comparison:
    """Compare the figures that two runs have in common.

    Left out are the shares of the time, which change whenever anything gets faster, other systems than ours, what
    pytest-benchmark says of a single process, the slowest sentences (p95 and p99), and the slope of memory, which is
    nothing or noise: memory after 100,000 sentences shows growth.
    """
    before = {m.name: m for m in old.measurements if _ours(m)}
    after = {m.name: m for m in new.measurements if _ours(m)}
    both = [name for name in before if name in after]
    changes = [change for name in both for change in _changes(before[name], after[name], threshold)]
    remarks = [f"only in the old run: {name}" for name in before if name not in after]
    remarks += [f"only in the new run: {name}" for name in after if name not in before]
    remarks += [
        f"only in the old run: {figure} of {name}"
        for name in both
        for figure in sorted(before[name].figures.keys() - after[name].figures.keys())
    ]
    return Comparison(threshold, changes, remarks)


def median_ratio(old: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """Where the ratio of new to old lies by their ranks alone, which a few turns that went wrong do not move.

    Every new turn over every old one, without the smallest and largest that chance alone brings about (Hodges and
    Lehmann's interval).

    Args:
        old: At least one turn.
        new: The same.

    Returns:
        Both ends; of fewer than five turns each, the least and the most.
    """
    ratios = sorted(b / a for a in old for b in new)
    deviation = math.sqrt(len(ratios) * (len(old) + len(new) + 1) / 12)
    left_out = max(0, math.floor(len(ratios) / 2 - DEVIATIONS * deviation))
    return ratios[left_out], ratios[-1 - left_out]


def _changes(old: Measurement, new: Measurement, threshold: float) -> Iterator[Change]:
    for figure, before in old.figures.items():
        after = new.figures.get(figure, 0.0)
        if figure == "slope_mib" or figure in TAILS or not 0 < before < math.inf or not 0 <= after < math.inf:
            continue
        if not after:
            if _more_is_better(old.group, figure) and figure in new.figures:
                yield Change(old.name, figure, before, after, math.inf, math.inf, math.inf, "slower")
            continue
        turns = old.turns.get(figure, ()), new.turns.get(figure, ())
        ratio = after / before
        least, most = median_ratio(turns[0] or [before], turns[1] or [after])
        if _more_is_better(old.group, figure):
            ratio, least, most = 1 / ratio, 1 / most, 1 / least
        bounds = _bounds(threshold, min(map(len, turns))) if figure.endswith(TIMES) else (1 + threshold, 1.0)
        verdict: Verdict = "same"
        if ratio > bounds[0] and least > bounds[1]:
            verdict = "slower"
        if 1 / ratio > bounds[0] and 1 / most > bounds[1]:
            verdict = "faster"
        yield Change(old.name, figure, before, after, ratio, least, most, verdict)


def _bounds(threshold: float, turns: int) -> tuple[float, float]:
    """What the ratio of a time and the nearer end of its spread have to be above."""
    return 1 + threshold * (1 if turns else 2), 1 + threshold * (turns < ENOUGH)


def _ours(measurement: Measurement) -> bool:
    if measurement.group == "peers":
        return str(measurement.axes.get("system", "")).startswith("xsent")
    return measurement.group not in ("share", "modules")


def _more_is_better(group: str, figure: str) -> bool:
    if group == "quality":
        return not figure.endswith(("_ms", "bytes"))
    return figure.endswith("_per_second")


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in SAME:
        if name not in old or name not in new:  # an older xsent did not say it
            continue
        a, b = old[name], new[name]
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from (
                f"{key} {a.get(key, 'not there')} and {b.get(key, 'not there')}"
                for key in sorted(a.keys() | b.keys())
                if key != "xsent" and a.get(key) != b.get(key)
            )
        elif a != b:
            yield f"{name} {a} and {b}"


def _rows(changes: Sequence[Change]) -> list[list[str]]:
    return [
        [c.name, c.figure, f"{c.old:,.4g}", f"{c.new:,.4g}", f"{c.ratio:.2f} ({c.least:.2f}–{c.most:.2f})"]
        for c in changes
    ]


def _groups(changes: Sequence[Change]) -> list[list[str]]:
    by_group: dict[str, list[float]] = {}
    for change in changes:
        by_group.setdefault(change.name.partition(" ")[0], []).append(change.ratio)
    return [
        [group, str(len(ratios)), *(f"{value:.2f}" for value in (median(ratios), min(ratios), max(ratios)))]
        for group, ratios in by_group.items()
    ]
