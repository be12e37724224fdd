"""Takes the pictures of docs/guides/browser.md: a search, the map, and sorting on a phone.

    python tools/page_pictures.py

It also takes that of docs/guides/cluster.md, a map of the tickets of bench/tickets.tsv. Each picture is an SVG that
contains two screenshots, and shows readers that of their mode, light or dark. Needs chromium (apt-get install chromium
fonts-noto-cjk), playwright and Pillow (pip install playwright pillow) and the extra map (pip install "xsent[map]").
"""

import csv
import shutil
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from xsent_apps.map import map_texts
from xsent_apps.web.server import open_site
from xsent_apps.web.site import Site

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
MAP_TITLE = "Tickets in five languages form groups by subject, not by language"
STYLE = "<style>@media (prefers-color-scheme:light){.dark{display:none}}</style>"  # dark covers light


def open_example(browser: Browser, address: str, **window: Any) -> Page:  # noqa: ANN401  the options of a window
    """Open the page, which shows its example at the first visit."""
    page = browser.new_context(**window).new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    expect(page.locator("#encoding")).to_contain_text("54 passages.", timeout=60_000)
    return page


def take(page: Page, name: str) -> None:
    """Write a picture of the page in both modes when it is still."""
    width, height = page.evaluate("[innerWidth, innerHeight]")
    size = f'width="{width}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">', STYLE]
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode)
        page.wait_for_timeout(1500)
        data = BytesIO()
        Image.open(BytesIO(page.screenshot())).save(data, "webp", quality=85)
        text = b64encode(data.getvalue()).decode()
        parts.append(f'<image class="{mode}" {size} href="data:image/webp;base64,{text}"/>')
    (IMAGES / f"{name}.svg").write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def take_site(browser: Browser, address: str) -> None:
    """Write the pictures of the page."""
    page = open_example(browser, address, viewport={"width": 800, "height": 860})
    for query, found in (("katten", "gatti"), ("quand passe le train ?", "train")):  # the first one takes longer
        page.fill("#query", query)
        expect(page.locator("#results p").first).to_contain_text(found)
    page.wait_for_selector("#results strong")
    take(page, "web-search")
    page = open_example(browser, address, viewport={"width": 960, "height": 800})
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
