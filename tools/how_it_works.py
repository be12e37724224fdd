"""Draws docs/images/how-it-works.svg: how a sentence becomes a vector, with the model's own tokens, cosines and times.

    python tools/how_it_works.py

The times are those of docs/results/bench/results.json.
"""

import json
from html import escape
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from xsent import SentenceEncoder
from xsent.bundle import builtin_path

DOCS = Path(__file__).parent.parent / "docs"
PICTURE = DOCS / "images" / "how-it-works.svg"
ASKED = "Où est la gare ?"
OTHERS = ("Where is the station?", "Wo ist der Bahnhof?", "Ich habe Hunger.")
TOKENS = 32  # of the sentence that the report times

# Of each mode: the background, boxes, and what is written on both; lines have less contrast than text needs.
PALETTES = {
    "light": {"back": "#ffffff", "box": "#e6f2f0", "ink": "#1b2626", "quiet": "#4b5b5a", "line": "#0b5f5a"},
    "dark": {"back": "#101616", "box": "#173432", "ink": "#e8f0ef", "quiet": "#aebdbb", "line": "#58b8af"},
}
WIDTH, HEIGHT = 760, 560
LEFT, MIDDLE, RIGHT = 20, 400, 560  # of the tokens, the readouts, and the space


def style() -> str:
    """The colours of both modes."""
    rules = []
    for mode, palette in PALETTES.items():
        colours = "".join(
            f".{name}{{fill:{palette[name]}}}" if name != "line" else f".line{{stroke:{palette[name]};fill:none}}"
            for name in palette
        )
        rules.append(colours if mode == "light" else f"@media (prefers-color-scheme:dark){{{colours}}}")
    return f"<style>text{{font:14px system-ui,sans-serif}}.bold{{font-weight:700}}{''.join(rules)}</style>"


def text(x: float, y: float, words: str, kind: str = "ink") -> str:
    """A line of text; `middle` among its kinds centres it."""
    anchor = ' text-anchor="middle"' if "middle" in kind else ""
    return f'<text x="{x}" y="{y}" class="{kind}"{anchor}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float = 30) -> str:
    """A rounded box."""
    where = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="6"'
    return f'<rect {where} class="box"/><rect {where} class="line"/>'


def arrow(*points: tuple[float, float]) -> str:
    """A line with a head at its end."""
    path = "M" + "L".join(f"{x} {y}" for x, y in points)
    return f'<path d="{path}" class="line" stroke-width="1.5" marker-end="url(#head)"/>'


def times() -> dict[int, float]:
    """Milliseconds of a sentence, by layers."""
    results = json.loads((DOCS / "results" / "bench" / "results.json").read_text(encoding="utf-8"))
    wanted = {"precision": "int8", "backend": "onnx", "threads": 1, "tokens": TOKENS}
    rows = [
        row for row in results["measurements"] if row["group"] == "latency" and row["axes"].items() >= wanted.items()
    ]
    return {row["axes"]["layers"]: row["figures"]["p50_ms"] for row in rows}


def tokens() -> list[str]:
    """The sentence and its tokens."""
    processor = SentencePieceProcessor(model_file=str(builtin_path() / "sentencepiece.model"))
    drawn, x = [text(LEFT, 40, f"“{ASKED}”", "ink bold")], float(LEFT)
    for piece in processor.encode(ASKED, out_type=str):
        width = 24 + 9 * len(piece)
        drawn += [box(x, 80, width), text(x + width / 2, 100, piece, "ink middle")]
        x += width + 8
    return [
        *drawn,
        arrow((LEFT + 26, 48), (LEFT + 26, 78)),
        text(LEFT + 42, 68, "the tokenizer knows 48,000 pieces", "quiet"),
    ]


def depths() -> list[str]:
    """The token table and the layers, with a way out of each depth."""
    milliseconds = times()
    names = {0: "token table: 384 numbers for each piece", 1: "layer 1", 2: "layer 2", 3: "layer 3", 6: "layers 4 to 6"}
    drawn = [text(MIDDLE - 20, 124, "read a vector here, or continue", "quiet")]
    for row, (depth, name) in enumerate(names.items()):
        y = 140 + 54 * row
        drawn += [arrow((LEFT + 26, y - 26 if row else y - 30), (LEFT + 26, y - 2))]
        drawn += [box(LEFT, y, 340), text(LEFT + 14, y + 20, name), arrow((LEFT + 340, y + 15), (RIGHT - 2, y + 15))]
        layers = "1 layer" if depth == 1 else f"{depth} layers"
        drawn += [text(MIDDLE - 20, y + 9, f"{layers}: {milliseconds[depth]:.1f} ms", "ink bold")]
    return drawn


def space() -> list[str]:
    """The space that all depths share, and what is near in it."""
    encoder = SentenceEncoder()
    cosines = encoder.encode(list(OTHERS)) @ encoder.encode(ASKED)
    drawn = [box(RIGHT, 140, 180, 246), text(RIGHT + 90, 220, "one vector", "ink bold middle")]
    drawn += [text(RIGHT + 90, 242, "384 numbers, length 1", "ink middle")]
    drawn += [
        text(RIGHT + 90, 276, "weighted mean", "quiet middle"),
        text(RIGHT + 90, 294, "of the pieces × a matrix;", "quiet middle"),
    ]
    drawn += [
        text(RIGHT + 90, 330, "all depths end", "quiet middle"),
        text(RIGHT + 90, 348, "in the same space", "quiet middle"),
    ]
    drawn += [
        arrow((RIGHT + 90, 386), (RIGHT + 90, 428)),
        text(LEFT, 424, "The cosine with the vectors of other sentences:", "quiet"),
    ]
    for row, (sentence, cosine) in enumerate(zip(OTHERS, cosines, strict=True)):
        y = 438 + 34 * row
        drawn += [box(LEFT, y, 720, 28), text(LEFT + 14, y + 19, f"“{sentence}”")]
        drawn += [text(RIGHT + 90, y + 19, f"{cosine:.2f}", "ink bold middle")]
    return drawn


def draw() -> str:
    """The picture."""
    head = '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    head += '<path d="M1 1 9 5 1 9" class="line" stroke-width="1.5"/></marker>'
    title = (
        "A sentence is cut into pieces, each gets a row of the table, up to six layers run, and one vector comes out"
    )
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    start = [opening, f"<title>{title}</title>", style(), f"<defs>{head}</defs>"]
    start.append(f'<rect width="{WIDTH}" height="{HEIGHT}" class="back"/>')
    return "\n".join([*start, *tokens(), *depths(), *space(), "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
