"""Other systems and ours in turns: what is measured, what fails, and the models that are made."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor
from typer.testing import CliRunner

from xsent.bundle import TOKENIZER
from xsent.errors import DataError
from xsent_bench import peers, systems
from xsent_bench.cli import app
from xsent_bench.peers import measure_peers, pad_vocabulary, write_model
from xsent_bench.results import Measurement
from xsent_bench.systems import BATCH, MINILM, SYSTEMS, Task, Turn, plain_onnxruntime, sentence_transformers
from xsent_bench.texts import sentences


def test_a_system_that_is_not_there_is_named(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no system abacus; there are xsent, bare, "):
        next(compare(mini_bundle, tmp_path, "bare", "abacus")[0])
    assert not any("," in name for name in SYSTEMS)  # --only takes them with commas between


def fake_turn(task: Task) -> Turn:
    """A turn that costs nothing; of some systems it fails."""
    if task.system == "fastembed":
        raise DataError("ended with -11")
    if task.system == "model2vec":
        raise KeyboardInterrupt
    return Turn(1, 1, latency_ms=1, sentences_per_second=1, peak_mib=1)


def compare(bundle: Path, work: Path, *only: str) -> tuple[Iterator[Measurement], list[str], list[str]]:
    notes, failures = list[str](), list[str]()
    found = measure_peers(bundle, work, only=only, turns=3, number=20, note=notes.append, fail=failures.append)
    return found, notes, failures


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No turn runs and no model is written; MiniLM's cannot be, and a package of plain onnxruntime is not there."""

    def write(name: str, tokenizer: Path, work: Path) -> Path:
        if name == MINILM:
            raise OSError(28, "No space left on device", "model.onnx")
        return tmp_path

    without_needs = {name: replace(system, needs=()) for name, system in SYSTEMS.items()}
    without_needs["onnxruntime"] = replace(SYSTEMS["onnxruntime"], needs=["numpy", "no-such-package"])
    monkeypatch.setattr(systems, "run_turn", fake_turn)
    monkeypatch.setattr(peers, "write_model", write)
    monkeypatch.setattr(peers, "SYSTEMS", without_needs)
    return tmp_path


def test_what_is_missing_or_crashes_is_a_line(mini_bundle: Path, fake: Path) -> None:
    only = ("onnxruntime", "sentence-transformers torch", "bare", "fastembed", "fastembed one by one")
    found, notes, failures = compare(mini_bundle, fake, *only)
    measured = list(found)
    assert [*map(str, measured)] == [
        "peers system=xsent model=mini",
        "peers system=bare model=none",
        "peers system=fastembed one by one model=all-MiniLM-L6",
    ]
    assert set(measured[1].figures) == {"first_ms", "first_mib", "peak_mib"}
    assert measured[0].turns["latency_ms"] == [1, 1, 1]
    assert notes[2] == "peer fastembed one by one: int8, batches of 1: the fastest of several where we tried."
    assert failures == [
        "onnxruntime: no-such-package is not installed; pip install 'xsent[peers]'",
        "sentence-transformers torch: OSError: [Errno 28] No space left on device: 'model.onnx'",
        "fastembed: ended with -11",
    ]


def test_ctrl_c_keeps_what_was_measured(mini_bundle: Path, fake: Path) -> None:
    measured, _, _ = compare(mini_bundle, fake, "bare", "model2vec")
    assert [next(measured).axes["system"], next(measured).axes["system"]] == ["xsent", "bare"]
    with pytest.raises(KeyboardInterrupt):
        next(measured)


def test_models_are_written_whole_or_not_at_all_and_run(
    mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    tokenizer, pieces = mini_bundle / TOKENIZER, 2000
    monkeypatch.setattr(peers, "SHAPES", {"static": (pieces, 24, 0), "bert": (pieces, 24, 2)})
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(peers, "write_static", mock.Mock(side_effect=MemoryError))
        write_model("static", tokenizer, tmp_path)
    assert not list(tmp_path.iterdir())
    folder = write_model("static", tokenizer, tmp_path)
    assert folder == tmp_path / "static" == next(tmp_path.iterdir())
    written = (folder / "model.safetensors").stat()
    assert written.st_size > 4 * pieces * 24
    assert len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) == pieces
    write_model("static", tokenizer, tmp_path)
    assert (folder / "model.safetensors").stat().st_mtime_ns == written.st_mtime_ns  # used again
    folder, texts = write_model("bert", tokenizer, tmp_path), sentences(BATCH + 3)
    vectors = plain_onnxruntime(folder).encode(texts)
    assert vectors.shape == (len(texts), 24) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert pieces * 24 < (folder / "onnx" / "model.onnx").stat().st_size < (folder / "model.safetensors").stat().st_size
    pytest.importorskip("sentence_transformers")
    theirs = sentence_transformers(folder, "torch").encode(texts)
    assert theirs.shape == vectors.shape and (theirs * vectors).sum(axis=1).min() > 0.9  # one in float32, one in int8


def test_a_padded_vocabulary_is_larger_and_tokenises_alike(mini_bundle: Path, tmp_path: Path) -> None:
    ours = SentencePieceProcessor(model_file=str(mini_bundle / TOKENIZER))
    pad_vocabulary(mini_bundle / TOKENIZER, 30_000, tmp_path / "padded.model")
    padded = SentencePieceProcessor(model_file=str(tmp_path / "padded.model"))
    assert len(padded) == 30_000 > len(ours)
    texts = sentences(100)
    assert padded.encode(texts) == ours.encode(texts)


def test_the_command_prints_the_comparison(mini_bundle: Path, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path), "--only", "bare", "--turns", "1", "--sentences", "20", "--stream", "1000"]
    result = CliRunner().invoke(app, ["peers", str(mini_bundle), *options])
    assert result.exit_code == 0 and result.stdout.startswith("# "), result.output
    assert {"report.md", "results.json"} <= {path.name for path in tmp_path.iterdir()}
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line[:1] == "|"]
    (at,) = (row for row, head in enumerate(cells) if head[:2] == ["system", "model"])
    head, _, ours, bare = cells[at : at + 4]
    assert len(head) == 7
    assert ours[:2] == ["xsent", "mini"] and all(float(cell.replace(",", "")) > 0 for cell in ours[2:])
    assert bare[:4] == ["bare", "none", "–", "–"] and all(cell.endswith("×)") for cell in bare[4:])
    assert "- bare: imports what ours imports, and encodes nothing.\n" in result.stdout
