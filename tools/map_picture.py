"""Takes the picture of docs/guides/cluster.md: a map of the tickets of bench/tickets.tsv, by cluster.

    python tools/map_picture.py

Needs the extra map (pip install "xsent[map]"), chromium (apt-get install chromium) and playwright (pip install
playwright).
"""

import csv
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from xsent_apps.map import map_texts

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "map.png"
TITLE = "Tickets in five languages form groups by subject, not by language"

if __name__ == "__main__":
    with (ROOT / "bench" / "tickets.tsv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    with TemporaryDirectory() as folder, sync_playwright() as started:
        file_of_map = Path(folder) / "map.html"
        map_texts(texts, title=TITLE).save(file_of_map)
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(file_of_map.as_uri())
        page.wait_for_timeout(1500)
        page.screenshot(path=PICTURE)
        browser.close()
