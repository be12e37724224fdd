"""The site builds from the pages without a warning: links and anchors exist, and no page is missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, SITE

import xsent

pytest.importorskip("myst_parser", reason="the site needs the extra docs")


def test_the_site_has_every_page_and_name_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", "docs", "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(tmp_path / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = {page.relative_to(tmp_path / "html"): page.read_text() for page in (tmp_path / "html").rglob("*.html")}
    assert {Path(page).with_suffix(".html") for page in SITE} <= made.keys()
    for text in made.values():
        assert not re.search(r'<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//', text)
    reference = made[Path("docs/reference.html")]
    assert [name for name in xsent.__all__ if f'id="xsent.{name}"' not in reference] == ["__version__"]
