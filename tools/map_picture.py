"""Draws docs/images/map.png for docs/guides/cluster.md: the tickets of bench/tickets.tsv, by cluster.

    python tools/map_picture.py

Needs the extra map (pip install "xsent[map]").
"""

import csv
from pathlib import Path

from xsent_apps.map import map_texts

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "map.png"
TITLE = "Tickets in five languages form groups by subject, not by language"

if __name__ == "__main__":
    with (ROOT / "bench" / "tickets.tsv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    map_texts(texts, title=TITLE).save(PICTURE)
