"""The site is made of the pages without a warning: links and anchors lead somewhere, and no page is left out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, SITE

import xsent

pytest.importorskip("myst_parser", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built."""
    out = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", "docs", "-d", str(out / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(out / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out / "html"


def test_every_page_is_on_it_and_loads_nothing_from_elsewhere(site: Path) -> None:
    made = {page.relative_to(site).with_suffix(".md").as_posix(): page.read_text() for page in site.rglob("*.html")}
    assert set(SITE) <= made.keys()
    for text in made.values():
        assert not re.search(r'<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//', text)


def test_the_reference_has_all_that_is_offered(site: Path) -> None:
    text = (site / "docs" / "reference.html").read_text()
    assert [name for name in xsent.__all__ if f'id="xsent.{name}"' not in text] == ["__version__"]
