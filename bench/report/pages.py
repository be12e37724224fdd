"""A report as files: Markdown with its plots beside it, and one HTML page that needs no network."""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from xsent.bench.report.plots import Plot
from xsent.bench.report.tables import Table
from xsent.files import atomic_file

PLOTS = "plots"
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


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str
    text: str = ""  # what to know when reading it
    points: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()


def write_pages(title: str, about: str, parts: Sequence[Section], folder: Path, name: str = "report") -> Path:
    """Write a Markdown file, which is returned, an HTML file, and `plots/`."""
    (folder / PLOTS).mkdir(exist_ok=True)
    images = {plot.name: plot.png() for part in parts for plot in part.plots}
    files = {f"{PLOTS}/{plot}.png": image for plot, image in images.items()}
    body = [f"<h1>{escape(title)}</h1>", f"<p>{_coded(about)}</p>"]
    body += [line for part in parts for line in _html(part, images)]
    files[f"{name}.html"] = PAGE.format(title=escape(title), body="\n".join(body)).encode()
    files[f"{name}.md"] = f"{markdown(title, about, parts)}\n".encode()
    for file, content in files.items():
        with atomic_file(folder / file) as opened:
            opened.write(content)
    return folder / f"{name}.md"


def markdown(title: str, about: str, parts: Sequence[Section]) -> str:
    """A report as Markdown."""
    lines = [f"# {title}", _marked(about)]
    for part in parts:
        points = "\n".join(f"- {_marked(point)}" for point in part.points)
        lines += [f"## {part.title}", _marked(part.text), points, *(table.markdown() for table in part.tables)]
        lines += [f"![{plot.title}]({PLOTS}/{plot.name}.png)" for plot in part.plots]
    return "\n\n".join(filter(None, lines))


def _html(part: Section, images: dict[str, bytes]) -> list[str]:
    lines = [f"<h2>{escape(part.title)}</h2>", f"<p>{_coded(part.text)}</p>" * bool(part.text)]
    if part.points:
        lines += ["<ul>", *(f"<li>{_coded(point)}</li>" for point in part.points), "</ul>"]
    for table in part.tables:
        rows = [("th", table.headings), *(("td", row) for row in table.rows)]
        cells = ["".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in row) for kind, row in rows]
        lines += ["<div><table>", *(f"<tr>{row}</tr>" for row in cells), "</table></div>"]
    for plot in part.plots:
        source = f"data:image/png;base64,{b64encode(images[plot.name]).decode()}"
        lines.append(f'<p><img src="{source}" alt="{escape(plot.title)}"></p>')
    return lines


def _coded(text: str) -> str:
    """HTML of text with `code` in it."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _marked(text: str) -> str:
    """Messages of other programs may look like marks, and angle brackets would vanish; `code` stays as it is."""
    pieces = text.split("`")
    pieces[::2] = [escape(piece, quote=False) for piece in pieces[::2]]
    return "`".join(pieces)
