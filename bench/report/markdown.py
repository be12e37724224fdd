"""A report as Markdown; its plots are files beside it."""

from collections.abc import Sequence
from html import escape

from xsent.bench.markdown import markdown_table
from xsent.bench.report.section import Section


def markdown_report(title: str, about: str, parts: Sequence[Section], plots: str) -> str:
    """The whole report.

    Args:
        title: Its heading.
        about: What stands under it.
        parts: What it says.
        plots: The folder of the plots, seen from the report.
    """
    return "\n\n".join([f"# {title}", _text(about), *(line for part in parts for line in _section(part, plots))]) + "\n"


def _section(part: Section, plots: str) -> list[str]:
    lines = [f"## {part.title}", *map(_text, part.text)]
    if part.points:
        lines.append("\n".join(f"- {_text(point)}" for point in part.points))
    lines += [markdown_table(table.headings, table.rows) for table in part.tables]
    return [*lines, *(f"![{plot.title}]({plots}/{plot.name}.png)" for plot in part.plots)]


def _text(text: str) -> str:
    """Messages of other programs may look like marks, and angle brackets would vanish; `code` stays as it is."""
    pieces = text.split("`")
    pieces[::2] = [escape(piece, quote=False) for piece in pieces[::2]]
    return "`".join(pieces)
