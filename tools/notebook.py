"""Writes docs/tutorials/your-own-data.ipynb from the page of the same name, whose commands become cells of bash.

    python tools/notebook.py

The page is the only source: edit it, and run this again. Commands that install stay text.
"""

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "tutorials" / "your-own-data.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PREFACE = """\
*This notebook has the commands of [the page](your-own-data.md). Put `tickets.tsv` beside it, and start it in an
environment with `xsent[apps,map]`.*
"""


def make() -> str:
    """The notebook as JSON."""
    cells: list[dict[str, Any]] = []
    text, end = PREFACE, 0
    page = PAGE.read_text(encoding="utf-8")
    for block in BLOCK.finditer(page):
        text += page[end : block.start()]
        end = block.end()
        if block[2].startswith("pip "):
            text += block[0]
            continue
        cells += [_cell("markdown", text), _cell("code", _commands(*block.groups()))]
        text = ""
    cells.append(_cell("markdown", text + page[end:]))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    """A cell; one of code has no output yet."""
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _commands(kind: str, block: str) -> str:
    """A cell that runs the commands of a block; a server runs in the background, and its clients wait for it."""
    lines = re.findall(r"^\$ (.*)", block, re.MULTILINE) if kind == "console" else [block.strip()]
    commands = "\n".join(lines).replace("curl ", "curl -sS --retry 60 --retry-delay 1 --retry-connrefused ")
    return f"%%bash{' --bg' if commands.startswith('xsent serve') else ''}\n{commands}"


if __name__ == "__main__":
    NOTEBOOK.write_text(make(), encoding="utf-8")
