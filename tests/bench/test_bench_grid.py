"""The grid: what is measured and how it is summed up, never how fast this machine is."""

import io
import json
from contextlib import redirect_stdout
from itertools import cycle, islice
from pathlib import Path
from unittest import mock

import pytest

from xsent.bundle import Bundle, builtin_path
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, MissingExtraError
from xsent_bench import bundles as bundles_module
from xsent_bench import grid, processes, turn
from xsent_bench.bundles import OPENVINO, Bundles, at_each_depth, trained
from xsent_bench.experiments import roofline as peak
from xsent_bench.grid import Family, GridPlan, latencies, measure_grid, memory_of, size
from xsent_bench.texts import mixed, texts_of
from xsent_bench.turn import Task, Turn, run_turn
from xsent_export.export import export
from xsent_export.options import ExportOptions

# The miniature model takes 64 tokens, fewer than many of the texts have.
pytestmark = pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")

AXES: dict[str, str | int | float] = {"layers": 2, "precision": "int8", "backend": "onnx"}


def test_percentiles_are_over_all_turns_and_rates_the_median_turns() -> None:
    parts = [[float(ms) for ms in range(1, 61)], [float(ms) for ms in range(61, 101)]]
    turns = [Turn(10, 50, {8: parts[0]}, {8: 100.0}), Turn(30, 54, {8: parts[1]}, {8: 300.0})]
    (found,) = latencies({**AXES, "threads": 1}, turns)
    assert str(found) == "latency layers=2 precision=int8 backend=onnx threads=1 tokens=8"
    assert found.figures["p50_ms"] == 50.5 and found.turns["p50_ms"] == [30.5, 80.5]
    assert found.figures["p95_ms"] == pytest.approx(95.05) and found.figures["p99_ms"] == pytest.approx(99.01)
    assert found.figures["sentences_per_second"] == 200 and found.turns["tokens_per_second"] == [800, 2400]
    (few,) = latencies({**AXES, "threads": 1}, turns[1:])  # 40 sentences have no 99th percentile
    assert {"p50_ms", "p95_ms"} < few.figures.keys() and "p99_ms" not in few.figures


def test_the_slope_of_memory_is_of_the_second_half() -> None:
    points = {10_000 * n: 60.0 + max(0, n - 5) * 2 for n in range(1, 11)}  # 2 MiB more each 10,000 after the half
    found = memory_of(AXES, Turn(first_mib=50, memory={1000: 55, **points}, peak_mib=71)).figures
    assert found == {"mib_1": 50, "mib_1000": 55, "mib_100000": 70, "slope_mib": pytest.approx(2), "peak_mib": 71}
    short = memory_of(AXES, Turn(first_mib=50, memory={1000: 60, 5000: 65}, peak_mib=66)).figures
    assert short == {"mib_1": 50, "mib_1000": 60, "mib_5000": 65, "peak_mib": 66}  # still reads rows for the first time


def test_texts_have_exactly_so_many_tokens(mini_bundle: Path) -> None:
    count = SentenceEncoder(mini_bundle).count_tokens
    for tokens in (5, 8, 64):
        assert set(map(count, texts_of(tokens, count, mixed(1000)))) == {tokens}
    with pytest.raises(ValueError, match="no text of 3 tokens was found"):
        texts_of(3, lambda text: 2 * len(text), cycle(["abc"]))


def test_a_process_says_all_figures(mini_bundle: Path) -> None:
    found = run_turn(Task(str(mini_bundle), lengths=(8, 128), seconds=0.01, sentences=20, stream=2500))
    assert found.first_ms > 0 and 0 < found.first_mib <= found.peak_mib
    assert list(found.ms) == list(found.rates) == [8]  # the bundle takes 64
    assert len(found.ms[8]) >= turn.FEWEST and min(found.ms[8]) > 0
    assert found.latency_ms > 0 and found.sentences_per_second > 0
    assert list(found.memory) == [1000, 2000, 2500]
    with pytest.raises(DataError, match=r"BundleError: .*nowhere: no such folder"):
        run_turn(Task("nowhere"))
    with pytest.raises(DataError, match=r"has depth 2 alone; layers=0 is not among them"):
        run_turn(Task(str(mini_bundle), "xsent 0 layers"))


def test_a_machine_without_proc_is_measured(mini_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "process_memory", lambda field: 0.0)
    with redirect_stdout(io.StringIO()) as said:
        turn.take_turn(Task(str(mini_bundle), stream=1000))
    first, after, most = (json.loads(line) for line in said.getvalue().splitlines())
    assert first["first_mib"] > 10 and most["peak_mib"] >= max(first["first_mib"], after["mib"])


def turns_of(monkeypatch: pytest.MonkeyPatch, outcomes: list[object]) -> list[Task]:
    """Replace the processes by what is given; gives the tasks that were asked for."""
    tasks: list[Task] = []
    run = mock.Mock(side_effect=outcomes)
    monkeypatch.setattr(grid, "run_turn", lambda task: (tasks.append(task), run())[1])
    return tasks


TURN = Turn(10, 50, {8: [1.0]}, {8: 100.0}, memory={1000: 60.0}, peak_mib=61)


def test_encoders_take_turns_and_one_that_fails_is_left_out(deep_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = turns_of(monkeypatch, [TURN, TURN, TURN, DataError("out of memory"), TURN, TURN])
    failures: list[str] = []
    bundles = {depth: Bundle.open(deep_bundle, depth) for depth in (1, 2)}
    found = list(Family("int8", "onnx", turns=2).measure(bundles, [8], 1, failures.append))
    assert [task.settings["layers"] for task in tasks] == [1, 2, 1, 2, 1, 1]
    assert {task.folder for task in tasks} == {str(deep_bundle)}
    assert [task.seconds for task in tasks] == [0, 0, 1, 1, 1, 1]  # the first turns only read the files
    assert [task.stream for task in tasks] == [0, 0, 0, 0, 0, 1000]
    assert failures == ["2 layers, int8, onnx, threads 1: out of memory"]
    assert [(m.group, m.axes["layers"]) for m in found] == [("latency", 1), ("start", 1), ("memory", 1)]
    assert found[0].turns["p50_ms"] == [1.0, 1.0]
    turns_of(monkeypatch, [TURN, TURN, TURN, TURN, KeyboardInterrupt()])
    measured = Family("int8", "onnx").measure(bundles, [8], 1, print)  # Ctrl-C keeps what there is
    assert [(m.group, m.axes["layers"]) for m in islice(measured, 3)] == [("latency", 1), ("start", 1), ("latency", 2)]
    with pytest.raises(KeyboardInterrupt):
        list(measured)


def test_another_precision_is_made_once_of_the_bundle_and_has_its_depths(deep_bundle: Path, tmp_path: Path) -> None:
    given = {(bundle.layers, bundle.precision): bundle for bundle in at_each_depth(deep_bundle)}
    bundles, whole = Bundles(tmp_path, given), Bundle.open(deep_bundle)
    assert bundles.depths == [0, 1, 2] and bundles.open(1, "int8") is given[1, "int8"]
    for precision in ("int4-table", "float32"):
        made = bundles.open(1, precision)
        assert (made.layers, made.depths, made.precision, made.name) == (1, whole.depths, precision, whole.name)
    exact, text = bundles.open(1, "float32"), "Anna, Boris and Clara."
    vectors = [SentenceEncoder(path, layers=1).encode(text) for path in (exact.path, deep_bundle)]
    assert vectors[0] @ vectors[1] > 0.999  # the same layers
    before = (exact.path / "xsent.json").stat().st_mtime_ns
    assert bundles.open(2, "float32").path == exact.path
    assert (exact.path / "xsent.json").stat().st_mtime_ns == before
    (exact.path / "xsent.json").write_text("{")  # damaged: made again
    assert bundles.open(0, "float32").fingerprint == exact.fingerprint


def test_openvino_has_a_bundle_of_each_depth(deep_bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    given = {(bundle.layers, bundle.precision): bundle for bundle in at_each_depth(deep_bundle)}
    made = Bundles(tmp_path, given).open(1, "int8", openvino=True)
    assert (made.layers, made.num_layers) == (1, 1) and OPENVINO in made.files
    again = Bundles(tmp_path, {(1, "int8"): made}).open(1, "int8", openvino=True)
    assert again is made  # it has the files


def test_given_bundles_are_measured_at_each_depth(deep_bundle: Path, mini_bundle: Path) -> None:
    notes: list[str] = []
    builtin = Bundle.open(builtin_path())
    given = trained([deep_bundle], notes.append)
    assert {kind for kind, bundle in given.items() if bundle.path == deep_bundle} == {(n, "int8") for n in (0, 1, 2)}
    assert given[builtin.num_layers, builtin.precision].path == builtin_path()
    assert notes[0].startswith("0, 1, 2 layers in int8: mini, ") and builtin.name in notes[1] and len(notes) == 3
    assert "All layers are trained" in notes[2]
    with pytest.raises(DataError, match=f"{mini_bundle} and {deep_bundle}: both are 2 layers in int8; give one"):
        trained([deep_bundle, mini_bundle])


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_size_of_a_depth_is_that_of_its_export(
    depth: int, deep_bundle: Path, deep_checkpoint: Path, tmp_path: Path
) -> None:
    figures = size(Bundle.open(deep_bundle, depth)).figures
    options = ExportOptions(num_layers=depth, gate_data=deep_checkpoint / "validation.tsv", tolerance=20)
    part = size(Bundle.open(export(deep_bundle, tmp_path / "part", options).path)).figures
    assert figures.keys() == part.keys() and "model.onnx_bytes" in part and "model.0.onnx_bytes" not in part
    for name in ("weights.bin_bytes", "embeddings.bin_bytes", "sentencepiece.model_bytes"):
        assert figures[name] == part[name]
    assert figures["model.onnx_bytes"] == pytest.approx(part["model.onnx_bytes"], rel=0.01)
    if depth == 2:
        assert figures["bytes"] == sum(file.stat().st_size for file in deep_bundle.iterdir())


def test_what_cannot_be_made_is_told_and_the_rest_goes_on(
    deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(source: Bundle, precision: str, path: Path, openvino: int | None) -> None:
        raise OSError(28, "No space left", str(path)) if openvino is None else MissingExtraError("openvino is missing")

    monkeypatch.setattr(bundles_module, "write_as", write)
    turns_of(monkeypatch, [TURN] * 9)
    failures: list[str] = []
    families = [Family("int8", "openvino"), Family("float32", "onnx", deepest=True), Family("int8", "onnx", turns=1)]
    given = {(depth, "int8"): Bundle.open(deep_bundle, depth) for depth in (1, 2)}
    found = list(measure_grid(GridPlan(families), Bundles(tmp_path, given), failures.append))
    groups = ["size", "size", "latency", "start", "latency", "start", "memory", "memory"]
    assert [(m.group, m.axes["layers"]) for m in found] == [*zip(groups, (1, 2, 1, 1, 2, 2, 1, 2), strict=True)]
    assert failures[0] == "int8, openvino: openvino is missing"  # once, not for every depth
    assert failures[1].startswith("2 layers, float32, onnx, threads 1: ") and "No space left" in failures[1]
    assert len(failures) == 2


def test_the_deepest_is_measured_beside_those_that_are_given(deep_bundle: Path, tmp_path: Path) -> None:
    kinds = [(0, "int8"), (1, "float32"), (2, "int8")]
    bundles = Bundles(tmp_path, {(n, precision): Bundle.open(deep_bundle, n) for n, precision in kinds})
    families = [Family("int8", "onnx"), *(Family("float32", backend, deepest=True) for backend in ("onnx", "numpy"))]
    assert [family.layers(bundles) for family in families] == [[0, 1, 2], [1, 2], [2]]


def test_a_peak_share_by_hand(mini_bundle: Path, deep_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two layers of 32 x (96 + 32 + 64) + 64 x 32 weights, and attention of 7 x 7 x 32, twice: 5 tokens between two.
    whole = 2 * 7 * 2 * (32 * 96 + 32 * 32 + 32 * 64 + 64 * 32) + 2 * 4 * 49 * 32
    mini = Bundle.open(mini_bundle)
    assert [peak.operations(Bundle.open(deep_bundle, n), 5) for n in (0, 1, 2)] == [0, whole / 2, whole]
    monkeypatch.setattr(peak, "time_each", lambda run, inputs, least: [0.5])
    assert peak.share_of_peak(mini, lambda: 64_000.0, 5) == pytest.approx(whole / 0.5 / 64_000)

    monkeypatch.undo()
    assert peak.float_peak(rounds=1) > 0 and peak.bandwidth(numbers=1000, rounds=1) > 0
    for name, value in (("int8_peak", 1e12), ("float_peak", 1e12), ("bandwidth", 7.0)):
        monkeypatch.setattr(peak, name, lambda value=value: value)
    found = peak.shares(mini, mini)
    assert list(found) == ["tokenisation", "int8_peak", "float_peak", "gib_per_second"]
    assert 0 < found["tokenisation"] < 1 and 0 < found["int8_peak"] < 1 and found["gib_per_second"] == 7
