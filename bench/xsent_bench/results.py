"""The results of a run: figures, their names and units, and the file that holds them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from xsent.bundle import builtin_path
from xsent.errors import counted
from xsent.files.atomic import as_data_error, atomic_file
from xsent_bench import OURS

FORMAT_VERSION = 2
RESULTS = "results.json"  # in the folder of a report
RANDOM = "random weights: cost only"  # in the names of models
NONE = "–"  # shown where there is no figure
UNITS = {"ms": "ms", "mib": "MiB", "bytes": "MB", "second": "/s"}
HEADINGS = {  # of figures whose name and unit are not enough
    "bytes": "MB",
    "first_ms": "first vector, ms",
    "peak_mib": "peak MiB",
    "sentences_per_second": "sentences/s",
    "one_by_one_per_second": "sentences/s one by one",
    "batched_per_second": "sentences/s in batches",
    "batched_cpu_ms": "processor ms per sentence in batches",
    "tokens_per_second": "tokens/s",
    "vector_size": "bytes per vector",
    "xx_en": "found, to English",
    "en_xx": "found, from English",
    "across": "found in English by all layers",
    "flores": "FLORES, % wrong",
    "topics": "topics, own head",
    "topics_en": "topics, own head, English",
    "sklearn": "topics, scikit-learn",
    "sklearn_en": "topics, scikit-learn, English",
    "similarity": "similarity × 100",
    "similarity_en": "similarity × 100, English",
    "lost": "lost to unknown, %",
    "off_topic": "off-topic found, %",
    "questions": "questions, nDCG@10",
    "questions_en": "questions, nDCG@10, English",
    "questions_to_en": "questions to English passages, nDCG@10",
    "own": "first hits in the own language, %",
    "kept_bundle": "encoder, %",
    "kept_int8": "int8 vectors, %",
    "kept_binary": "binary vectors, %",
    "kept_bundle_worst": "encoder, worst language",
    "kept_int8_worst": "int8 vectors, worst",
    "kept_binary_worst": "binary vectors, worst",
}

Axis = str | int | float


@dataclass(frozen=True)
class Measurement:
    """The figures of one thing."""

    group: str  # systems, scores, stored, kept, latency, process or size
    axes: Mapping[str, Axis]  # what was measured: layers, precision, backend, threads, tokens, system, …
    figures: Mapping[str, float]  # names end with the unit, as in `p50_ms` and `peak_mib`
    turns: Mapping[str, Sequence[float]] = field(default_factory=dict)  # the same figures by turn, to see their spread

    def has(self, **axes: Axis) -> bool:
        """Whether it has these values on these axes."""
        return axes.items() <= self.axes.items()

    def __str__(self) -> str:
        return " ".join([self.group, *(f"{axis}={value}" for axis, value in self.axes.items())])


@dataclass
class Results:
    """The results of a run."""

    command: str  # the command line
    environment: Mapping[str, Any] = field(default_factory=dict)  # machine and software, see `xsent_bench.machine`
    measurements: list[Measurement] = field(default_factory=list)  # in the order of measuring
    notes: list[str] = field(default_factory=list)  # what a reader must know: random weights, a busy machine
    failures: list[str] = field(default_factory=list)  # what could not be measured and why

    def of(self, group: str) -> list[Measurement]:
        """The measurements of a group."""
        return [m for m in self.measurements if m.group == group]

    def compared(self) -> list[Measurement]:
        """The systems with their mean scores over the languages other than English, and their scores in English."""
        found = []
        for system in self.of("systems"):
            scores: dict[str, list[float]] = {}
            wanted = {axis: system.axes[axis] for axis in ("system", "layers")}
            for m in (m for m in self.of("scores") if m.has(**wanted)):
                ending = "_en" if m.axes["language"] == "en" else ""
                for name, value in m.figures.items():
                    scores.setdefault(f"{name}{ending}", []).append(value)
            means = {name: fmean(scores[name]) for name in HEADINGS if name in scores}
            found.append(replace(system, figures={**system.figures, **means}))
        return found

    def one(self, group: str, **axes: Axis) -> Measurement:
        """The measurement of a group with these values on its axes. Raises ValueError unless there is one."""
        [found] = (m for m in self.of(group) if m.has(**axes))
        return found

    def add(self, new: Measurement) -> None:
        """Add a measurement, or another turn of a known one, whose figures become the medians over its turns."""
        for place, old in enumerate(self.measurements):
            if (old.group, old.axes) == (new.group, new.axes):
                both = {name: value for name, value in old.figures.items() if name in new.figures}
                turns = {name: [*old.turns.get(name, [value]), new.figures[name]] for name, value in both.items()}
                medians = {name: median(values) for name, values in turns.items()}
                self.measurements[place] = replace(old, figures=medians, turns=turns)
                return
        self.measurements.append(new)

    @staticmethod
    def read(path: Path) -> "Results":
        """Read what `write` wrote. Raises DataError if the file holds something else."""
        with as_data_error(path, f"expected results of xsent-bench in format {FORMAT_VERSION}"):
            raw = json.loads(path.read_bytes())
            if raw.pop("format_version") != FORMAT_VERSION:
                raise ValueError("another format")
            return Results(**raw | {"measurements": [Measurement(**one) for one in raw["measurements"]]})

    def write(self, path: Path) -> None:
        """Write the results as JSON."""
        with atomic_file(path) as file:
            file.write(json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1).encode() + b"\n")


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """Bundles by name: the built-in one is `OURS`; others have the names of their folders, or paths if not unique."""
    folders = [OURS, *(path.resolve().name for path in paths)]

    def name(path: Path) -> str:
        if path == builtin_path():
            return OURS
        folder = path.resolve()
        return folder.name if folders.count(folder.name) == 1 else str(folder)

    return {name(path): path for path in paths}


def systems_in(measurements: Sequence[Measurement]) -> list[str]:
    """The different systems of measurements."""
    return list(dict.fromkeys(str(m.axes.get("system", OURS)) for m in measurements))


def system_name(axes: Mapping[str, Axis]) -> str:
    """The name of a compared system, with its layers if it is a bundle."""
    if axes["layers"] == NONE:
        return str(axes["system"])
    return f"{axes['system']}, {counted(int(axes['layers']), 'layer')}"


def heading(figure: str) -> str:
    """The name of a figure for people, with its unit."""
    if figure in HEADINGS:
        return HEADINGS[figure]
    rest, _, unit = figure.rpartition("_")
    if unit == "words":
        return f"{rest.removeprefix('ms_')} words, ms"
    if rest == "mib":
        return f"MiB after {int(unit):,} sentence{'s' if unit != '1' else ''}"
    return f"{rest.replace('_', ' ')}, {UNITS[unit]}" if rest and unit in UNITS else figure.replace("_", " ")


def number(value: float) -> str:
    """A number with three significant digits, at most four decimals, and commas between thousands."""
    size = abs(value)
    decimals = 0 if size >= 100 or not size else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.1 else 4
    return f"{value:,.{decimals}f}"


def shown(measurement: Measurement, figure: str) -> str:
    """A figure as the text of a cell, in the unit of its heading."""
    value = measurement.figures.get(figure)
    if value is None:
        return NONE
    return number(value / 1e6 if figure.endswith("bytes") else value)


def order(value: Axis) -> tuple[float, str]:
    """A key for sorting: numbers by size, then words by letter."""
    return (float("inf"), value) if isinstance(value, str) else (value, "")
