"""The README's figures against the report that they are quoted from."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "docs" / "results" / "bench" / "report.md"


def test_every_row_of_costs_stands_in_the_report() -> None:
    section = (ROOT / "README.md").read_text().partition("\n## What it costs\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    known = set(REPORT.read_text().splitlines())
    assert len(rows) == 2 + 5 and [row for row in rows if row not in known] == []
