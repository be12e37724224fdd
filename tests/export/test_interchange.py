"""Folders for other tools: what is written, and what is not."""

import json
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import onnxruntime
import pytest
import sentencepiece
from commands import assert_refused
from safetensors import SafetensorError
from trainings import export_command

from xsent_export.graph import BatchGraph
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint


def test_plain_onnxruntime_reads_the_onnx_folder(mini_checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = json.loads(export_command(mini_checkpoint, out, "--format", "onnx", "--fp32", "--json")[1])
    assert (told["path"], told["bytes"]) == (str(out), sum(path.stat().st_size for path in out.iterdir()))
    assert told["parity"]["languages"]["fr"]["cosine_mean"] > 0.995
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "model.onnx", "sentencepiece.model"]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(out / "sentencepiece.model"))
    session = onnxruntime.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
    texts = ["Anna, Boris, Clara and David."]
    ids = np.array(processor.encode(texts, add_bos=True, add_eos=True), np.int64)
    (vectors,) = session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlanguage: ["en", "fr", "de"]\nlicense: "cc0-1.0"\n') and "--format onnx" in card
    trained = CheckpointEncoder(load_checkpoint(mini_checkpoint)).encode(texts)
    np.testing.assert_allclose(vectors / np.linalg.norm(vectors), trained, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "place"),
    [("onnx", [], "for onnx"), ("web", [], "for web"), ("openvino", ["--fp32"], "in OpenVINO")],
)
def test_what_other_tools_get_is_measured_too(
    kind: str, options: list[str], place: str, mini_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "openvino":
        pytest.importorskip("openvino")
    out = tmp_path / "out"
    arguments = [mini_checkpoint, out, "--format", kind, *options]
    code, told, err = export_command(*arguments)
    assert code == 0 and "P@1 trained" in told, err
    assert "## Parity" in (out / "README.md").read_text(encoding="utf-8")
    shutil.rmtree(out)
    largest = lambda self, x, name: self._node("ReduceMax", [x], name, axes=[1], keepdims=0)  # noqa: E731
    monkeypatch.setattr(BatchGraph, "_mean", largest)
    assert_refused(export_command(*arguments), f"the exported encoder {place} differs too much")
    assert not list(tmp_path.iterdir())


def test_without_pairs_it_is_said_that_nothing_was_measured(mini_bundle: Path, tmp_path: Path) -> None:
    assert export_command(mini_bundle, tmp_path / "out", "--format", "onnx")[0] == 0
    assert "## Parity" not in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


FULL = "Error while serializing: I/O error: No space left on device (os error 28)"


@pytest.mark.parametrize(
    ("kind", "step", "error"),
    [
        ("onnx", "xsent_export.graph.BatchGraph.model", OSError(28, "No space left on device")),
        ("sentence-transformers", "xsent_train.checkpoint.save_file", SafetensorError(FULL)),
    ],
)
def test_nothing_is_overwritten_and_a_full_disk_is_one_line(
    kind: str, step: str, error: Exception, mini_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert_refused(export_command(mini_checkpoint, tmp_path, "--format", kind), "exists; name another folder\n")
    monkeypatch.setattr(step, mock.Mock(side_effect=error))
    full = f"{out}: No space left on device; nothing was kept"
    assert_refused(export_command(mini_checkpoint, out, "--format", kind), full)
    assert not list(tmp_path.iterdir())
