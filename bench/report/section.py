"""A part of a report."""

from collections.abc import Sequence
from dataclasses import dataclass

from xsent.bench.report.plots import Plot
from xsent.bench.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        title: Its heading.
        text: What to know when reading it, then what it says; one paragraph each.
        points: Lines of a list.
        tables: Its tables.
        plots: Its plots.
    """

    title: str
    text: Sequence[str] = ()
    points: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()


def existing(*plots: Plot | None) -> list[Plot]:
    """Those plots that there was something to draw for."""
    return [plot for plot in plots if plot]
