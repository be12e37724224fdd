"""The reports: numbers over seeds, the papers' beside them, what is missing stays visible."""

import json
import math
from pathlib import Path

import pytest

from xsent.bench.ablation.groups import Group, Row
from xsent.bench.ablation.plan import Plan
from xsent.bench.ablation.report import cell, descending, orders, section, write_report
from xsent.bench.ablation.results import Value, read_results, values
from xsent.bench.markdown import markdown_table

GROUP = Group(
    "toy", "Toy", "A note.", (Row("A", "a", (90.0, 80.0)), Row("B", "b", (80.0, 85.0)), Row("C", "c")), ("r", "c")
)


def write_row(folder: Path, key: str, seed: int, xsr: float, sib: float, **scores: float) -> None:
    run = folder / "rows" / f"{key}-{seed}"
    run.mkdir(parents=True)
    result = {
        "scores": {"XSR en→fr": xsr, "SIB en→fr": sib, "SIB en→fr by class": 1.0, **scores},
        "validation": {"p1": 97.0, "loss": 0.25},
        "costs": {"s/1,000 steps": 123.4, "wall s/1,000 steps": 200.0, "peak MiB": 456.7, "waiting %": 1.0},
    }
    (run / "result.json").write_text(json.dumps(result))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_row(tmp_path, "a", 1, 50.0, 30.0)
    write_row(tmp_path, "a", 2, 54.0, 30.0)
    write_row(tmp_path, "b-2", 1, 1.0, 1.0)  # a variant of another group, whose name ends like a seed
    write_row(tmp_path, "b", 1, 60.0, 20.0)
    (tmp_path / "plots").mkdir()
    return tmp_path


def test_values_are_means_and_sample_deviations(folder: Path) -> None:
    numbers = values(GROUP.rows[0], read_results(folder))
    assert numbers["XSR en→fr"] == Value(52.0, pytest.approx(math.sqrt(8)), 2)
    assert numbers["held-out loss"].mean == 0.25 and numbers["peak MiB"].mean == 456.7
    assert values(GROUP.rows[1], read_results(folder))["XSR en→fr"].deviation is None
    assert values(GROUP.rows[2], read_results(folder)) == {}


def test_cells() -> None:
    assert cell(Value(52.04, None, 1), 1) == "52.0" and cell(Value(0.25, None, 1), 3) == "0.250"
    assert cell(Value(52.04, 2.83, 2), 1) == "52.0 ± 2.8" and cell(None, 1) == "–"


def test_a_table_has_our_numbers_and_the_papers(folder: Path) -> None:
    text = section(GROUP, read_results(folder), folder)
    lines = text.splitlines()
    assert lines[0] == "## Toy" and "A note." in lines
    assert "|  | XSR en→fr | SIB en→fr | held-out P@1 | held-out loss | s/1,000 steps | peak MiB | r | c |" in lines
    assert "| A | 52.0 ± 2.8 | 30.0 ± 0.0 | 97.0 ± 0.0 | 0.250 ± 0.000 | 123.4 ± 0.0 | 457 ± 0 | 90.0 | 80.0 |" in lines
    assert "| B | 60.0 | 20.0 | 97.0 | 0.250 | 123.4 | 457 | 80.0 | 85.0 |" in lines
    assert "| C | – | – | – | – | – | – | – | – |" in lines
    assert "- XSR en→fr, ours: B > A\n- r: A > B" in text and "- SIB en→fr, ours: A > B\n- c: B > A" in text
    assert (folder / "plots" / "toy.png").stat().st_size > 1000


def test_measures_of_a_prefix_stand_apart(tmp_path: Path) -> None:
    write_row(tmp_path, "a", 1, 50.0, 30.0, **{"XSR en→fr 8 dimensions": 40.0})
    assert set(values(Row("A", "a", measures="8 dimensions"), read_results(tmp_path))) == {"XSR en→fr"}
    assert values(Row("A", "a", measures="8 dimensions"), read_results(tmp_path))["XSR en→fr"].mean == 40.0


def test_orders_join_equals_and_need_all_rows() -> None:
    assert descending({"a": 1.0, "b": 3.0, "c": 1.0}) == "b > a = c"
    assert orders(GROUP, {"A": {"XSR en→fr": Value(1, None, 1)}, "B": {}, "C": {}}) == []


def test_a_report_without_a_row_is_its_heading(tmp_path: Path) -> None:
    text = write_report(Plan(data="."), tmp_path, "xsent-bench ablation .").read_text()
    assert text.startswith("# Ablation") and "`xsent-bench ablation .`" in text and "##" not in text


def test_markdown() -> None:
    assert markdown_table(["", "x"], [["a|b", "1"]]) == "|  | x |\n| --- | ---: |\n| a\\|b | 1 |"
