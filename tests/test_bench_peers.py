"""Ours beside other systems."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor
from typer.testing import CliRunner

from xsent.bench import grid
from xsent.bench.cli import app
from xsent.bench.peers import comparison, shapes
from xsent.bench.peers.comparison import measure, measure_peers
from xsent.bench.peers.networks import LstmVectors
from xsent.bench.peers.shapes import SHAPES, WRITERS, Shape, fill_vocabulary, write_shape
from xsent.bench.peers.systems import BATCH, SYSTEMS, plain_onnxruntime
from xsent.bench.results import Measurement
from xsent.bench.texts import LENGTHS, sentences
from xsent.bench.turn import Task, Turn
from xsent.bundle import TOKENIZER
from xsent.errors import DataError

SMALL = Shape(2000, 24, 24, 2, 2)


def test_a_system_that_is_not_there_is_named(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no system abacus; there are xsent, bare, "):
        measure_peers(mini_bundle, tmp_path, only=["bare", "abacus"], turns=1, number=20, stream=0, command="")
    assert not any("," in name for name in SYSTEMS)  # --only takes them with commas between
    for system in SYSTEMS.values():
        assert system.form in {"given", "no layers"} or (system.model in SHAPES and system.form in WRITERS)


def fake_turn(task: Task) -> Turn:
    """A turn that costs nothing; of some systems it fails."""
    if task.system == "fastembed":
        raise DataError("ended with -11")
    if task.system == "model2vec":
        raise KeyboardInterrupt
    return Turn(1, 1, latency_ms=1, sentences_per_second=1, peak_mib=1)


def compare(bundle: Path, work: Path, *only: str) -> tuple[Iterator[Measurement], list[str], list[str]]:
    notes, failures = list[str](), list[str]()
    found = measure(bundle, work, only=only, turns=3, number=20, note=notes.append, fail=failures.append)
    return found, notes, failures


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No turn runs and no model is written; LaBSE's cannot be, and a package of LASER2's is not there."""

    def write(name: str, form: str, tokenizer: Path, work: Path) -> Path:
        if name == "LaBSE":
            raise OSError(28, "No space left on device", "model.onnx")
        return tmp_path

    systems = {name: replace(system, needs=()) for name, system in SYSTEMS.items()}
    systems["onnxruntime LASER2"] = replace(SYSTEMS["onnxruntime LASER2"], needs=["sys", "no_such_package.inside"])
    monkeypatch.setattr(grid, "run_turn", fake_turn)
    monkeypatch.setattr(comparison, "write_shape", write)
    monkeypatch.setattr(comparison, "SYSTEMS", systems)
    return tmp_path


def test_what_is_missing_or_crashes_is_a_line(mini_bundle: Path, fake: Path) -> None:
    only = ("onnxruntime LaBSE", "onnxruntime LASER2", "bare", "fastembed", "fastembed one by one")
    found, notes, failures = compare(mini_bundle, fake, *only)
    measured = list(found)
    assert [m.name for m in measured] == [
        "peers system=xsent model=mini",
        "peers system=bare model=none",
        "peers system=fastembed one by one model=all-MiniLM-L6",
    ]
    assert set(measured[1].figures) == {"first_ms", "first_mib", "peak_mib"}
    assert measured[0].turns["latency_ms"] == [1, 1, 1]
    assert notes[2] == "fastembed one by one: int8, batches of 1: the fastest of several where we tried."
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
    network = LstmVectors(SMALL).eval()
    ids = np.arange(1, 10)[None]

    def run(ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        with torch.no_grad():
            return network(torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))).numpy()

    alone = run(ids[:, :5], ids[:, :5] > 0)
    assert alone.shape == (1, 2 * SMALL.width)
    both = run(np.concatenate([ids, ids]), np.concatenate([ids < 6, ids > 0]))
    assert np.allclose(both[:1], alone, atol=1e-6)
    assert np.abs(both[1:] - alone).max() > 1e-4


def test_an_lstm_is_written_in_int8(mini_bundle: Path, tmp_path: Path, small: None) -> None:
    folder = write_shape("small", "lstm", mini_bundle / TOKENIZER, tmp_path)
    vectors = plain_onnxruntime(folder).encode(sentences(BATCH + 3))
    assert vectors.shape == (BATCH + 3, 2 * SMALL.width)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    graph = onnx.load(folder / "onnx" / "model.onnx")
    assert [node.op_type for node in graph.graph.node].count("DynamicQuantizeLSTM") == SMALL.layers


def test_a_bert_is_written_in_int8_with_its_whole_table(mini_bundle: Path, tmp_path: Path, small: None) -> None:
    pytest.importorskip("transformers")
    folder = write_shape("small", "onnx", mini_bundle / TOKENIZER, tmp_path)
    vectors = plain_onnxruntime(folder).encode(sentences(5))
    assert vectors.shape == (5, SMALL.width) and np.isfinite(vectors).all()
    assert SMALL.vocabulary * SMALL.row < (folder / "onnx" / "model.onnx").stat().st_size
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == SMALL.vocabulary


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
    head, _, ours, bare = cells[:4]
    assert head[:2] == ["system", "model"] and len(head) == 7
    assert ours[:2] == ["xsent", "mini"] and all(float(cell.replace(",", "")) > 0 for cell in ours[2:])
    assert bare[:4] == ["bare", "none", "", ""] and all(cell.endswith("×)") for cell in bare[4:])
    assert "- bare: imports what ours imports, and encodes nothing.\n" in result.stdout
    assert "MiB after 1,000 sentences" in result.stdout
    assert re.search(r"A sentence of 32 tokens reaches \d+% of the \d+ GOP/s", result.stdout)
