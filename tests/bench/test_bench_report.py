"""Results, their report and the tables in pages: numbers, words and pictures, whatever was measured."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from commands import raises
from made_up_results import LAYERS, made_up_results
from typer.testing import CliRunner

from xsent.errors import DataError
from xsent_bench import plots
from xsent_bench.cli import app
from xsent_bench.report import GROUPS, by_tokens, fill, listing, sections, write_report
from xsent_bench.results import Measurement, Results

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "docs/results/bench"
PAGES = ("README.md", "docs/explanation/choosing.md")
PLACE = "# Page\n\n<!-- table {} -->\n\nold\n\n<!-- end -->\n\nText.\n"
PLOTS = {"latency-by-layers", "memory-by-layers", "throughput-by-length", "quality-by-milliseconds"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(made_up_results(), tmp_path_factory.mktemp("report")).parent


@pytest.fixture(scope="module")
def markdown(folder: Path) -> str:
    return (folder / "report.md").read_text()


def test_the_report_says_every_group(markdown: str) -> None:
    found = re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert found == ["Notes", "Systems", "Machine", *(title for _, title, *_ in GROUPS), "Not measured"]
    assert markdown.startswith("# ") and "`xsent-bench --out x<1>` on Abacus &lt;3&gt;." in markdown
    assert "- Weights are random." in markdown and "pip install 'xsent[peers]'" in markdown
    assert "- versions: python 3.11" in markdown and "- processor: Abacus &lt;3&gt;" in markdown
    assert "- threads:" not in markdown and "- governor:" not in markdown  # nothing to say
    assert "- onnxruntime: int8, SentencePiece, batches of 8" in markdown


ROWS = [
    "| layers | precision | backend | threads | 8 tokens | 32 tokens | 256 tokens |",
    "| 6 | float32 | onnx | 1 | – | 9.00 / – / – | – |",
    # 2 layers: 0.05 + 0.01 × 2 × 8 = 0.21 ms, 1 / 0.21 ms = 4,762 sentences and 38,095 tokens a second.
    "| 2 | int8 | onnx | 1 | 0.210 / 0.420 / 0.630 | 0.690 / 1.38 / 2.07 |",
    "| 2 | int8 | onnx | 1 | 4,762 / 38,095 |",
    "| 2 | float32 | onnx | 142 | 182 | 185 | 189 |",
    # French is 91 + 1, German 91 - 1; the scores in English have columns of their own.
    "| xsent | 2 | a model | 150 | 80.0 | 2.10 | 476 | 20.0 "
    "| 91.0 | 91.0 | 91.5 | 0.500 | 80.0 | 85.0 | 75.0 | 80.0 | 70.0 | 75.0 |",
    "| onnxruntime | – | MiniLM, random weights: cost only | 300 | – | 0.0500 | – |",
    "| 384 | int8 | 94.1 | 94.2 | 384 |",
]


def test_the_numbers_are_those_measured(markdown: str) -> None:
    assert [row for row in ROWS if row not in markdown] == []
    sizes = [Measurement("size", {"layers": 1}, {}), Measurement("size", {"layers": 2, "extra": "x"}, {"bytes": 0})]
    assert listing(sizes).endswith("\n| 1 | – | – |\n| 2 | x | 0 |")


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results, file = made_up_results(), tmp_path / "results.json"
    results.write(file)
    assert Results.read(file) == results
    first = results.measurements[0]
    for factor in (3, 5):
        figures = {name: factor * value for name, value in first.figures.items()}
        results.add(replace(first, figures=figures))
    assert len(results.measurements) == len(Results.read(file).measurements)
    p50 = first.figures["p50_ms"]
    assert results.measurements[0].turns["p50_ms"] == [p50, 3 * p50, 5 * p50]
    assert results.measurements[0].figures["p50_ms"] == 3 * p50
    file.write_text('{"format_version": 0}')
    raises(DataError, "expected results of xsent-bench in format", Results.read, file)


def test_every_plot_is_a_file(folder: Path, markdown: str) -> None:
    assert set(re.findall(r"\]\(plots/(.*?)\.png\)", markdown)) == PLOTS
    assert {path.name for path in (folder / "plots").iterdir()} == {f"{name}.png" for name in PLOTS}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (folder / "plots").iterdir())


def test_any_beginning_of_a_run_has_a_report(tmp_path: Path) -> None:
    text = write_report(Results("xsent-bench", failures=["grid: no room"]), tmp_path).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Not measured"] and "- grid: no room" in text
    results = made_up_results()
    results.measurements = [m for m in made_up_results().measurements if m.axes.get("layers", LAYERS[2]) == LAYERS[2]]
    plots = {plot.name for section in sections(results) for plot in section.plots}
    assert plots == PLOTS - {"latency-by-layers", "memory-by-layers"}  # one depth is no line


@pytest.mark.parametrize("page", PAGES)
def test_the_figures_of_a_page_are_those_of_the_report(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert fill(text, Results.read(REPORT / "results.json"), page) == text


def test_two_models_have_rows_and_lines_of_their_own() -> None:
    ours = [m for m in made_up_results().of("latency") if m.has(precision="int8")]
    theirs = [replace(m, axes={**m.axes, "system": "mine"}) for m in ours if m.axes["layers"] in (2, 3)]
    *_, last, other = by_tokens([*ours, *theirs[:3]], "p50_ms").splitlines()
    assert last.startswith("| xsent | 6 |") and other.startswith("| mine | 2 |")
    plot = plots.latency_by_layers([*ours, *theirs])
    assert plot is not None
    lines = {str(line.get_label()): line for line in plot.figure.axes[0].get_lines()}
    assert list(lines["xsent, 32"].get_xdata()) == list(LAYERS) and list(lines["mine, 32"].get_xdata()) == [2, 3]
    assert lines["xsent, 32"].get_marker() != lines["mine, 32"].get_marker()
    alone = plots.latency_by_layers([*ours, *theirs[:3]])  # one depth: a point, and no line through it
    assert alone is not None and len(alone.figure.axes[0].get_lines()) == 3 * 2 + 3


def test_a_title_says_who_is_ahead() -> None:
    theirs = {"system": "rival", "layers": "–", "model": "a rival, 8 bits"}
    compared = made_up_results().compared()
    for score, finding in ((99.0, "a rival is ahead by 6.0 points"), (92.0, "xsent is ahead by 1.0 points")):
        rival = Measurement("systems", theirs, {"ms_32_words": 1.0, "xx_en": score})
        plot = plots.quality_by_time([*(m for m in compared if m.axes["system"] == "xsent"), rival])
        assert plot is not None and plot.figure.axes[0].get_title() == f"Finding translations:\n{finding}"


def test_tables_of_pages_are_of_our_model_only() -> None:
    results = made_up_results()
    grid = [m for m in results.measurements if m.group in {"latency", "process", "size"}]
    slower = {"p50_ms": 99.0, "first_ms": 999.0, "mib_1000": 999.0, "bytes": 99e6}
    others = [replace(m, axes={**m.axes, "system": "mine"}, figures={**m.figures, **slower}) for m in grid]
    more = replace(results, measurements=[*others, *results.measurements])
    for name in ("layers", "backends"):
        page = PLACE.format(name)
        assert fill(page, more, "page.md") == fill(page, results, "page.md")


TABLES = {
    "systems": [
        "| **xsent, 2 layers** | 91.0 | 75.0 | 70.0 | 60.0 | 2.10 | 20.0 |",
        "| a model | 92.5 | 75.0 | 70.0 | 60.0 | 9.00 | 20.0 |",
    ],
    # 93 + 1, 93 - 1
    "languages": [
        "| measure | fr | de |",
        "| found, to English | 94.0 | 92.0 |",
        "| topics (English: 85.0) | 81.0 | 79.0 |",
    ],
    "layers": ["| 2 | 91.0 | 91.5 | 80.0 | 70.0 | 60.0 | 0.690 | 1,449 | 142 | 75.0 | 30.0 |", "| 6 | 93.0 | – |"],
    "vectors": ["| 384 | 1,536: 94.1 / 94.2 | 384: 94.1 / 94.2 |"],
    "backends": ["| `onnx` | 1.97 | 146 | 79.0 |"],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_of_the_results(name: str) -> None:
    filled = fill(PLACE.format(name), made_up_results(), "page.md")
    assert "old" not in filled and filled.startswith("# Page\n\n<!-- table ") and filled.endswith("\n\nText.\n")
    assert all(f"\n{row}" in filled for row in TABLES[name]), filled
    assert fill(filled, made_up_results(), "page.md") == filled


def test_a_page_without_tables_and_results_without_figures_are_one_line() -> None:
    for text, message in (
        ("<!-- table kept -->\n" + PLACE.format("kept"), "page.md: the table kept has no <!-- end -->"),
        ("Text.", "page.md: no table; expected <!-- table NAME -->"),
        (PLACE.format("prices"), "page.md: no table prices; there are systems, "),
        (PLACE.format("languages"), "page.md: the results lack figures of the table languages; measure with --eval"),
    ):
        raises(DataError, message, fill, text, Results(""), "page.md")


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    made_up_results().write(tmp_path / "results.json")
    page = tmp_path / "page.md"
    page.write_text(PLACE.format("layers"))
    result = CliRunner().invoke(app, ["tables", str(tmp_path), str(page)])
    assert result.exit_code == 0, result.output
    assert page.read_text() == fill(PLACE.format("layers"), made_up_results(), "page.md")
