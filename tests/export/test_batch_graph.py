"""One ONNX file for other tools, read by plain onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent_export import graph
from xsent_export.graph import write_batch_graph
from xsent_export.options import BundleSpec, Precision
from xsent_train.checkpoint import to_tokens

Vectors = NDArray[np.float32]
SENTENCES = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11], []]


def run(path: Path, sentences: list[list[int]], padding: int = 0) -> Vectors:
    """The vectors of a batch, padded beyond its longest sentence."""
    width = max(map(len, sentences)) + padding
    ids = np.array([sentence + [0] * (width - len(sentence)) for sentence in sentences], np.int64)
    mask = np.array([[1] * len(sentence) + [0] * (width - len(sentence)) for sentence in sentences], np.int64)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (vectors,) = session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": mask})
    return np.asarray(vectors)


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize(("num_layers", "dim"), [(0, 32), (0, 16), (2, 32), (2, 16)])
def test_a_batch_has_the_vectors_of_the_encoder(
    num_layers: int, dim: int, activation: str, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder = make_encoder(num_layers=num_layers, activation=activation)
    write_batch_graph(encoder, BundleSpec(num_layers, dim, "float32"), tmp_path / "model.onnx")
    with torch.inference_mode():
        expected = encoder(to_tokens(SENTENCES, encoder))[:, :dim].numpy()
    ends = [encoder.config.first], [encoder.config.last]  # as a tokenizer gives them to layers
    ids = [ends[0] + sentence + ends[1] for sentence in SENTENCES] if num_layers else SENTENCES
    np.testing.assert_allclose(run(tmp_path / "model.onnx", ids), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", ["int8", "int4-table", "float32"])
def test_neither_padding_nor_company_moves_a_vector(
    precision: Precision, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder, path = make_encoder(), tmp_path / "model.onnx"
    write_batch_graph(encoder, BundleSpec.whole(encoder.config, precision), path)
    batch = run(path, SENTENCES, padding=5)
    for sentence, vector in zip(SENTENCES[:3], batch, strict=False):
        np.testing.assert_allclose(run(path, [sentence])[0], vector, atol=1e-6)
    assert not batch[3].any()  # nothing at all, not even the first and the last token


def test_it_is_one_file_of_standard_operators(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    encoder = make_encoder(activation="gelu")
    write_batch_graph(encoder, BundleSpec.whole(encoder.config), tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    model = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}
    stored = {t.name: t.data_type for t in model.graph.initializer}
    assert stored["table"] == stored["layer0.qkv.weight"] == onnx.TensorProto.INT8


def test_a_file_that_would_be_too_large_is_refused(
    make_encoder: MakeEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "MOST_BYTES", 1000)
    encoder = make_encoder()
    with pytest.raises(DataError, match="do not fit into one ONNX file"):
        write_batch_graph(encoder, BundleSpec.whole(encoder.config), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
