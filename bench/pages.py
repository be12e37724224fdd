"""A report as files: Markdown with its plots beside it, and one HTML page that needs no network."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from xsent.files import atomic_file

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; font-size: 0.85rem }}
th, td {{ border-bottom: 1px solid #ddd; padding: 0.25rem 0.7rem; vertical-align: top }}
td {{ font-variant-numeric: tabular-nums }}
img {{ max-width: 100%; height: auto }}
code {{ background: #f3f3f3; padding: 0.1rem 0.3rem }}
</style>
</head>
<body>
{body}</body>
</html>
"""


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

    def png(self) -> bytes:
        """The picture as a file."""
        file = BytesIO()
        self.figure.savefig(file, format="png", dpi=120)
        return file.getvalue()


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
    (folder / "plots").mkdir(exist_ok=True)
    images = {f"plots/{plot.name}.png": plot.png() for part in parts for plot in part.plots}
    text = f"{markdown(title, about, parts)}\n"
    body = MarkdownIt("commonmark").enable("table").render(text)
    for file, image in images.items():
        body = body.replace(f'src="{file}"', f'src="data:image/png;base64,{b64encode(image).decode()}"')
    page = PAGE.format(title=escape(title), body=body)
    for file, content in {**images, f"{name}.html": page.encode(), f"{name}.md": text.encode()}.items():
        with atomic_file(folder / file) as opened:
            opened.write(content)
    return folder / f"{name}.md"


def markdown(title: str, about: str, parts: Sequence[Section]) -> str:
    """A report as Markdown."""
    lines = [f"# {title}", _marked(about)]
    for part in parts:
        points = "\n".join(f"- {_marked(point)}" for point in part.points)
        lines += [f"## {part.title}", _marked(part.text), points, *(table.markdown() for table in part.tables)]
        lines += [f"![{plot.title}](plots/{plot.name}.png)" for plot in part.plots]
    return "\n\n".join(filter(None, lines))


def _marked(text: str) -> str:
    """Messages of other programs may look like marks, and angle brackets would vanish; `code` stays as it is."""
    pieces = text.split("`")
    pieces[::2] = [escape(piece, quote=False) for piece in pieces[::2]]
    return "`".join(pieces)
