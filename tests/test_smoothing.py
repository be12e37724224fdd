"""Smoothing: the same product, nearer after rounding."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder
from numpy.typing import NDArray

from xsent.export.graph import EncoderGraph
from xsent.export.options import Form
from xsent.export.smoothing import Smoothing, fit_smoothing
from xsent.train.model import Encoder
from xsent.train.tokens import Tokens

SENTENCES = [[5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15, 16, 17], [20]] * 3


@pytest.fixture
def encoder(make_encoder: MakeEncoder) -> Encoder:
    """An encoder with a channel that is much larger than the others, as BERTs have them."""
    encoder = make_encoder(activation="gelu")
    with torch.no_grad():
        for layer in encoder.layers:
            layer.ffn_in.bias[11] = 60.0
            layer.ffn_out.weight[:, 11] /= 60
    return encoder


def error(encoder: Encoder, folder: Path, smoothing: Smoothing) -> float:
    """The largest sine between the vectors of torch and of the int8 graph."""
    EncoderGraph(encoder, Form.whole(encoder.config), smoothing).write(folder)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    worst = 0.0
    for ids in SENTENCES[:4]:
        with torch.inference_mode():
            exact: NDArray[np.float32] = encoder(Tokens(torch.tensor(ids), torch.tensor([len(ids)])))[0].numpy()
        rounded = session.run(None, {"input_ids": np.array([ids])})[0][0]
        cosine = exact @ rounded / np.linalg.norm(exact) / np.linalg.norm(rounded)
        worst = max(worst, float(np.sqrt(max(0.0, 1 - cosine**2))))
    return worst


def test_what_is_smoothed_is_nearer(encoder: Encoder, tmp_path: Path) -> None:
    smoothing = fit_smoothing(encoder, SENTENCES)
    assert {name.split(".")[1] for name in smoothing} == {"qkv", "ffn_in", "ffn_out"} and len(smoothing) == 6
    assert all(np.median(factors) == pytest.approx(1, rel=0.5) for factors in smoothing.values())
    assert smoothing["layer1.ffn_out"].argmin() == 11  # the largest channel becomes the smaller one
    assert error(encoder, tmp_path, smoothing) < 0.5 * error(encoder, tmp_path, {})


def test_looking_leaves_no_trace_and_needs_something_to_look_at(encoder: Encoder) -> None:
    assert fit_smoothing(encoder, SENTENCES) and fit_smoothing(encoder, []) == {}
    assert not any(part._forward_pre_hooks for part in encoder.modules())
