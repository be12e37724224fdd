"""Draws docs/images/versions.svg for docs/explanation/method.md, from the table of versions in the findings.

python tools/method_picture.py
"""

import re
from collections.abc import Sequence

from how_it_works import DOCS, style, text

FINDINGS = DOCS / "contributing" / "findings.md"
PICTURE = DOCS / "images" / "versions.svg"
TITLE = "xsent-10 to xsent-20: more text finds more translations, questions raise similarity"
WIDTH, HEIGHT = 760, 500
LEFT, STEP = 60, 65  # of the first version, and between two
PANELS = (("translations found in %, eight languages, Tatoeba", 3, 108), ("similarity in English × 100, STS-B", 5, 306))
TALL = 90  # a panel
CHANGES = {  # what a version added, from there on
    "xsent-10": "one teacher",
    "xsent-15": "three teachers",
    "xsent-16": "more text",
    "xsent-19": "questions",
}


def versions() -> list[list[str]]:
    """The cells of the table of versions."""
    lines = FINDINGS.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").split("|") for line in lines if re.match(r"\| `xsent-\d+` \|", line)]
    return [[cell.strip(" `*") for cell in row] for row in rows]


def panel(title: str, names: Sequence[str], figures: Sequence[float], top: int) -> list[str]:
    """A line with a point, its figure and its version's number for each version."""
    low, high = min(figures), max(figures)
    places = [
        (LEFT + STEP * column, top + TALL - TALL * (value - low) / (high - low)) for column, value in enumerate(figures)
    ]
    drawn = [text(20, top - 36, title, "ink bold")]
    drawn.append(f'<path d="M{"L".join(f"{x} {y:.1f}" for x, y in places)}" class="line" stroke-width="2"/>')
    for row, (name, value, (x, y)) in enumerate(zip(names, figures, places, strict=True)):
        rises = row + 1 < len(figures) and figures[row + 1] > value  # then the line is above the point
        drawn.append(f'<circle cx="{x}" cy="{y:.1f}" r="2.5" class="line" stroke-width="5"/>')
        drawn.append(text(x, round(y + 22 if rises else y - 12), f"{value:.1f}", "ink middle"))
        drawn.append(text(x, top + TALL + 46, name.removeprefix("xsent-"), "quiet middle"))
    return drawn


def draw() -> str:
    """The picture."""
    rows = versions()
    names = [row[0] for row in rows]
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    drawn = [opening, f"<title>{TITLE}</title>", style(), f'<rect width="{WIDTH}" height="{HEIGHT}" class="back"/>']
    drawn.append(text(20, 34, TITLE, "ink bold"))
    for title, column, top in PANELS:
        scale = 100 if column == 5 else 1
        drawn += panel(title, names, [float(row[column]) * scale for row in rows], top)
    for version, words in CHANGES.items():
        x = LEFT + STEP * names.index(version)
        drawn += [text(x, 466 + 18 * line, word, "ink bold middle") for line, word in enumerate(words.split())]
    return "\n".join([*drawn, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
