"""What calibration measures, and that it brings the graph nearer to the encoder."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder

from xsent.similarity import cosine_similarity
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec
from xsent_export.quantization import NOTHING, ActivationStats, calibrate, product_error, smoothing_factors
from xsent_train.checkpoint import to_tokens
from xsent_train.model import Encoder

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


def error(encoder: Encoder, folder: Path, stats: ActivationStats) -> float:
    """The largest sine between the vectors of torch and of the int8 graph."""
    EncoderGraph(encoder, BundleSpec.whole(encoder.config), stats).write(folder)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    sines = []
    for ids in (list(range(length)) for length in (1, 2, 7, 50)):
        with torch.inference_mode():
            trained = encoder(to_tokens([ids], encoder)).numpy()
        (exported,) = session.run(["sentence_embedding"], {"input_ids": np.array([ids])})
        sines.append(np.sqrt(1 - min(1.0, cosine_similarity(trained, exported)[0, 0]) ** 2))
    return max(sines)


def test_smoothed_vectors_are_nearer(uneven: Encoder, tmp_path: Path) -> None:
    stats = calibrate(uneven, SENTENCES)
    smoothing = stats.smoothing
    assert {name.split(".")[1] for name in smoothing} == {"qkv", "ffn_in", "ffn_out"} and len(smoothing) == 6
    assert all(np.median(factors) == pytest.approx(1, rel=0.5) for factors in smoothing.values())
    assert smoothing["layer1.ffn_out"].argmin() == 11  # the largest channel becomes the smaller one
    plain = error(uneven, tmp_path, NOTHING)
    assert error(uneven, tmp_path, ActivationStats(smoothing)) < 0.5 * plain
    assert error(uneven, tmp_path, stats) < 0.5 * plain


def test_moments_need_more_tokens_than_inputs(uneven: Encoder) -> None:
    moments = calibrate(uneven, SENTENCES).moments
    assert set(moments) == {
        f"layer{n}.{part}" for n in (0, 1) for part in ("qkv", "attention_out", "ffn_in", "ffn_out")
    }
    of_qkv = moments["layer0.qkv"]
    assert of_qkv.shape == (32, 32) and np.array_equal(of_qkv, of_qkv.T) and (np.diag(of_qkv) > 0).all()
    assert not calibrate(uneven, SENTENCES[:1]).moments
    assert calibrate(uneven, []) == NOTHING
    assert not any(part._forward_pre_hooks for part in uneven.modules())  # no hook is left


def test_the_error_of_a_product_by_hand() -> None:
    # A step of 2 rounds the 1 away, which the weight 1 would have added. Halved, the large channel leaves a step of 1.
    inputs, weight = [np.array([[510, 1]], np.float32)], np.ones((2, 1), np.float32)
    assert product_error(inputs, weight, np.ones(2, np.float32)) == pytest.approx(1)
    assert product_error(inputs, weight, np.array([0.5, 1], np.float32)) == pytest.approx(0, abs=1e-6)
    # All of the spread, 510 to 1, moves into the weight: powers of two around a median of 1, 512 apart.
    factors = smoothing_factors(inputs, weight, 1.0)
    assert factors[1] / factors[0] == 512
