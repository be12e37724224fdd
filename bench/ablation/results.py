"""What the rows of an ablation came to, over their seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from xsent.bench.ablation.groups import Row
from xsent.bench.ablation.place import Place

VALIDATION = {"p1": "held-out P@1", "loss": "held-out loss"}  # in the result, and as a heading
COSTS = ("s/1,000 steps", "peak MiB")


@dataclass(frozen=True)
class Value:
    """A number over the seeds.

    Attributes:
        mean: Their mean.
        deviation: Their sample deviation; None of a single one.
        count: How many there are.
    """

    mean: float
    deviation: float | None
    count: int

    @staticmethod
    def of(numbers: Sequence[float]) -> "Value":
        """The value of at least one number."""
        return Value(fmean(numbers), stdev(numbers) if len(numbers) > 1 else None, len(numbers))


def read_results(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The finished rows of an ablation by variant, ordered by seed."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((folder / "rows").glob("*/result.json")):
        key, _, seed = path.parent.name.rpartition("-")
        result = Place(folder, key, int(seed)).result
        if result is not None:
            found.setdefault(key, []).append(result)
    return found


def headings(results: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What is measured of whole encoders, in the order in which they are measured."""
    names = [set(seeds[0]["scores"]) for seeds in results.values()]
    common = set.intersection(*names) if names else set()
    first = next(iter(results.values()))[0]["scores"] if results else {}
    return [name for name in first if name in common and not name.endswith("by class")]


def values(row: Row, results: dict[str, list[dict[str, Any]]]) -> dict[str, Value]:
    """The numbers of a row by heading; none while it is not finished."""
    numbers: dict[str, list[float]] = {}
    for result in results.get(row.key, []):
        if row.measures:  # of a prefix: it was not trained apart
            ending = f" {row.measures}"
            flat = {name.removesuffix(ending): n for name, n in result["scores"].items() if name.endswith(ending)}
        else:
            flat = {**result["scores"], **{head: result["validation"][name] for name, head in VALIDATION.items()}}
            flat |= {name: result["costs"][name] for name in COSTS}
        for name, number in flat.items():
            numbers.setdefault(name, []).append(number)
    return {name: Value.of(column) for name, column in numbers.items()}
