"""The generated reference pages agree with the commands and with the server."""

import re
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("torch")  # the commands of training are on the page

from reference_pages import PAGES

DECIMALS = re.compile(r"\d\.\d+")  # scores differ a little between CPUs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_generated_page_is_up_to_date(page: Path) -> None:
    made, found = (DECIMALS.sub("0.0", text) for text in (PAGES[page](), page.read_text(encoding="utf-8")))
    assert found == made, "run python tools/reference_pages.py"
