"""What a run measured, in the form that is written, reported and compared."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xsent.errors import DataError
from xsent.files import atomic_file

FORMAT_VERSION = 1

Axis = str | int | float


@dataclass(frozen=True)
class Measurement:
    """The figures of one thing.

    Attributes:
        group: What kind of figures: latency, start, memory, size, share, training, quality, peers, modules
            or tracking.
        axes: What was measured: layers, precision, backend, threads, tokens, system, …
        figures: What came out; the unit ends the name, as in `p50_ms` and `peak_mib`.
        turns: The same figures by turn, where there were several; their spread says what a difference is worth.
    """

    group: str
    axes: Mapping[str, Axis]
    figures: Mapping[str, float]
    turns: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The group and all axes; the same thing has the same name in every run."""
        return " ".join([self.group, *(f"{axis}={value}" for axis, value in self.axes.items())])


@dataclass
class Results:
    """A whole run.

    Attributes:
        command: The command line.
        environment: The machine and its software, see `xsent.bench.machine`.
        measurements: What was measured, in the order it was.
        notes: What a reader must know, such as that weights are random or that the machine was busy.
        failures: What could not be measured, and why.
    """

    command: str
    environment: Mapping[str, Any] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def of(self, group: str, **axes: Axis) -> list[Measurement]:
        """The measurements of a group that have all these axes."""
        wanted = axes.items()
        return [m for m in self.measurements if m.group == group and wanted <= dict(m.axes).items()]

    def write(self, path: Path) -> None:
        """Write them as JSON."""
        with atomic_file(path) as file:
            file.write(json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1).encode() + b"\n")

    @staticmethod
    def read(path: Path) -> "Results":
        """Read what `write` wrote.

        Raises:
            DataError: The file is missing, of another version, or no results.
        """
        try:
            raw = json.loads(path.read_bytes())
            version = raw.pop("format_version")
        except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
            raise DataError(f"{path}: no results of xsent-bench ({error})") from error
        if version != FORMAT_VERSION:
            raise DataError(f"{path}: results of version {version!r}, this xsent reads {FORMAT_VERSION}")
        try:
            return Results(**{**raw, "measurements": list(_measurements(raw["measurements"]))})
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: no results of xsent-bench ({error})") from error


def _measurements(rows: Iterable[Mapping[str, Any]]) -> Iterable[Measurement]:
    return (Measurement(**row) for row in rows)
