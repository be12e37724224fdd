"""Takes the pictures of docs/guides/browser.md: a search in light mode, the map in dark mode, sorting on a phone.

    python tools/page_pictures.py

It also takes that of docs/guides/cluster.md, a map of the tickets of bench/tickets.tsv. Needs chromium (apt-get install
chromium fonts-noto-cjk), playwright (pip install playwright) and the extra map (pip install "xsent[map]").
"""

import csv
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from xsent_apps.map import map_texts
from xsent_apps.web.server import open_site
from xsent_apps.web.site import Site

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
MAP_TITLE = "Tickets in five languages form groups by subject, not by language"


def open_example(browser: Browser, address: str, **window: Any) -> Page:  # noqa: ANN401  the options of a window
    """Open the page, which shows its example at the first visit."""
    page = browser.new_context(**window).new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    expect(page.locator("#encoding")).to_contain_text("54 passages.", timeout=60_000)
    return page


def take(page: Page, name: str) -> None:
    """Write a picture when the page is still."""
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / f"{name}.png")


def take_site(browser: Browser, address: str) -> None:
    """Write the pictures of the page."""
    desktop = {"width": 1000, "height": 860}
    page = open_example(browser, address, viewport=desktop)
    page.fill("#query", "quand passe le train ?")
    page.wait_for_selector("#results strong")
    take(page, "web-search")
    page = open_example(browser, address, viewport={"width": 1280, "height": 900}, color_scheme="dark")
    page.click("#tab-map")
    page.wait_for_selector("#canvas[data-points='54']")
    page.locator("#canvas").scroll_into_view_if_needed()
    take(page, "web-map")
    page = open_example(browser, address, viewport={"width": 360, "height": 760}, device_scale_factor=1.5)
    page.click("#tab-sort")
    page.click("#example-labels")
    page.wait_for_selector(".group")
    page.locator(".group").nth(0).scroll_into_view_if_needed()
    take(page, "web-phone")


def take_map(browser: Browser) -> None:
    """Write the picture of the tickets."""
    with (ROOT / "bench" / "tickets.tsv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    with TemporaryDirectory() as folder:
        map_texts(texts, title=MAP_TITLE).save(Path(folder) / "map.html")
        page.goto((Path(folder) / "map.html").as_uri())
        take(page, "map")


def main() -> None:
    """Serve the page and write all pictures."""
    with open_site(Site.of(None)) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_site(browser, address)
        take_map(browser)
        browser.close()


if __name__ == "__main__":
    main()
