"""Ours beside other systems."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor
from typer.testing import CliRunner

from xsent.bench.cli import app
from xsent.bench.peers import race, report, shapes
from xsent.bench.peers.entries import ENTRIES, Entry
from xsent.bench.peers.lstm import LstmGraph
from xsent.bench.peers.peak import operations
from xsent.bench.peers.race import Result, run_child
from xsent.bench.peers.report import _stream, measure, measure_peers, rows
from xsent.bench.peers.shapes import SHAPES, WRITERS, Shape, write_shape
from xsent.bench.peers.systems import BATCH, SYSTEMS, plain_onnxruntime
from xsent.bench.peers.texts import LENGTHS, mixed, sentences
from xsent.bench.peers.vocabulary import fill_vocabulary
from xsent.bench.results import Measurement
from xsent.bundle import TOKENIZER
from xsent.errors import DataError

SMALL = Shape(2000, 24, 24, 2, 2)


def turn(rate: float, ms: float, mib: float = 10.0) -> dict[str, float]:
    return {"sentences_per_second": rate, "latency_ms": ms, "first_ms": ms, "first_mib": mib, "peak_mib": mib}


def measurement(system: str, *turns: Mapping[str, float]) -> Measurement:
    return Result(list(turns)).measurement({"system": system, "model": "m"})


def test_figures_are_medians_of_turns() -> None:
    found = measurement("onnxruntime", turn(10, 5), turn(50, 8), turn(30, 6))
    assert found.name == "peers system=onnxruntime model=m"
    assert found.figures["sentences_per_second"] == 30 and found.figures["latency_ms"] == 6
    assert found.turns["latency_ms"] == [5, 8, 6]
    assert set(measurement("bare", turn(1, 1)).figures) == {"first_ms", "first_mib", "peak_mib"}


def test_ratios_are_medians_of_turns() -> None:
    ours = measurement("xsent", turn(100, 1), turn(200, 2), turn(300, 3))
    theirs = measurement("other", turn(10, 5), turn(50, 8), turn(30, 6))
    table = rows([ours, measurement("bare", turn(1, 1, 5.0)), theirs])
    assert table[0] == ["xsent", "m", "200", "2.00", "2", "10", "10"]
    assert table[1] == ["bare", "m", "", "", "1 (1.00 ×)", "5 (0.50 ×)", "5 (0.50 ×)"]
    # 100 / 10, 200 / 50, 300 / 30 sentences a second; 5 / 1, 8 / 2, 6 / 3 ms.
    assert table[2][2:4] == ["30 (10.00 ×)", "6.00 (4.00 ×)"]


def test_a_system_runs_in_a_process_of_its_own(mini_bundle: Path) -> None:
    facts, points = run_child("xsent", mini_bundle, number=20, stream=3000)
    assert set(facts) >= {"first_ms", "first_mib", "latency_ms", "sentences_per_second", "peak_mib"}
    assert [point["after"] for point in points] == [1000, 2000, 3000]
    assert 0 < facts["first_mib"] <= facts["peak_mib"]


def test_a_system_that_fails_is_left_out(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^xsent: .*BundleError.*nowhere: no such folder"):
        run_child("xsent", tmp_path / "nowhere", number=20)
    results = {"xsent": Result(), "onnxruntime": Result()}
    race.race({"xsent": mini_bundle, "onnxruntime": tmp_path}, results, turns=2, number=20)
    assert len(results["xsent"].turns) == 2
    assert not results["onnxruntime"].turns and results["onnxruntime"].failure.startswith("onnxruntime: ")


def test_a_system_that_is_not_there_is_named(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no system abacus; there are xsent, bare, "):
        measure_peers(mini_bundle, tmp_path, only=["bare", "abacus"], turns=1, number=20, stream=0, command="")
    assert not any("," in name for name in ENTRIES)  # --only takes them with commas between


def fake_turn(name: str, folder: Path, *, number: int, stream: int = 0) -> tuple[dict[str, float], list[race.Facts]]:
    """A turn that costs nothing; of some systems it fails."""
    if name == "fastembed":
        raise DataError("fastembed: ended with -11")
    if name == "model2vec":
        raise KeyboardInterrupt
    return turn(1, 1), []


def compare(bundle: Path, work: Path, *only: str) -> tuple[Iterator[Measurement], list[str], list[str]]:
    notes: list[str] = []
    failures: list[str] = []
    return (
        measure(bundle, work, only=only, turns=3, number=20, note=notes.append, fail=failures.append),
        notes,
        failures,
    )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No turn runs and no model is written; LaBSE's cannot be, and a package of LASER2's is not there."""

    def write(name: str, form: str, tokenizer: Path, work: Path) -> Path:
        if name == "LaBSE":
            raise OSError(28, "No space left on device", "model.onnx")
        return tmp_path

    entries = {
        **{name: Entry(e.system, e.form, e.model, e.settings) for name, e in ENTRIES.items()},
        "onnxruntime LASER2": Entry("onnxruntime", "lstm", "LASER2", "", ["sys", "no_such_package.inside"]),
    }
    monkeypatch.setattr(race, "run_child", fake_turn)
    monkeypatch.setattr(report, "write_shape", write)
    monkeypatch.setattr(report, "ENTRIES", entries)
    return tmp_path


def test_what_is_missing_or_crashes_is_a_line(mini_bundle: Path, fake: Path) -> None:
    only = ("onnxruntime LaBSE", "onnxruntime LASER2", "fastembed", "fastembed one by one")
    measured, notes, failures = compare(mini_bundle, fake, *only)
    assert [m.name for m in measured] == [
        "peers system=xsent model=mini",
        "peers system=fastembed one by one model=all-MiniLM-L6",
    ]
    assert notes[1] == "fastembed one by one: int8, batches of 1: the fastest of several where we tried."
    assert failures == [
        "onnxruntime LaBSE: OSError: [Errno 28] No space left on device: 'model.onnx'",
        "onnxruntime LASER2: no_such_package.inside is not installed; pip install 'xsent[peers]'",
        "fastembed: ended with -11",
    ]


def test_ctrl_c_keeps_what_was_measured(mini_bundle: Path, fake: Path) -> None:
    measured, _, _ = compare(mini_bundle, fake, "bare", "model2vec")
    assert [next(measured).axes["system"], next(measured).axes["system"]] == ["xsent", "bare"]
    with pytest.raises(KeyboardInterrupt):
        next(measured)


def test_ours_must_run(mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str, *_: object, **__: object) -> None:
        raise DataError(f"{name}: no memory")

    monkeypatch.setattr(race, "run_child", failing)
    with pytest.raises(DataError, match=r"^xsent: no memory"):
        measure_peers(mini_bundle, tmp_path, only=["bare"], turns=1, number=20, stream=0, command="")


def test_every_row_has_a_system_and_a_model() -> None:
    for entry in ENTRIES.values():
        assert entry.system in SYSTEMS
        assert entry.form in {"given", "no layers"} or (entry.model in SHAPES and entry.form in WRITERS)
    others = {entry.system for entry in ENTRIES.values() if entry.model}
    assert len(others) >= 6
    assert all(word in " ".join(ENTRIES) for word in ("torch", "ONNX", "OpenVINO", "LaBSE", "LASER2", "model2vec"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "small", SMALL)


def test_a_model_is_written_whole_or_not_at_all(
    mini_bundle: Path, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(shape: Shape, folder: Path) -> None:
        (folder / "half").touch()
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(shapes, "WRITERS", {"static": failing})
        with pytest.raises(MemoryError):
            write_shape("small", "static", mini_bundle / TOKENIZER, tmp_path)
    assert not list(tmp_path.iterdir())
    folder = write_shape("small", "static", mini_bundle / TOKENIZER, tmp_path)
    assert folder == tmp_path / "small-static" == next(tmp_path.iterdir())
    written = (folder / "model.safetensors").stat()
    assert written.st_size > 4 * SMALL.vocabulary * SMALL.row
    assert len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) == SMALL.vocabulary
    write_shape("small", "static", mini_bundle / TOKENIZER, tmp_path)
    assert (folder / "model.safetensors").stat().st_mtime_ns == written.st_mtime_ns  # used again


def test_padding_moves_nothing_in_an_lstm() -> None:
    session = onnxruntime.InferenceSession(LstmGraph(SMALL).model().SerializeToString())
    ids = np.arange(1, 10)[None]

    def run(ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        (vectors,) = session.run(None, {"input_ids": ids, "attention_mask": mask.astype(np.int64)})
        return np.asarray(vectors, np.float32)

    alone = run(ids[:, :5], ids[:, :5] > 0)
    assert alone.shape == (1, 2 * SMALL.width)
    both = run(np.concatenate([ids, ids]), np.concatenate([ids < 6, ids > 0]))
    assert np.allclose(both[:1], alone, atol=1e-6)
    assert np.abs(both[1:] - alone).max() > 1e-4


def test_an_lstm_is_written_in_int8(mini_bundle: Path, tmp_path: Path, small: None) -> None:
    folder = write_shape("small", "lstm", mini_bundle / TOKENIZER, tmp_path)
    vectors = plain_onnxruntime(folder)(sentences(BATCH + 3))
    assert vectors.shape == (BATCH + 3, 2 * SMALL.width)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    graph = onnx.load(folder / "onnx" / "model.onnx")
    assert [node.op_type for node in graph.graph.node].count("DynamicQuantizeLSTM") == SMALL.layers


def test_a_bert_is_written_in_int8_with_its_whole_table(mini_bundle: Path, tmp_path: Path, small: None) -> None:
    pytest.importorskip("transformers")
    folder = write_shape("small", "onnx", mini_bundle / TOKENIZER, tmp_path)
    vectors = plain_onnxruntime(folder)(sentences(5))
    assert vectors.shape == (5, SMALL.width) and np.isfinite(vectors).all()
    assert SMALL.vocabulary * SMALL.row < (folder / "onnx" / "model.onnx").stat().st_size
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == SMALL.vocabulary


def test_the_slope_is_of_the_second_half() -> None:
    points = [{"after": 1000.0 * i, "mib": 50.0 + max(0, 5 - i)} for i in range(1, 11)]
    assert "+0.00 MiB per 10,000 over the second half" in _stream("xsent", points)
    rising = [{"after": 1000.0 * i, "mib": float(i)} for i in range(1, 11)]
    assert "MiB 1.0 after 1,000, 6.0 after 6,000, 10.0 after 10,000; +10.00 MiB" in _stream("xsent", rising)


def test_arithmetic_by_hand(mini_bundle: Path) -> None:
    # Two layers of 32 x (96 + 32 + 64) + 64 x 32 weights, and attention of 7 x 7 x 32, twice: 5 tokens between two.
    assert operations(mini_bundle, 5) == 2 * 7 * 2 * (32 * 96 + 32 * 32 + 32 * 64 + 64 * 32) + 2 * 4 * 49 * 32


def test_texts_are_many_and_different() -> None:
    assert len(set(sentences(5000))) == 5000
    lengths = [len(text) for text in mixed(500)]
    assert min(lengths) < 30 and max(lengths) > 250


def test_a_filled_vocabulary_is_larger_and_cuts_alike(mini_bundle: Path, tmp_path: Path) -> None:
    ours = SentencePieceProcessor(model_file=str(mini_bundle / TOKENIZER))
    fill_vocabulary(mini_bundle / TOKENIZER, 30_000, tmp_path / "filled.model")
    filled = SentencePieceProcessor(model_file=str(tmp_path / "filled.model"))
    assert len(filled) == 30_000 > len(ours)
    texts = sentences(100)
    assert filled.encode(texts) == ours.encode(texts)


def test_sentences_are_as_long_as_real_ones() -> None:
    words = [len(text.split()) - 1 for text in sentences(400)]
    assert sorted(words[:20]) == sorted(LENGTHS)
    assert np.corrcoef(words[:-1], words[1:])[0, 1] < 0.1  # no system gets them sorted


def test_the_command_prints_the_comparison(mini_bundle: Path, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path), "--only", "bare", "--turns", "1", "--sentences", "20", "--stream", "1000"]
    result = CliRunner().invoke(app, ["peers", str(mini_bundle), *options])
    assert result.exit_code == 0, result.output
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line[:1] == "|"]
    head, _, ours, bare = cells
    assert head[:2] == ["system", "model"] and len(head) == 7
    assert ours[:2] == ["xsent", "mini"] and all(float(cell.replace(",", "")) > 0 for cell in ours[2:])
    assert bare[:4] == ["bare", "none", "", ""] and all(cell.endswith("×)") for cell in bare[4:])
    assert "- bare: imports what ours imports, and encodes nothing.\n" in result.stdout
    assert "xsent, sentences of 5 to 100 tokens: MiB " in result.stdout
    assert re.search(r"A sentence of 32 tokens reaches \d+% of the \d+ GOP/s", result.stdout)
