"""Takes the pictures of docs/guides/browser.md: a search in light mode, the map in dark mode, sorting on a phone.

    python tools/page_pictures.py

Needs chromium (apt-get install chromium fonts-noto-cjk) and playwright (pip install playwright).
"""

import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from xsent_apps.web.server import open_site
from xsent_apps.web.site import Site

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def open_example(browser: Browser, address: str, **window: Any) -> Page:  # noqa: ANN401  the options of a window
    """Open the page, which shows its example at the first visit."""
    page = browser.new_context(**window).new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    expect(page.locator("#encoding")).to_contain_text("54 passages.", timeout=60_000)
    return page


def take(page: Page, name: str, *, full_page: bool = False) -> None:
    """Write a picture when the page is still."""
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / f"web-{name}.png", full_page=full_page)


def take_all(browser: Browser, address: str) -> None:
    """Write all pictures."""
    desktop = {"width": 1000, "height": 860}
    page = open_example(browser, address, viewport=desktop)
    page.fill("#query", "quand passe le train ?")
    page.wait_for_selector("#results strong")
    take(page, "search")
    page = open_example(browser, address, viewport={"width": 1280, "height": 900}, color_scheme="dark")
    page.click("#tab-map")
    page.wait_for_selector("#canvas[data-points='54']")
    page.locator("#canvas").scroll_into_view_if_needed()
    take(page, "map")
    page = open_example(browser, address, viewport={"width": 360, "height": 760}, device_scale_factor=1.5)
    page.click("#tab-sort")
    page.click("#example-labels")
    page.wait_for_selector(".group")
    page.locator(".group").nth(0).scroll_into_view_if_needed()
    take(page, "phone")


def main() -> None:
    """Serve the page and write its pictures."""
    IMAGES.mkdir(exist_ok=True)
    with open_site(Site.of(None)) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_all(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
