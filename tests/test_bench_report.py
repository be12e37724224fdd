"""A run's results: their form, and the report: what it says in numbers, words and pictures, whatever there is."""

import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_up_results import LAYERS, made_up_results

from xsent.bench.report.sections import sections, write_report
from xsent.bench.report.tables import Table, listing, number, pivot
from xsent.bench.results import Measurement, Results
from xsent.errors import DataError

PLOTS = {
    "latency-by-layers",
    "memory-by-layers",
    "throughput-by-length",
    "quality-by-milliseconds",
    "quality-by-megabytes",
}
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(made_up_results(), folder)
    return folder


@pytest.fixture(scope="module")
def markdown(folder: Path) -> str:
    return (folder / "report.md").read_text()


def test_numbers_have_three_digits_that_count() -> None:
    assert [number(n) for n in (0, 0.0512, 1.234, 12.34, 123.4, 12345.6, -0.5)] == [
        *("0", "0.0512", "1.23", "12.3", "123", "12,346", "-0.500")
    ]


def test_a_listing_has_a_row_for_each_measurement() -> None:
    measured = [
        Measurement("size", {"layers": 1}, {"bytes": 28.3e6}),
        Measurement("size", {"layers": 2, "extra": "x"}, {"bytes": 30e6, "int8_peak": 0.5}),
    ]
    assert listing(measured) == Table(
        ["layers", "extra", "MB", "% of the int8 peak"], [["1", "–", "28.3", "–"], ["2", "x", "30.0", "50.0"]]
    )


def test_a_pivot_has_a_column_for_each_value_in_order() -> None:
    measured = [
        Measurement("latency", {"layers": layers, "tokens": tokens}, {"p50_ms": layers * tokens, "p95_ms": 1.5})
        for layers, tokens in ((1, 16), (1, 8), (2, 8))
    ]
    assert pivot(measured, "tokens", ["p50_ms", "p95_ms"]) == Table(
        ["layers", "8 tokens", "16 tokens"],
        [["1", "8.00 / 1.50", "16.0 / 1.50"], ["2", "16.0 / 1.50", "–"]],
    )


def test_the_report_says_every_group(markdown: str) -> None:
    titles = re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert titles == [
        "To know",
        "In short",
        "Machine",
        "Latency",
        "The straight line of latency over layers",
        "Throughput",
        "First vector",
        "Memory",
        "Size on the disk",
        "Distance to the machine's own limits",
        "Training",
        "Quality and cost",
        "Peers",
        "Tracking",
        "Not measured",
    ]
    assert markdown.startswith("# ") and "`xsent-bench --out x<1>` on Abacus &lt;3&gt;." in markdown
    assert "- Weights are random." in markdown and "pip install 'xsent[peers]'" in markdown
    assert "- versions: python 3.11" in markdown and "- processor: Abacus &lt;3&gt;" in markdown
    assert "- threads:" not in markdown and "- governor:" not in markdown  # nothing to say


def test_the_numbers_are_those_measured(markdown: str) -> None:
    # 2 layers: 0.05 + 0.01 × 2 × 8 = 0.21 ms, 1 / 0.21 ms = 4,762 sentences and 38,095 tokens a second.
    assert "| 2 | 0.690 | 2.07 | 1,449 | 142 | 72.0 | 75.0 | 30.0 |" in markdown  # in short
    assert "| 2 | int8 | onnx | 1 | 0.210 / 0.420 / 0.630 | 0.690 / 1.38 / 2.07 |" in markdown
    assert "| 2 | int8 | onnx | 1 | 4,762 / 38,095 |" in markdown
    assert "| 2 | float32 | onnx | 182 | 185 | 187 | 0.0100 | 189 |" in markdown
    assert "| 2 | 3.00 | 55.0 | 20.0 | 12.5 |" in markdown
    assert "| int8 | onnx | 1 | 256 | 0.0500 | 2.56 | 0.0000 | 1.0000 |" in markdown  # the line
    assert "| 0 | 0.100 | 0.167 | – | – | 500 | 0.500 | – | – |" in markdown  # training
    assert "| 6 | 1.20 | 2.00 | 44.0 | 2.32 | 1,500 | 1.50 | 28,024 | 3.93 |" in markdown
    assert "| builtin | 2 | int8 | 92.0 | 70.0 | 72.0 | 0.690 | 30.0 |" in markdown


def test_peers_stand_beside_ours_and_say_how_they_run(markdown: str) -> None:
    # 3,000 / 260 sentences a second, 300 / 150 ms.
    assert "| fastembed | MiniLM | 260 (11.54 ×) |  | 300 (2.00 ×) |  |  |" in markdown
    assert "- fastembed: batches of 256." in markdown.partition("## Peers")[2]
    results = made_up_results()
    results.measurements = [m for m in results.of("peers") if m.axes["system"] != "xsent"]
    (peers,) = [section for section in sections(results) if section.title == "Peers"]
    assert peers.tables[0].rows == [["fastembed", "MiniLM", "260", "300"]]  # ours failed


def test_every_plot_is_a_file_and_is_shown(folder: Path, markdown: str) -> None:
    assert set(re.findall(r"\]\(plots/(.*?)\.png\)", markdown)) == PLOTS
    assert {path.name for path in (folder / "plots").iterdir()} == {f"{name}.png" for name in PLOTS}
    assert all(path.read_bytes().startswith(PNG) for path in (folder / "plots").iterdir())


def test_the_page_is_whole_and_needs_no_network(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    opened: list[str] = []

    class Check(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            for name, value in attrs:
                if name in ("src", "href"):
                    assert tag == "img" and value and value.startswith("data:image/png;base64,")
                    assert b64decode(value.partition(",")[2]).startswith(PNG)
            if tag not in ("meta", "img"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Check().feed(page)
    assert not opened and "http" not in page and page.count("<img") == len(PLOTS)
    assert "Abacus &lt;3&gt;" in page and "<code>xsent-bench --out x&lt;1&gt;</code>" in page
    assert "<td>0.210 / 0.420 / 0.630</td>" in page


def test_a_run_that_measured_nothing_has_a_report(tmp_path: Path) -> None:
    text = write_report(Results("xsent-bench", failures=["grid: no room"]), tmp_path).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Not measured"] and "- grid: no room" in text


@pytest.mark.parametrize("count", (0, 1, 5, 30))
def test_any_beginning_of_a_run_has_a_report(count: int) -> None:
    results = made_up_results()
    results.measurements = results.measurements[:count] + results.measurements[-count:]
    assert sections(results)


def test_latency_is_of_one_thread_and_throughput_of_all() -> None:
    results = made_up_results()
    results.measurements += [replace(m, axes={**m.axes, "threads": 2}) for m in results.of("latency")]
    tables = {section.title: section.tables[0] for section in sections(results) if section.tables}
    threads = {title: {row[3] for row in tables[title].rows} for title in ("Latency", "Throughput")}
    assert threads == {"Latency": {"1"}, "Throughput": {"1", "2"}}
    assert len(tables["The straight line of latency over layers"].rows) == 3  # lengths


def test_one_depth_is_no_line() -> None:
    results = made_up_results()
    results.measurements = [m for m in results.measurements if m.axes.get("layers") == LAYERS[2]]
    assert {plot.name for section in sections(results) for plot in section.plots} == PLOTS - {
        "latency-by-layers",
        "memory-by-layers",
    }


def results() -> Results:
    fast = Measurement("latency", {"layers": 2, "tokens": 32}, {"p50_ms": 1.5}, {"p50_ms": [1.4, 1.6]})
    slow = Measurement("latency", {"layers": 6, "tokens": 32}, {"p50_ms": 4.5})
    return Results("xsent-bench", {"processor": "x"}, [fast, slow, Measurement("size", {"layers": 2}, {"bytes": 9})])


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    results().write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results()
    assert results().measurements[0].name == "latency layers=2 tokens=32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no results of xsent-bench"),
        ("[]", "no results of xsent-bench"),
        ('{"format_version": 1}', "no results of xsent-bench .*measurements"),
        ('{"format_version": 1, "command": "x", "measurements": [{"group": 3}]}', "no results of xsent-bench"),
        ('{"format_version": 9}', "of version 9, this xsent reads 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=f"r.json: .*{message}"):
        Results.read(tmp_path / "r.json")
    with pytest.raises(DataError, match=r"nowhere: no results"):
        Results.read(tmp_path / "nowhere")
