"""Draws docs/images/demo.svg for the README: three questions to English notes, as `xsent notes` answers them.

    python tools/demo.py

The answers appear one after the other in five seconds and stay; for readers who want no motion, they are there at once.
"""

import json
import subprocess
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from how_it_works import DOCS, PALETTES

PICTURE = DOCS / "images" / "demo.svg"
NOTES = {
    "trip.md": "# Trip\n\n## Friday\n\nThe train is at nine. Bring the tickets.\n\n"
    "## Saturday\n\nThe museum opens at ten and is free for children.\n",
    "home.md": "# Home\n\n## Bills\n\nPay the rent before the first.\n\n## Cat\n\nThe cat needs food twice a day.\n",
}
QUESTIONS = ("À quelle heure part le train ?", "Wann ist die Miete fällig?", "猫には一日何回えさをやりますか？")
TITLE = "A terminal: questions in French, German and Japanese find the right lines of English notes"
WIDTH, TOP, STEP = 540, 36, 88
PAUSE = 1.5  # seconds between two answers


def answer(question: str, folder: Path) -> dict[str, Any]:
    """The best hit of a question, by the program itself."""
    command = [str(Path(sys.executable).with_name("xsent")), "notes", ".", question, "-n", "1", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    hit: dict[str, Any] = json.loads(done.stdout)
    return hit


def step(row: int, question: str, hit: dict[str, Any]) -> str:
    """A question with its answer, as a terminal shows them."""
    y = TOP + STEP * row
    before, after = (escape(part) for part in hit["text"].split(hit["best"], 1))
    heading = hit["context"].split(" › ")[-1]
    return (
        f'<g class="step" style="animation-delay:{PAUSE * row}s">'
        f'<text x="20" y="{y}"><tspan class="prompt">$</tspan> xsent notes . -n 1 "{escape(question)}"</text>'
        f'<text x="20" y="{y + 26}">{hit["score"]:.2f}  <tspan class="quiet">{hit["file"]}:{hit["line"]}  {heading}'
        f'</tspan></text><text x="74" y="{y + 50}">{before}<tspan class="bold">{escape(hit["best"])}</tspan>{after}'
        "</text></g>"
    )


def style() -> str:
    """The colours of both modes, and the motion."""
    rules = []
    for mode, palette in PALETTES.items():
        colours = (
            f"text{{fill:{palette['ink']}}}.quiet{{fill:{palette['quiet']}}}.prompt{{fill:{palette['line']}}}"
            f".window{{fill:{palette['back']};stroke:{palette['quiet']}}}"
        )
        rules.append(colours if mode == "light" else f"@media (prefers-color-scheme:dark){{{colours}}}")
    return (
        "<style>text{font:15px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}"
        f".bold,.prompt{{font-weight:700}}{''.join(rules)}"
        ".step{animation:show .4s both}@keyframes show{from{opacity:0}}"
        "@media (prefers-reduced-motion:reduce){.step{animation:none}}</style>"
    )


def draw() -> str:
    """The picture."""
    with TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        for name, text in NOTES.items():
            (notes / name).write_text(text, encoding="utf-8")
        steps = [step(row, question, answer(question, notes)) for row, question in enumerate(QUESTIONS)]
    height = TOP + STEP * len(QUESTIONS) - 16
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    window = f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8" class="window"/>'
    return "\n".join([opening, f"<title>{TITLE}</title>", style(), window, *steps, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
