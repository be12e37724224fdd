"""The graphs of a bundle and of other tools against the encoder that they were made from, run by onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.similarity import cosine_similarity
from xsent_export import batch_graph
from xsent_export.batch_graph import BatchGraph
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec, Precision
from xsent_train.tokens import to_tokens

Vectors = NDArray[np.float32]
SENTENCES = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11], []]


def open_graph(path: Path, options: onnxruntime.SessionOptions | None = None) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_batch(path: Path, sentences: list[list[int]], padding: int = 0) -> Vectors:
    """The vectors of a batch, padded beyond its longest sentence."""
    width = max(map(len, sentences)) + padding
    ids = np.array([sentence + [0] * (width - len(sentence)) for sentence in sentences], np.int64)
    mask = np.array([[1] * len(sentence) + [0] * (width - len(sentence)) for sentence in sentences], np.int64)
    (vectors,) = open_graph(path).run(["sentence_embedding"], {"input_ids": ids, "attention_mask": mask})
    return np.asarray(vectors)


@pytest.mark.parametrize(
    ("num_layers", "activation"), [(0, "gelu"), (1, "gelu"), (1, "silu"), (6, "gelu"), (6, "silu")]
)
@pytest.mark.parametrize(("precision", "least"), [("float32", 1), ("int8", 0.99), ("int4-table", 0.98)])
def test_a_bundle_has_the_vectors_of_the_encoder_and_of_its_parts(
    precision: Precision, least: float, num_layers: int, activation: str, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    whole = 128 if precision == "int4-table" else 32
    encoder = make_encoder(num_layers=max(num_layers, 2), activation=activation, dim=whole)
    for dim in (whole, whole // 2):
        EncoderGraph(encoder.first(num_layers), BundleSpec(num_layers, dim, precision)).write(tmp_path)
        session = open_graph(tmp_path / "model.onnx")
        for length in (1, 2, 7, 64):
            ids = (np.arange(length) * 7 % encoder.config.vocab_size).astype(np.int64)
            with torch.inference_mode():
                trained = encoder.first(num_layers)(to_tokens([ids.tolist()]))[:, :dim].numpy()
            (exported,) = session.run(["sentence_embedding"], {"input_ids": ids[None]})
            assert exported.shape == (1, dim) and exported.dtype == np.float32
            if precision == "float32":
                np.testing.assert_allclose(exported, trained, rtol=1e-5, atol=1e-5)
            assert cosine_similarity(trained, exported)[0, 0] >= min(least, 0.9999)


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_weights_can_be_mapped_and_the_slow_fusion_finds_nothing(
    precision: Precision, tmp_path: Path, make_encoder: MakeEncoder
) -> None:
    encoder = make_encoder()
    EncoderGraph(encoder, BundleSpec.whole(encoder.config, precision)).write(tmp_path)
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    places = {t.name: {e.key: e.value for e in t.external_data} for t in model.graph.initializer}
    size = 50 * 32 * (4 if precision == "float32" else 1)
    assert places["table"] == {"location": "embeddings.bin", "offset": "0", "length": str(size)}
    assert all(int(place["offset"]) % 4096 == 0 for place in places.values() if place)
    single = {t.name for t in model.graph.initializer if not t.dims}  # steps and zero points
    assert all(t.external_data for t in model.graph.initializer if t.data_type != onnx.TensorProto.INT64 and t.dims)
    assert any(name.endswith(".least") for name in single) == (precision == "int8")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    open_graph(tmp_path / "model.onnx", options)
    optimized = onnx.load(tmp_path / "optimized.onnx", load_external_data=False)
    operators = {node.op_type for node in optimized.graph.node}
    assert "LayerNormalization" in operators and "SkipLayerNormalization" not in operators


@pytest.mark.parametrize("dim", [32, 16])
@pytest.mark.parametrize(("num_layers", "activation"), [(0, "gelu"), (2, "gelu"), (2, "silu")])
def test_a_batch_has_the_vectors_of_the_encoder(
    num_layers: int, dim: int, activation: str, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder, path = make_encoder(num_layers=num_layers, activation=activation), tmp_path / "model.onnx"
    first, last = encoder.config.first, encoder.config.last  # as a tokenizer adds them for layers
    ids = [[first, *sentence, last] for sentence in SENTENCES] if num_layers else SENTENCES
    BatchGraph(encoder.first(num_layers), BundleSpec(num_layers, dim, "float32")).write_file(path)
    with torch.inference_mode():
        expected = encoder(to_tokens(SENTENCES))[:, :dim].numpy()
    np.testing.assert_allclose(run_batch(path, ids), expected, rtol=1e-5, atol=1e-5)
    for precision in ("int8", "int4-table", "float32"):
        BatchGraph(encoder.first(num_layers), BundleSpec(num_layers, dim, precision)).write_file(path)
        batch = run_batch(path, SENTENCES, padding=5)
        for sentence, vector in zip(SENTENCES[:3], batch, strict=False):
            np.testing.assert_allclose(run_batch(path, [sentence])[0], vector, atol=1e-6)
        assert not batch[3].any()  # nothing at all, not even the first and the last token


def test_a_batch_graph_is_one_file(make_encoder: MakeEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder(activation="gelu")
    path = tmp_path / "model.onnx"
    with monkeypatch.context() as context:
        context.setattr(batch_graph, "MAX_BYTES", 1000)
        with pytest.raises(DataError, match="do not fit into one ONNX file"):
            BatchGraph(encoder, BundleSpec.whole(encoder.config)).write_file(path)
    assert not list(tmp_path.iterdir())
    BatchGraph(encoder, BundleSpec.whole(encoder.config)).write_file(path)
    assert list(tmp_path.iterdir()) == [path]
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}
    stored = {t.name: t.data_type for t in model.graph.initializer}
    assert stored["table"] == stored["layer0.qkv.weight"] == onnx.TensorProto.INT8
