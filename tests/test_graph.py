"""The graph against the encoder that it was made from."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder
from numpy.typing import NDArray

from xsent.export.graph import EncoderGraph
from xsent.export.options import Form, Precision
from xsent.train.model import Encoder
from xsent.train.tokens import Tokens

Vector = NDArray[np.float32]
LENGTHS = (1, 2, 7, 64)


def vectors(encoder: Encoder, folder: Path, form: Form) -> list[tuple[Vector, Vector]]:
    """The vector from torch and the one from the graph, for sentences of several lengths."""
    EncoderGraph(encoder, form).write(folder)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    pairs = []
    for length in LENGTHS:
        ids = torch.arange(length) * 7 % encoder.config.vocab_size
        with torch.inference_mode():
            trained = encoder.first(form.num_layers)(Tokens(ids, torch.tensor([length])))[0].numpy()
        (exported,) = session.run(["sentence_embedding"], {"input_ids": ids[None].numpy()})
        assert exported.shape == (1, form.dim) and exported.dtype == np.float32
        pairs.append((trained[: form.dim], exported[0]))
    return pairs


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("num_layers", [0, 1, 2, 6])
@pytest.mark.parametrize(("precision", "least"), [("float32", 1), ("int8", 0.99), ("int4-table", 0.98)])
def test_the_graph_is_the_encoder_or_close(
    precision: Precision, least: float, num_layers: int, activation: str, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    dim = 128 if precision == "int4-table" else 32
    encoder = make_encoder(num_layers=num_layers, activation=activation, dim=dim)
    for trained, exported in vectors(encoder, tmp_path, Form.whole(encoder.config, precision)):
        if least == 1:
            np.testing.assert_allclose(exported, trained, rtol=1e-5, atol=1e-5)
        assert trained @ exported / np.linalg.norm(trained) / np.linalg.norm(exported) >= min(least, 0.9999)


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize(("num_layers", "dim"), [(0, 16), (1, 32), (1, 8), (2, 16)])
def test_a_part_is_the_encoder_inside(
    num_layers: int, dim: int, activation: str, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    for trained, exported in vectors(make_encoder(activation=activation), tmp_path, Form(num_layers, dim, "float32")):
        np.testing.assert_allclose(exported, trained, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("precision", "step"), [("int8", 1 / 64), ("float32", 0)])
def test_the_readout_lies_beside_the_graph(
    precision: Precision, step: float, tmp_path: Path, make_encoder: MakeEncoder
) -> None:
    encoder = make_encoder(readout=True)
    assert encoder.readout is not None
    written = EncoderGraph(encoder, Form.whole(encoder.config, precision))
    written.write(tmp_path)
    assert not [t for t in onnx.load(tmp_path / "model.onnx").graph.initializer if "readout" in t.name]
    places = written.network["tensors"]
    assert isinstance(places, dict)

    def read(name: str) -> NDArray[np.generic]:
        place = places[f"readout.{name}"]
        count = int(np.prod(place["shape"]))
        stored = np.fromfile(tmp_path / place["file"], place["dtype"], count, offset=place["offset"])
        return stored.reshape(place["shape"])

    weight = read("weight") * (read("scales") if precision == "int8" else 1)
    expected = encoder.readout.weight.detach().numpy().T
    np.testing.assert_allclose(weight, expected, atol=step * np.abs(expected).max() / 2)
    np.testing.assert_array_equal(read("bias"), encoder.readout.bias.detach().numpy())
    cut = EncoderGraph(encoder, Form(2, 16)).network["tensors"]
    assert isinstance(cut, dict) and "readout.weight" not in cut  # nobody could use it


def test_weights_can_be_mapped(tmp_path: Path, make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    EncoderGraph(encoder, Form.whole(encoder.config)).write(tmp_path)
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    places = {t.name: {e.key: e.value for e in t.external_data} for t in model.graph.initializer}
    assert places["table"] == {"location": "embeddings.bin", "offset": "0", "length": str(50 * 32)}
    outside = [place for place in places.values() if place]
    assert all(int(place["offset"]) % 4096 == 0 for place in outside)
    assert all(t.external_data for t in model.graph.initializer if t.data_type != onnx.TensorProto.INT64)


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_the_slow_fusion_finds_nothing(precision: Precision, tmp_path: Path, make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    EncoderGraph(encoder, Form.whole(encoder.config, precision)).write(tmp_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    optimized = onnx.load(tmp_path / "optimized.onnx", load_external_data=False)
    operators = {node.op_type for node in optimized.graph.node}
    assert "LayerNormalization" in operators
    assert "SkipLayerNormalization" not in operators


def test_nan_is_refused(tmp_path: Path, make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    with torch.no_grad():
        encoder.table.weight[3, 4] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        EncoderGraph(encoder, Form.whole(encoder.config))
