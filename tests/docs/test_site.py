"""The site has every page and name, loads nothing from elsewhere, and can be used by everybody."""

import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browsing import AXE, browser, listening, needs_chromium, violations
from pages import PAGES, ROOT

import xsent

pytestmark = pytest.mark.slow
__all__ = ["browser"]

pytest.importorskip("myst_parser", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, which is built without a warning: links and anchors exist."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", "docs", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_the_site_has_every_page_and_name_and_loads_nothing_from_elsewhere(site: Path) -> None:
    made = {page.relative_to(site): page.read_text() for page in site.rglob("*.html")}
    assert {Path(page).with_suffix(".html") for page in PAGES} <= made.keys()
    for page, text in made.items():
        for target in re.findall(r'http-equiv="refresh" content="0; url=(.+?)"', text):  # an old address
            assert page.parent / target in made, page
        assert not re.search(r'<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//', text)
    reference = "".join(text for page, text in made.items() if Path("docs/reference") in page.parents)
    assert [name for name in xsent.__all__ if f'id="xsent.{name}"' not in reference] == ["__version__"]
    programs = {ROOT / f"apps/xsent_apps/{name}.py" for name in ("commands", "mcp")}
    for module in {*(ROOT / "apps" / "xsent_apps").glob("*.py")} - programs:
        for name in re.findall(r"^class ([A-Z]\w+)", module.read_text(encoding="utf-8"), re.MULTILINE):
            assert f'id="xsent_apps.{module.stem}.{name}"' in reference


class Quiet(SimpleHTTPRequestHandler):
    """A server of files without a log."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@needs_chromium
@pytest.mark.network
@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm install --no-save axe-core")
def test_everybody_can_use_the_site(browser: Any, site: Path) -> None:  # noqa: ANN401
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))) as address:
        for width, scheme in ((390, "light"), (1280, "light"), (390, "dark"), (1280, "dark")):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            for name in ("docs/index", "docs/tutorials/five-minutes", "docs/tutorials/your-own-data", "README"):
                page.goto(f"{address}{name}.html", wait_until="load")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                assert violations(page) == [], name
            page.close()
