"""The straight line of latency over layers, and how far the figures lie from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from xsent.bench.results import Axis, Measurement


@dataclass(frozen=True)
class Fit:
    """A straight line through figures by layers, by least squares."""

    start: float  # its value at no layers, in the figure's unit
    slope: float  # what a layer adds
    residual: float  # the typical distance of a figure from it: the root of the mean square
    explained: float  # the share of the figures' variance that it explains, R²
    axes: Mapping[str, Axis] = field(default_factory=dict)  # what is measured, beside the layers

    def __str__(self) -> str:
        named = ", ".join(f"{axis} {value}" for axis, value in self.axes.items())
        return (
            f"{named}: {self.start:.3f} ms + {self.slope:.3f} ms a layer, residual {self.residual:.3f} ms, "
            f"R² {self.explained:.4f}"
        )


def fit(points: Sequence[tuple[float, float]], axes: Mapping[str, Axis] | None = None) -> Fit:
    """The line through points of layers and figure; at least two, of different layers."""
    layers, values = np.array(points, dtype=float).T
    slope, start = np.polyfit(layers, values, 1)
    squares = (values - start - slope * layers) ** 2
    spread = float(((values - values.mean()) ** 2).mean())
    explained = 1 - float(squares.mean()) / spread if spread else 1.0
    return Fit(float(start), float(slope), float(np.sqrt(squares.mean())), explained, axes or {})


def fits(measurements: Iterable[Measurement], figure: str = "p50_ms") -> list[Fit]:
    """The line for everything that was measured with three or more numbers of layers: two points are always on one."""
    series: dict[tuple[tuple[str, Axis], ...], dict[float, float]] = {}
    for measurement in measurements:
        if "layers" in measurement.axes and figure in measurement.figures:
            rest = tuple((axis, value) for axis, value in measurement.axes.items() if axis != "layers")
            series.setdefault(rest, {})[float(measurement.axes["layers"])] = measurement.figures[figure]
    return [fit(list(points.items()), dict(rest)) for rest, points in series.items() if len(points) > 2]
