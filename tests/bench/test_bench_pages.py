"""The tables in pages: they are those of the report in the repository, and say what is wrong with a page."""

from pathlib import Path

import pytest
from made_up_results import made_up_results
from typer.testing import CliRunner

from xsent.errors import DataError
from xsent_bench.cli import app
from xsent_bench.report import fill
from xsent_bench.results import Results

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "docs/results/bench"
PAGES = ("README.md", "docs/choosing.md")
PLACE = "# Page\n\n<!-- table {} -->\n\nold\n\n<!-- end -->\n\nText.\n"


@pytest.mark.parametrize("page", PAGES)
def test_the_figures_of_a_page_are_those_of_the_report(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if '"format_version": 1' in (REPORT / "results.json").read_text():
        pytest.skip("the report is older than these tables")
    assert fill(text, Results.read(REPORT / "results.json"), page) == text


ROWS = {
    "systems": ["| xsent, 1 layer | 90.5 | 80.0 / 75.0 | 75.0 / 70.0 | 1.10 | 909 | 80.0 | 20.0 |"],
    "frontier": ["- Found, to English, the frontier (nothing is both faster"],
    # 93 + 1, 93 - 1
    "languages": ["|  | fr | de |", "| found, to English | 94.0 | 92.0 |", "| topics (English: 85.0) | 81.0 | 79.0 |"],
    "layers": ["| 2 | 91.0 | 91.5 | 80.0 | 70.0 | 0.690 | 1,449 | 142 | 75.0 | 30.0 |", "| 6 | 93.0 | – |"],
    "vectors": ["| 384 | 1,536: 94.1 / 94.2 | 384: 94.1 / 94.2 |"],
    "backends": ["| `onnx` | 1.97 | 146 | 79.0 |"],
}


@pytest.mark.parametrize("name", ROWS)
def test_a_table_is_made_of_the_results(name: str) -> None:
    filled = fill(PLACE.format(name), made_up_results(), "page.md")
    assert "old" not in filled and filled.startswith("# Page\n\n<!-- table ") and filled.endswith("\n\nText.\n")
    assert all(f"\n{row}" in filled for row in ROWS[name]), filled
    assert fill(filled, made_up_results(), "page.md") == filled


def test_a_page_without_tables_and_results_without_figures_are_one_line() -> None:
    for text, message in (
        ("Text.", "page.md: no table; expected <!-- table NAME -->"),
        (PLACE.format("prices"), "page.md: no table prices; there are systems, "),
        (PLACE.format("languages"), "page.md: the results lack figures of the table languages; measure with --eval"),
    ):
        with pytest.raises(DataError, match=message):
            fill(text, Results(""), "page.md")


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    made_up_results().write(tmp_path / "results.json")
    page = tmp_path / "page.md"
    page.write_text(PLACE.format("layers"))
    result = CliRunner().invoke(app, ["tables", str(tmp_path), str(page)])
    assert result.exit_code == 0, result.output
    assert page.read_text() == fill(PLACE.format("layers"), made_up_results(), "page.md")
