"""Quantisation against numbers worked out by hand, and the calibration that brings the graph nearer to the encoder."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import MakeEncoder

from xsent.backends.numpy import unpack_rows
from xsent.similarity import cosine_similarity
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec
from xsent_export.quantization import (
    NOTHING,
    PAIR_LIMIT,
    WEIGHT_LIMIT,
    LayerStats,
    block_size,
    calibrate,
    product_error,
    quantize_columns,
    quantize_freely,
    quantize_nibbles,
    quantize_rows,
    smoothing_factors,
)
from xsent_train.model import Encoder
from xsent_train.tokens import to_tokens


def test_numbers_and_scales_by_hand() -> None:
    rows, scales = quantize_rows(np.array([[1.27, -0.64, 0.0], [100.0, 254.0, -254.0]], np.float32))
    assert rows.dtype == np.int8 and rows.tolist() == [[127, -64, 0], [50, 127, -127]]
    assert scales.dtype == np.float32 and scales.shape == (2, 1)
    assert scales.ravel().tolist() == pytest.approx([0.01, 2.0])
    # Neighbours of one sign share 128 steps; those of two signs, and one without a neighbour, have 127 each.
    weight = np.array([[1.27, 0.64, -1.0], [-0.64, 0.64, -0.28], [0.5, 0.1, 0.1], [0.5, 0.1, 0.1], [0, 0, 1.27]])
    columns, scales = quantize_columns(weight.astype(np.float32))
    assert scales.tolist() == pytest.approx([0.01, 0.01, 0.01])
    assert columns.T.tolist() == [[127, -64, 50, 50, 0], [64, 64, 10, 10, 0], [-100, -28, 10, 10, 127]]
    assert 255 * PAIR_LIMIT <= np.iinfo(np.int16).max  # two products fit in 16 bits
    columns, scales = quantize_freely(np.array([[1.27, 2.54], [-0.64, -2.54]], np.float32))
    assert columns.tolist() == [[127, 127], [-64, -127]] and scales.tolist() == pytest.approx([0.01, 0.02])
    # Exact at scales 0.5 and 2: byte i holds number i low and number i + 2 high, each plus 8.
    packed, scales = quantize_nibbles(np.array([[3.5, -3.5, 0.5, 0.0], [14.0, 2.0, -4.0, -14.0]], np.float32))
    assert packed.tolist() == [[15 | 9 << 4, 1 | 8 << 4], [15 | 6 << 4, 9 | 1 << 4]]
    assert scales.tolist() == [[0.5], [2.0]]


def test_weights_compensate_for_errors() -> None:
    # In steps. The second and third input are always the same: 0.4 and 0.4 together are nearer to 1 than to 0. The
    # fourth has nothing to do with them, and the first defines the step.
    weight, moments = np.array([[127], [0.4], [0.4], [0.4]], np.float32), np.eye(4, dtype=np.float32)
    moments[1, 2] = moments[2, 1] = 1
    assert quantize_columns(weight)[0].ravel().tolist() == [127, 0, 0, 0]
    numbers, scales = quantize_columns(weight, moments)
    assert numbers.ravel().tolist() == [127, 0, 1, 0]
    again, same = quantize_columns(numbers * scales, scales=scales)
    assert np.array_equal(again, numbers) and same is scales
    for seen in (np.zeros((4, 4), np.float32), np.diag([0, 1e-30, 1, 1e30]).astype(np.float32)):
        assert quantize_columns(weight, seen)[0].ravel().tolist() == [127, 0, 0, 0]
    # A neighbour leaves a weight fewer steps, also where an earlier error would raise it.
    weight, moments = np.array([[0.45], [64], [64.4]], np.float32), np.ones((3, 3), np.float32) + np.eye(3) / 100
    assert quantize_columns(np.concatenate([weight, [[0]], weight[1:]]))[0].ravel().tolist() == [0, 64, 64, 0, 64, 64]


def test_compensation_makes_the_product_better_and_no_weight_coarser() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 32)) + 0.1 * rng.normal(size=(500, 32))
    inputs = inputs.astype(np.float32)
    weight = rng.normal(size=(32, 48)).astype(np.float32)
    errors = []
    for numbers, scales in (quantize_columns(weight), quantize_columns(weight, inputs.T @ inputs)):
        errors.append(np.square(inputs @ (numbers * scales - weight)).mean())
        steps = np.abs(weight).max(axis=0) / (PAIR_LIMIT // 2)
        assert np.square((numbers * scales - weight) / steps).mean(axis=0).max() <= 0.5**2
        first, second = numbers[0::2].astype(int), numbers[1::2].astype(int)
        assert 64 < np.abs(numbers).max() <= WEIGHT_LIMIT and np.abs(first + second).max() == PAIR_LIMIT
    assert errors[1] < errors[0] / 4
    plain = np.rint(weight / np.abs(weight).max(axis=0) * 64) * np.abs(weight).max(axis=0) / 64
    assert errors[0] < 0.6 * np.square(inputs @ (plain - weight)).mean()  # a weight by itself has only 64 steps


def test_each_block_of_a_row_has_its_own_nibble_scale() -> None:
    assert (block_size(128), block_size(96), block_size(32)) == (64, 96, 32)
    table = np.random.default_rng(0).normal(size=(5000, 128)).astype(np.float32)
    table[:, 64:] *= 100
    packed, scales = quantize_nibbles(table)
    assert packed.shape == (5000, 64) and scales.shape == (5000, 2)
    small = table[:, :64]
    error = unpack_rows(packed, scales)[:, :64] - small
    assert np.square(error / np.abs(table).max(axis=1, keepdims=True)).mean() < 1e-5  # the large half does not drown it
    largest = np.abs(small).max(axis=1, keepdims=True)
    naive = np.clip(np.rint(small / largest * 7), -7, 7) * largest / 7 - small
    assert np.square(error).mean() < 0.9 * np.square(naive).mean()


def test_zeros_stay_and_infinities_are_refused() -> None:
    zeros = np.zeros((2, 4), np.float32)
    rows, scales = quantize_rows(zeros)
    assert not rows.any() and np.isfinite(scales).all()
    assert not unpack_rows(*quantize_nibbles(zeros)).any()
    for bad in (np.nan, np.inf, -np.inf):
        for quantize in (quantize_rows, quantize_nibbles):
            with pytest.raises(ValueError, match="infinities or NaN"):
                quantize(np.array([[1.0, bad]], np.float32))


SENTENCES = [[5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15, 16, 17], [20]] * 3


def error(encoder: Encoder, folder: Path, stats: LayerStats) -> float:
    """The largest sine between the vectors of torch and of the int8 graph."""
    EncoderGraph(encoder, BundleSpec.whole(encoder.config), stats).write(folder)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    sines = []
    for ids in (list(range(length)) for length in (1, 2, 7, 50)):
        with torch.inference_mode():
            trained = encoder(to_tokens([ids])).numpy()
        (exported,) = session.run(["sentence_embedding"], {"input_ids": np.array([ids])})
        sines.append(np.sqrt(1 - min(1.0, cosine_similarity(trained, exported)[0, 0]) ** 2))
    return max(sines)


def test_smoothed_vectors_are_nearer_and_moments_are_taken(make_encoder: MakeEncoder, tmp_path: Path) -> None:
    uneven = make_encoder(activation="gelu")
    with torch.no_grad():
        for layer in uneven.layers:  # a channel is much larger than the others, as BERTs have them
            layer.attention_norm.weight[11] = 60.0
            layer.ffn_in.weight[:, 11] /= 60
    stats = calibrate(uneven, SENTENCES)
    smoothing = stats.smoothing
    assert {name.split(".")[1] for name in smoothing} == {"qkv", "ffn_in"} and len(smoothing) == 4
    assert all(np.median(factors) == pytest.approx(1, rel=0.5) for factors in smoothing.values())
    assert smoothing["layer1.ffn_in"].argmin() == 11  # the largest channel becomes the smaller one
    plain = error(uneven, tmp_path, NOTHING)
    assert error(uneven, tmp_path, LayerStats(smoothing)) < 0.5 * plain
    assert error(uneven, tmp_path, stats) < 0.5 * plain
    names = {f"layer{n}.{part}" for n in (0, 1) for part in ("qkv", "attention_out", "ffn_in", "ffn_out")}
    of_qkv = stats.moments["layer0.qkv"]
    assert stats.moments.keys() == names and of_qkv.shape == (32, 32)
    assert np.array_equal(of_qkv, of_qkv.T) and (np.diag(of_qkv) > 0).all()
    assert not calibrate(uneven, SENTENCES[:1]).moments  # of fewer tokens than inputs
    assert calibrate(uneven, []) == NOTHING
    assert not any(part._forward_pre_hooks for part in uneven.modules())  # no hook is left


def test_the_error_of_a_product_by_hand() -> None:
    # A step of 2 rounds the 1 away, which the weight 1 would have added. Halved, the large channel leaves a step of 1.
    inputs, weight = [np.array([[510, 0, 1, 0]], np.float32)], np.array([[1], [0], [1], [0]], np.float32)
    assert product_error(inputs, weight, np.ones(4, np.float32)) == pytest.approx(1)
    assert product_error(inputs, weight, np.array([0.5, 1, 1, 1], np.float32)) == pytest.approx(0, abs=1e-4)
    # All of the spread moves into the weight, by powers of two with a median of 1. What is small stays small.
    inputs, weight = [np.array([[510, 1, 1, 0.01]], np.float32)], np.ones((4, 1), np.float32)
    assert smoothing_factors(inputs, weight, 1.0).tolist() == [1 / 512, 1, 1, 1]
