"""The drawn pictures are up to date, and can be read by people with weak eyes."""

import re
from types import ModuleType

import demo
import how_it_works
import method_picture
import pytest
from how_it_works import PALETTES

DECIMALS = re.compile(r"\d\.\d+")  # cosines differ a little between CPUs


@pytest.mark.parametrize("tool", [demo, how_it_works, method_picture], ids=lambda tool: tool.__name__)
def test_the_picture_is_up_to_date(tool: ModuleType) -> None:
    if tool is demo:
        pytest.importorskip("sentencex")
    drawn = tool.PICTURE.read_text(encoding="utf-8")
    assert DECIMALS.sub("0.0", drawn) == DECIMALS.sub("0.0", tool.draw()), f"run python tools/{tool.__name__}.py"


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", PALETTES)
def test_every_colour_has_enough_contrast(mode: str) -> None:
    palette = PALETTES[mode]
    for front, least in (("ink", 4.5), ("quiet", 4.5), ("line", 3)):
        for back in ("back", "box"):
            dark, light = sorted(luminance(palette[name]) for name in (front, back))
            assert (light + 0.05) / (dark + 0.05) >= least, (front, back)
