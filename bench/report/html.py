"""A report as one HTML file that needs no network: its plots are inside."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from xsent.bench.report.section import Section
from xsent.bench.report.tables import Table

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; margin: 1rem 0; font-size: 0.85rem; font-variant-numeric: tabular-nums }}
th, td {{ border-bottom: 1px solid #ddd; padding: 0.25rem 0.7rem; text-align: right; vertical-align: top }}
th:first-child, td:first-child {{ text-align: left }}
img {{ max-width: 100%; height: auto }}
code {{ background: #f3f3f3; padding: 0.1rem 0.3rem }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_report(title: str, about: str, parts: Sequence[Section], images: Mapping[str, bytes]) -> str:
    """The whole report.

    Args:
        title: Its heading.
        about: What stands under it.
        parts: What it says.
        images: The PNG of each plot, by name.
    """
    lines = [f"<h1>{escape(title)}</h1>", f"<p>{_text(about)}</p>"]
    for part in parts:
        lines += _section(part, images)
    return PAGE.format(title=escape(title), body="\n".join(lines))


def _section(part: Section, images: Mapping[str, bytes]) -> list[str]:
    lines = [f"<h2>{escape(part.title)}</h2>", *(f"<p>{_text(text)}</p>" for text in part.text)]
    if part.points:
        lines += ["<ul>", *(f"<li>{_text(point)}</li>" for point in part.points), "</ul>"]
    lines += map(_table, part.tables)
    for plot in part.plots:
        source = f"data:image/png;base64,{b64encode(images[plot.name]).decode()}"
        lines.append(f'<p><img src="{source}" alt="{escape(plot.title)}"></p>')
    return lines


def _table(table: Table) -> str:
    rows = [_row("th", table.headings), *(_row("td", row) for row in table.rows)]
    return "\n".join(["<div><table>", *rows, "</table></div>"])


def _row(kind: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"


def _text(text: str) -> str:
    """Text with `code` in it."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
