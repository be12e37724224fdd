"""Results and their report: its numbers, words and pictures, whatever was measured."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_results import LAYERS, made_up_results

from xsent_bench.report import GROUP_SECTIONS, Table, by_tokens, lines_table, listing, sections, write_report
from xsent_bench.results import Measurement, Results, fit_line, number

PLOTS = {"latency-by-layers", "memory-by-layers", "throughput-by-length", "quality-by-milliseconds"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(made_up_results(), tmp_path_factory.mktemp("report")).parent


@pytest.fixture(scope="module")
def markdown(folder: Path) -> str:
    return (folder / "report.md").read_text()


def test_tables_of_measurements() -> None:
    assert [number(n) for n in (0, 0.0512, 1.234, 12.34, 123.4, 12345.6, -0.5)] == [
        *("0", "0.0512", "1.23", "12.3", "123", "12,346", "-0.500")
    ]
    sizes = [
        Measurement("size", {"layers": 1}, {"bytes": 28.3e6}),
        Measurement("size", {"layers": 2, "extra": "x"}, {"bytes": 30e6, "int8_peak": 0.5}),
    ]
    rows = [["1", "–", "28.3", "–"], ["2", "x", "30.0", "50.0"]]
    assert listing(sizes) == Table(["layers", "extra", "MB", "% of the int8 peak"], rows)
    latencies = [
        Measurement("latency", {"layers": layers, "tokens": tokens}, {"p50_ms": layers * tokens, "p95_ms": 1.5})
        for layers, tokens in ((1, 16), (1, 8), (2, 8))
    ]
    rows = [["1", "8.00 / 1.50", "16.0 / 1.50"], ["2", "16.0 / 1.50", "–"]]
    assert by_tokens(latencies, "p50_ms", "p95_ms") == Table(["layers", "8 tokens", "16 tokens"], rows)


def test_the_report_says_every_group(markdown: str) -> None:
    titles = [section.title for section in GROUP_SECTIONS]
    assert len(titles) == 10
    found = re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert found == ["To know", "In short", "Machine", *titles, "Not measured"]
    assert markdown.startswith("# ") and "`xsent-bench --out x<1>` on Abacus &lt;3&gt;." in markdown
    assert "- Weights are random." in markdown and "pip install 'xsent[peers]'" in markdown
    assert "- versions: python 3.11" in markdown and "- processor: Abacus &lt;3&gt;" in markdown
    assert "- threads:" not in markdown and "- governor:" not in markdown  # nothing to say


@pytest.mark.parametrize(
    "row",
    [
        # 2 layers: 0.05 + 0.01 × 2 × 8 = 0.21 ms, 1 / 0.21 ms = 4,762 sentences and 38,095 tokens a second.
        "| 2 | 0.690 | 2.07 | 1,449 | 142 | 72.0 | 75.0 | 30.0 |",  # in short
        "| 2 | int8 | onnx | 1 | 0.210 / 0.420 / 0.630 | 0.690 / 1.38 / 2.07 |",
        "| 2 | int8 | onnx | 1 | 4,762 / 38,095 |",
        "| 2 | float32 | onnx | 182 | 185 | 187 | 0.0100 | 189 |",
        "| 2 | 3.00 | 55.0 | 20.0 | 12.5 |",
        "| int8 | onnx | 1 | 256 | 0.0500 | 2.56 | 0.0000 | 1.0000 |",  # the line
        "| 0 | 128 | CPU | 1,280 | 0.100 | 0.167 | – | – | 500 | 0.500 | – | – |",  # training
        "| 6 | 128 | CPU | 107 | 1.20 | 2.00 | 44.0 | 2.32 | 1,500 | 1.50 | 28,024 | 3.93 |",
        "| builtin | 0 | int8 | 90.0 | 91.5 | 60.0 | 70.0 | 0.0500 | 26.0 |",
        "| builtin | 2 | int8 | 92.0 | – | 70.0 | 72.0 | 0.690 | 30.0 |",
        "| fastembed | MiniLM | 260 (11.54 ×) | – | 300 (2.00 ×) | – | – |",  # 3,000 / 260 a second, 300 / 150 ms
    ],
)
def test_the_numbers_are_those_measured(markdown: str, row: str) -> None:
    assert row in markdown


def test_peers_say_how_they_run_and_stand_alone_where_ours_failed(markdown: str) -> None:
    assert "- fastembed: batches of 256." in markdown.partition("## Peers")[2]
    results = made_up_results()
    results.measurements = [m for m in results.of("peers") if m.axes["system"] != "xsent"]
    (peers,) = [section for section in sections(results) if section.title == "Peers"]
    assert peers.table and peers.table.rows == [["fastembed", "MiniLM", "260", "300"]]


def test_every_plot_is_a_file(folder: Path, markdown: str) -> None:
    assert set(re.findall(r"\]\(plots/(.*?)\.png\)", markdown)) == PLOTS
    assert {path.name for path in (folder / "plots").iterdir()} == {f"{name}.png" for name in PLOTS}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (folder / "plots").iterdir())


def test_any_beginning_of_a_run_has_a_report(tmp_path: Path) -> None:
    text = write_report(Results("xsent-bench", failures=["grid: no room"]), tmp_path).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Not measured"] and "- grid: no room" in text
    for count in (1, 5, 30):
        results = made_up_results()
        results.measurements = results.measurements[:count] + results.measurements[-count:]
        assert len(sections(results)) > 3
    results.measurements = [m for m in made_up_results().measurements if m.axes.get("layers") == LAYERS[2]]
    plots = {plot.name for section in sections(results) for plot in section.plots}
    assert plots == PLOTS - {"latency-by-layers", "memory-by-layers"}  # one depth is no line


def test_latency_is_of_one_thread_and_throughput_of_all() -> None:
    results = made_up_results()
    results.measurements += [replace(m, axes={**m.axes, "threads": 2}) for m in results.of("latency")]
    tables = {section.title: section.table for section in sections(results) if section.table}
    threads = {title: {row[3] for row in tables[title].rows} for title in ("Latency", "Throughput")}
    assert threads == {"Latency": {"1"}, "Throughput": {"1", "2"}}
    assert len(tables["The straight line of latency over layers"].rows) == 3  # lengths


def test_a_line_by_hand() -> None:
    exact = fit_line({0: 0.5, 1: 0.75, 4: 1.5})
    assert exact == (pytest.approx(0.5), pytest.approx(0.25), pytest.approx(0, abs=1e-9), pytest.approx(1))
    # y = 1 + x lies 1 below, 2 above, 1 below: sqrt(6 / 3); around their mean 2 the figures vary by (4 + 4 + 0) / 3.
    bent = fit_line({0: 0, 1: 4, 2: 2})
    assert bent == (pytest.approx(1), pytest.approx(1), pytest.approx(2**0.5), pytest.approx(0.25))
    assert lines_table([m for m in made_up_results().of("latency") if m.axes["layers"] in (0, 1)]) is None  # two points
