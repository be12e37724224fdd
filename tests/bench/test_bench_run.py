"""A whole run: its parts, what is kept when one fails or the run is ended, and its command."""

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from bench_toy import write_toy_tests
from made_up_results import made_up_results, read_results
from typer.testing import CliRunner

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, XsentError
from xsent.evaluation.translation import space
from xsent_bench import bundles as bundles_module
from xsent_bench import run as whole
from xsent_bench.cli import app
from xsent_bench.grid import Family, GridPlan
from xsent_bench.quality import measure_quality
from xsent_bench.results import Measurement, Results
from xsent_bench.run import CUT_SHORT, Part, measure_parts, parts

FOUND = made_up_results().measurements[:4]
TINY = GridPlan([Family("int8", "onnx", turns=1, stream=0)], lengths=(8,), seconds=0.01, training=())


def found(count: int, error: BaseException | None = None) -> Part:
    """A part that measures so much and then fails, if it does."""

    def part() -> Iterator[Measurement]:
        yield from FOUND[:count]
        if error:
            raise error

    return part


def test_everything_is_on_the_disk_before_the_next_is_measured(tmp_path: Path) -> None:
    def part() -> Iterator[Measurement]:
        for number, measurement in enumerate(FOUND):
            if number:
                assert read_results(tmp_path / "results.json").measurements == FOUND[:number]
            yield measurement

    report = measure_parts(Results("xsent-bench"), [("grid", part)], tmp_path)
    assert report == tmp_path / "report.md"
    results = read_results(tmp_path / "results.json")
    assert results.measurements == FOUND and results.command == "xsent-bench"
    assert results.environment["processor"] and "meanwhile" in results.environment


@pytest.mark.parametrize("error", [XsentError("no room"), ImportError("no room"), OSError("no room")])
def test_a_part_that_fails_is_a_line_and_the_rest_goes_on(tmp_path: Path, error: Exception) -> None:
    text = measure_parts(Results(""), [("grid", found(1, error)), ("peers", found(2))], tmp_path).read_text()
    assert "- grid: no room" in text and len(read_results(tmp_path / "results.json").measurements) == 3
    with pytest.raises(DataError, match="nothing could be measured; grid: no room"):
        measure_parts(Results(""), [("grid", found(0, error))], tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_whatever_ends_a_run_leaves_a_report_of_what_there_is(tmp_path: Path, error: BaseException) -> None:
    never = mock.Mock()
    with pytest.raises(type(error)):
        measure_parts(Results(""), [("grid", found(2, error)), ("peers", never)], tmp_path)
    never.assert_not_called()
    results = read_results(tmp_path / "results.json")
    assert results.measurements == FOUND[:2]
    assert results.notes[0] == CUT_SHORT + (" RuntimeError: a bug" if isinstance(error, RuntimeError) else "")
    assert results.environment["minutes"] == {}
    assert "## Latency" in (report := (tmp_path / "report.md").read_text()) and CUT_SHORT in report


def test_the_parts_are_those_that_are_chosen(mini_bundle: Path, tmp_path: Path) -> None:
    everything = parts(Results(""), tmp_path, False, [], None, True)
    assert [name for name, _ in everything] == ["grid", "share of the peaks", "training", "peers"]
    (tmp_path / "tatoeba").mkdir()
    quick = parts(Results(""), tmp_path, True, [], tmp_path, False)
    assert [name for name, _ in quick] == ["grid", "share of the peaks", "quality"]
    with pytest.raises(DataError, match="both are 2 layers in int8; give one"):
        parts(Results(""), tmp_path / "work", True, [mini_bundle, mini_bundle], None, False)
    assert not (tmp_path / "work").exists()


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")  # the toy's words are not the tokenizer's
def test_quality_stands_beside_cost_and_a_test_that_fails_is_a_line(
    mini_bundle: Path, deep_bundle: Path, tmp_path: Path
) -> None:
    write_toy_tests(tmp_path)
    failures: list[str] = []
    (measured,) = measure_quality([mini_bundle], tmp_path, failures.append)
    name = mini_bundle.name
    assert measured.axes == {"bundle": name, "layers": 2, "precision": "int8", "languages": "en,fr,de"}
    assert measured.figures["bytes"] == sum(file.stat().st_size for file in mini_bundle.rglob("*") if file.is_file())
    assert all(0 <= measured.figures[test] <= 100 for test in ("tatoeba", "sib")) and "sts" in measured.figures
    assert measured.figures["p50_ms"] > 0 and not failures
    (tmp_path / "sib200" / "en" / "train.tsv").unlink()
    (tmp_path / "stsb" / "fr-test.csv").write_text("")
    (measured,) = measure_quality([mini_bundle], tmp_path, failures.append)
    assert "tatoeba" in measured.figures and not {"sib", "sts"} & measured.figures.keys()
    assert [line.partition(":")[0] for line in failures] == [f"{test} of {name}, 2 layers" for test in ("sib", "sts")]
    each = list(measure_quality([deep_bundle], tmp_path, failures.append))
    assert [(m.axes["bundle"], m.axes["layers"]) for m in each] == [(deep_bundle.name, depth) for depth in (0, 1, 2)]
    across = [m.figures.get("across") for m in each]
    whole, shallow = SentenceEncoder(deep_bundle), SentenceEncoder(deep_bundle, layers=0)
    expected = space(shallow, tmp_path / "tatoeba", english_by=whole).mean["xx_en"]
    assert across[0] == pytest.approx(expected) and across[1] is not None and across[2] is None  # itself
    assert each[0].figures["bytes"] < each[1].figures["bytes"] < each[2].figures["bytes"]


def test_the_command_measures_and_says_where_the_report_is(
    mini_bundle: Path, deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "report"
    command = ["--quick", "--no-peers", "--bundle", str(deep_bundle), "--out", str(out), "--work", str(tmp_path / "w")]
    monkeypatch.setattr(bundles_module, "builtin_path", lambda: mini_bundle)
    monkeypatch.setattr(whole, "quick_plan", lambda: TINY)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out / "report.md")
    results = read_results(out / "results.json")
    groups = ["size"] * 3 + ["latency", "start"] * 3 + ["share"]
    assert [m.group for m in results.measurements] == groups and not results.failures
    assert [m.axes["layers"] for m in results.measurements] == [0, 1, 2, 0, 0, 1, 1, 2, 2, 2]
    assert any(note.startswith("0, 1, 2 layers in int8: mini") for note in results.notes)

    again = CliRunner().invoke(app, command)
    assert again.exit_code == 1 and "there is a report; name another --out, or replace it with --force" in again.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bundle", "nowhere"], "nowhere: no such folder"),
        (["--eval", "nowhere"], "nowhere: no test set"),
        (["training", "--layers", "x"], "whole numbers"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_measured(tmp_path: Path, options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, [*options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 1 and result.stderr.startswith("Error: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and not (tmp_path / "out").exists()


def test_every_command_has_an_example() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0 and "Example: xsent-bench --quick" in shown.stdout
    assert {"ablation", "training", "documents", "peers", "finding"} <= set(shown.stdout.split())
    for command in app.registered_commands:
        assert command.epilog and command.epilog.startswith("Example: xsent-bench ")
