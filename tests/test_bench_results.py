"""The form of a run's results."""

from pathlib import Path

import pytest

from xsent.bench.results import Measurement, Results
from xsent.errors import DataError


def results() -> Results:
    fast = Measurement("latency", {"layers": 2, "tokens": 32}, {"p50_ms": 1.5}, {"p50_ms": [1.4, 1.6]})
    slow = Measurement("latency", {"layers": 6, "tokens": 32}, {"p50_ms": 4.5})
    return Results("xsent-bench", {"processor": "x"}, [fast, slow, Measurement("size", {"layers": 2}, {"bytes": 9})])


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    results().write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results()
    assert results().measurements[0].name == "latency layers=2 tokens=32"


def test_measurements_are_found_by_their_axes() -> None:
    assert [m.figures["p50_ms"] for m in results().of("latency", tokens=32)] == [1.5, 4.5]
    assert [m.figures["p50_ms"] for m in results().of("latency", layers=6)] == [4.5]
    assert results().of("latency", layers=9) == []


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
