"""The graph against the encoder that it was made from, and smoothing, which brings it nearer after rounding."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder
from numpy.typing import NDArray

from xsent.similarity import cosine_similarity
from xsent_export.calibration import NOTHING, ActivationStats, calibrate, product_error, smoothing_factors
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec, Precision
from xsent_train.model import Encoder
from xsent_train.tokens import Tokens

Vector = NDArray[np.float32]
LENGTHS = (1, 2, 7, 64)


def vectors(
    encoder: Encoder, folder: Path, form: BundleSpec, calibration: ActivationStats = NOTHING
) -> list[tuple[Vector, Vector]]:
    """The vector from torch and the one from the graph, for sentences of several lengths."""
    EncoderGraph(encoder, form, calibration).write(folder)
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
def test_the_graph_is_the_encoder_or_close_and_a_part_the_encoder_inside(
    precision: Precision, least: float, num_layers: int, activation: str, make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    whole = 128 if precision == "int4-table" else 32
    encoder = make_encoder(num_layers=max(num_layers, 2), activation=activation, dim=whole)
    for dim in (whole, whole // 2):
        for trained, exported in vectors(encoder, tmp_path, BundleSpec(num_layers, dim, precision)):
            if least == 1:
                np.testing.assert_allclose(exported, trained, rtol=1e-5, atol=1e-5)
            assert cosine_similarity(trained, exported)[0, 0] >= min(least, 0.9999)


def test_weights_can_be_mapped(tmp_path: Path, make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    EncoderGraph(encoder, BundleSpec.whole(encoder.config)).write(tmp_path)
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    places = {t.name: {e.key: e.value for e in t.external_data} for t in model.graph.initializer}
    assert places["table"] == {"location": "embeddings.bin", "offset": "0", "length": str(50 * 32)}
    outside = [place for place in places.values() if place]
    assert all(int(place["offset"]) % 4096 == 0 for place in outside)
    assert all(t.external_data for t in model.graph.initializer if t.data_type != onnx.TensorProto.INT64)


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_the_slow_fusion_finds_nothing(precision: Precision, tmp_path: Path, make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    EncoderGraph(encoder, BundleSpec.whole(encoder.config, precision)).write(tmp_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    optimized = onnx.load(tmp_path / "optimized.onnx", load_external_data=False)
    operators = {node.op_type for node in optimized.graph.node}
    assert "LayerNormalization" in operators
    assert "SkipLayerNormalization" not in operators


SENTENCES = [[5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15, 16, 17], [20]] * 3


@pytest.fixture
def uneven(make_encoder: MakeEncoder) -> Encoder:
    """An encoder with a channel that is much larger than the others, as BERTs have them."""
    encoder = make_encoder(activation="gelu")
    with torch.no_grad():
        for layer in encoder.layers:
            layer.ffn_in.bias[11] = 60.0
            layer.ffn_out.weight[:, 11] /= 60
    return encoder


def error(encoder: Encoder, folder: Path, calibration: ActivationStats) -> float:
    """The largest sine between the vectors of torch and of the int8 graph."""
    pairs = vectors(encoder, folder, BundleSpec.whole(encoder.config), calibration)
    return max(float(np.sqrt(1 - min(1.0, cosine_similarity(*pair)[0, 0]) ** 2)) for pair in pairs)


def test_what_is_smoothed_is_nearer(uneven: Encoder, tmp_path: Path) -> None:
    calibration = calibrate(uneven, SENTENCES)
    smoothing = calibration.smoothing
    assert {name.split(".")[1] for name in smoothing} == {"qkv", "ffn_in", "ffn_out"} and len(smoothing) == 6
    assert all(np.median(factors) == pytest.approx(1, rel=0.5) for factors in smoothing.values())
    assert smoothing["layer1.ffn_out"].argmin() == 11  # the largest channel becomes the smaller one
    assert error(uneven, tmp_path, ActivationStats(smoothing)) < 0.5 * error(uneven, tmp_path, NOTHING)
    assert error(uneven, tmp_path, calibration) < 0.5 * error(uneven, tmp_path, NOTHING)


def test_what_inputs_share_is_seen_where_there_is_enough_text(uneven: Encoder) -> None:
    calibration = calibrate(uneven, SENTENCES)
    linears = {f"layer{n}.{part}" for n in (0, 1) for part in ("qkv", "attention_out", "ffn_in", "ffn_out")}
    assert set(calibration.moments) == linears
    moments = calibration.moments["layer0.qkv"]
    assert moments.shape == (32, 32) and np.array_equal(moments, moments.T) and (np.diag(moments) > 0).all()
    assert not calibrate(uneven, SENTENCES[:1]).moments  # fewer tokens than inputs


def test_the_error_of_a_product_by_hand() -> None:
    # A step of 2 rounds the 1 away, which the weight 1 would have added. Halved, the large channel leaves a step of 1.
    inputs, weight = [np.array([[510, 1]], np.float32)], np.ones((2, 1), np.float32)
    assert product_error(inputs, weight, np.ones(2, np.float32)) == pytest.approx(1)
    assert product_error(inputs, weight, np.array([0.5, 1], np.float32)) == pytest.approx(0, abs=1e-6)
    # All of the spread, 510 to 1, is the weight's: a median of 1 between two channels 512 apart, in powers of two.
    assert (factors := smoothing_factors(inputs, weight, 1.0))[1] / factors[0] == 512


def test_looking_leaves_no_trace_and_needs_something_to_look_at(uneven: Encoder) -> None:
    assert calibrate(uneven, SENTENCES).smoothing and calibrate(uneven, []) == NOTHING
    assert not any(part._forward_pre_hooks for part in uneven.modules())
