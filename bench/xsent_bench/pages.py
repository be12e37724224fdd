"""A report as files: Markdown with its plots beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from xsent.files.atomic import atomic_file


@dataclass(frozen=True)
class Table:
    """Cells with headings; the first column has names, the others have numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The first column stands left, the others right."""
        lines = [self.headings, ["---", *["---:"] * (len(self.headings) - 1)], *self.rows]
        return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)


@dataclass(frozen=True)
class Plot:
    """A picture."""

    name: str  # of its file
    title: str
    figure: Figure


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str
    text: str = ""  # what to know when reading it
    points: Sequence[str] = ()
    table: Table | None = None
    plots: Sequence[Plot] = ()


def write_pages(title: str, about: str, parts: Sequence[Section], folder: Path, name: str = "report") -> Path:
    """Write a Markdown file, which is returned, and `plots/`."""
    (folder / "plots").mkdir(exist_ok=True)
    for plot in (plot for part in parts for plot in part.plots):
        image = BytesIO()
        plot.figure.savefig(image, format="png", dpi=120)
        with atomic_file(folder / "plots" / f"{plot.name}.png") as file:
            file.write(image.getvalue())
    report = folder / f"{name}.md"
    with atomic_file(report) as file:
        file.write(f"{markdown(title, about, parts)}\n".encode())
    return report


def markdown(title: str, about: str, parts: Sequence[Section]) -> str:
    """A report as Markdown."""
    lines = [f"# {title}", _marked(about)]
    for part in parts:
        points = "\n".join(f"- {_marked(point)}" for point in part.points)
        lines += [f"## {part.title}", _marked(part.text), points, part.table.markdown() if part.table else ""]
        lines += [f"![{plot.title}](plots/{plot.name}.png)" for plot in part.plots]
    return "\n\n".join(filter(None, lines))


def _marked(text: str) -> str:
    """Messages of other programs may look like marks, and angle brackets would vanish; `code` stays as it is."""
    pieces = text.split("`")
    pieces[::2] = [escape(piece, quote=False) for piece in pieces[::2]]
    return "`".join(pieces)
