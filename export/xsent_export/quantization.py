"""Symmetric quantisation: value = integer x scale, without a zero point. Raises ValueError for infinities and NaN.

A table has one scale per row (int8) or per block of a row (int4), so that an outlier only affects its own word. A
linear layer has one scale per output channel; weights that are rounded later compensate for the errors of earlier ones
(GPTQ, Frantar et al. 2023).

A sentence's activations share one 8-bit scale. In a BERT, a few channels are ten times as large as the others, which
are then rounded to a tenth of the steps. So each channel of a linear layer's input is multiplied by a factor, and the
layer's weights for this channel are divided by it (SmoothQuant, Xiao et al. 2023): the product does not change, and
both sides are rounded well. For each layer, several shares of the spread to move into the weights are tried, and the
one with the smallest error of the product is kept (AWQ, Lin et al. 2024).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from xsent.backends.numpy import quantize
from xsent.similarity import Floats
from xsent.tokenizer import Tokenizer
from xsent_export.options import BundleSpec
from xsent_train.checkpoint import SMOOTHING, Checkpoint
from xsent_train.model import Encoder
from xsent_train.tokens import to_tokens

TABLE_LIMIT = 127
# Two products of an unsigned 8-bit activation and a weight are added in 16 bits on CPUs without VNNI
# (vpmaddubsw); 2 x 255 x 64 = 32,640 is the largest power of two that cannot saturate there.
WEIGHT_LIMIT = 64

DAMPING = 0.01  # share of the inputs' mean variance, as in GPTQ: directions missing from the text count a little

NIBBLE_LIMIT = 7
BLOCK = 64  # numbers of a row that share a scale in 4 bits
# Shares of a block's largest number to try as its limit, because clipping it makes the steps of the rest finer.
SHRINK = np.linspace(0.7, 1.0, 13, dtype=np.float32)

SMOOTHED = ("qkv", "ffn_in", "ffn_out")  # the input of attention_out has no large channels
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the spread that may move into the weights (alpha in SmoothQuant)
SENTENCES = 256  # maximum number of sentences to encode
LEAST = 1e-5  # in place of channels that are always zero


def quantize_rows(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """The int8 rows of a table [V, D] in -127..127, and their scales [V, 1]; the product restores the table."""
    return _quantize(table, axis=1, limit=TABLE_LIMIT)


def quantize_columns(
    weight: Floats, moments: Floats | None = None, limit: int = WEIGHT_LIMIT
) -> tuple[NDArray[np.int8], Floats]:
    """The int8 weight of a linear layer [inputs, outputs] in -limit..limit, and the scales of its outputs.

    With the `moments` of its inputs, the sum of x^T x [inputs, inputs], each weight compensates for the error that the
    weights before it left in the product. Weights already on the quantization grid do not change. An output whose
    weights would move by more than half a step (root mean square) is rounded plainly, which never moves them further.
    """
    rows, scales = _quantize(weight, axis=0, limit=limit)
    if moments is not None and len(weight):
        numbers = _compensated(weight, scales[0], moments, limit)
        rows = np.where(np.square(numbers - weight / scales).mean(axis=0) > 0.25, rows, numbers)
    return rows, scales[0]


def quantize_nibbles(table: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """A table [V, D], D even, in 4 bits, and the scales of its blocks [V, D / block], see `block_size`.

    Each block gets the scale with the smallest squared error; all scales but the largest clip a little. Two numbers per
    byte [V, D / 2], each plus 8: byte i of a row has number i in its low half and number D / 2 + i in its high half.
    """
    rows, dim = table.shape
    packed = np.empty((rows, dim // 2), np.uint8)
    scales = np.empty((rows, dim // block_size(dim)), np.float16)
    for start in range(0, rows, 4096):  # a few megabytes at a time
        here = slice(start, start + 4096)
        part = _finite(table[here])
        numbers, scales[here] = _best_scales(part.reshape(len(part), -1, block_size(dim)))
        shifted = (numbers.reshape(part.shape) + 8).astype(np.uint8)
        packed[here] = shifted[:, : dim // 2] | shifted[:, dim // 2 :] << 4
    return packed, scales


def block_size(dim: int) -> int:
    """How many numbers of a row share a scale in 4 bits: `BLOCK`, or all `dim` if `BLOCK` does not divide it."""
    return dim if dim % BLOCK else BLOCK


def _best_scales(blocks: Floats) -> tuple[Floats, NDArray[np.float16]]:
    """Integers in -7..7 and scales of blocks of numbers [V, blocks, BLOCK]."""
    largest = np.abs(blocks).max(axis=2, keepdims=True)
    best = np.full(largest.shape, np.inf, np.float32)
    numbers = np.zeros_like(blocks)
    scales = np.ones(largest.shape, np.float16)
    for shrink in SHRINK:
        scale = np.where(largest > 0, largest * shrink / NIBBLE_LIMIT, 1.0).astype(np.float16)
        scale = np.maximum(scale, np.finfo(np.float16).tiny)
        tried = np.clip(np.rint(blocks / scale.astype(np.float32)), -NIBBLE_LIMIT, NIBBLE_LIMIT)
        error = np.square(tried * scale - blocks).sum(axis=2, keepdims=True)
        better = error < best
        best = np.where(better, error, best)
        scales = np.where(better, scale, scales)
        numbers = np.where(better, tried, numbers)
    return numbers, scales[:, :, 0]


def _quantize(values: Floats, *, axis: int, limit: int) -> tuple[NDArray[np.int8], Floats]:
    largest = np.abs(_finite(values)).max(axis=axis, keepdims=True, initial=0.0)
    # A row of zeros has no largest number, and any scale will do.
    scales = np.where(largest > 0, largest / limit, 1.0).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales


def _compensated(weight: Floats, scales: Floats, moments: Floats, limit: int) -> NDArray[np.int8]:
    """Whole numbers of steps for a weight [I, O], input after input (GPTQ, Frantar et al. 2023, eq. 2 and 3).

    The largest weight of a column remains the largest, because it defines the step.
    """
    size = len(weight)
    remaining = weight / scales  # in steps
    largest = np.abs(weight).argmax(axis=0)
    numbers = np.empty(weight.shape, np.int8)
    damping = DAMPING * np.trace(moments, dtype=np.float64) / size or 1.0
    inverse = np.linalg.inv(moments.astype(np.float64) + damping * np.eye(size))
    upper = np.linalg.cholesky(inverse).T.astype(np.float32)
    for i in range(size):
        rounded = np.clip(np.rint(remaining[i]), -limit, limit)
        numbers[i] = np.where(largest == i, np.rint(weight[i] / scales), rounded)
        remaining[i + 1 :] -= np.outer(upper[i, i + 1 :], (remaining[i] - numbers[i]) / upper[i, i])
    return numbers


def _finite(values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise ValueError("weights contain infinities or NaN; export an earlier checkpoint")
    return values


class ActivationStats(NamedTuple):
    """Measurements of the inputs of linear layers, by their names in a graph such as `layer0.qkv`."""

    smoothing: Mapping[str, Floats] = MappingProxyType({})  # factors of the input channels [I]
    moments: Mapping[str, Floats] = MappingProxyType({})  # sum of x^T x over the smoothed inputs [I, I]


NOTHING = ActivationStats()


def calibrate_checkpoint(
    checkpoint: Checkpoint, encoder: Encoder, spec: BundleSpec, sentences: Sequence[str]
) -> ActivationStats:
    """The statistics for a bundle of this checkpoint's encoder; `NOTHING` if no layer is quantised.

    A checkpoint that was read from a bundle keeps the factors of that bundle. Its weights are already on the
    quantization grid, so with the same factors they are rounded as before.
    """
    if not spec.num_layers or spec.precision == "float32":
        return NOTHING
    kept = {name: factors for name, factors in checkpoint.weights.items() if name.startswith(SMOOTHING)}
    if kept:
        return ActivationStats({name.removeprefix(SMOOTHING): factors.numpy() for name, factors in kept.items()})
    tokenizer = Tokenizer(checkpoint.tokenizer)
    ids = [tokenizer.encode(text) for text in sentences]
    return calibrate(encoder, ids)


@torch.inference_mode()
def calibrate(encoder: Encoder, sentences: Sequence[Sequence[int]]) -> ActivationStats:
    """Measure the inputs of an encoder's linear layers on sentences given as ids.

    The smoothing factors (SmoothQuant, eq. 4) are powers of two, and at most 1.
    """
    if not sentences:
        return NOTHING
    modules = ((name, part) for name, part in encoder.named_modules() if name.startswith("layers."))
    linears = {name.replace("layers.", "layer"): part for name, part in modules if isinstance(part, nn.Linear)}
    with _recorded_inputs(linears) as recorded:
        for ids in sentences[:: -(-len(sentences) // SENTENCES)]:
            encoder(to_tokens([ids], encoder.config.max_length))
    smoothing = {}
    moments = {}
    for name, linear in linears.items():
        inputs = recorded.pop(name)
        weight = linear.weight.numpy().T
        factors = np.ones(len(weight), np.float32)
        if name.endswith(SMOOTHED):
            tried = (smoothing_factors(inputs, weight, share) for share in SHARES)
            factors = smoothing[name] = min(tried, key=partial(product_error, inputs, weight))
        tokens = np.concatenate(inputs) * factors
        if len(tokens) > len(weight):  # with fewer tokens, moments make the product worse
            moments[name] = tokens.T @ tokens
    return ActivationStats(smoothing, moments)


def smoothing_factors(inputs: Sequence[Floats], weight: Floats, share: float) -> Floats:
    """Factors of a layer's input channels [I] that move `share` of their spread into its weight [I, O].

    They are at most 1. A larger factor for a channel that these inputs hardly use would fill the scale as soon as other
    text uses it.
    """
    largest_inputs = np.maximum(np.max([np.abs(x).max(axis=0) for x in inputs], axis=0), LEAST)
    largest_weights = np.maximum(np.abs(weight).max(axis=1), LEAST)
    divisors = largest_inputs**share / largest_weights ** (1 - share)  # of the inputs, as in SmoothQuant
    # Powers of two, so that products are not rounded, and last digits of a measurement do not matter.
    factors: Floats = np.exp2(np.minimum(np.rint(np.log2(np.median(divisors) / divisors)), 0))
    return factors


def product_error(inputs: Sequence[Floats], weight: Floats, factors: Floats) -> float:
    """The squared error of a linear layer [I, O] in 8 bits over its inputs, one array [tokens, I] per sentence."""
    numbers, scales = quantize_columns(weight / factors[:, None])
    kept = numbers * scales
    error = 0.0
    for x in inputs:
        rounded, step = quantize(x * factors)
        error += float(np.square(rounded * step @ kept - x @ weight).sum())
    return error


@contextmanager
def _recorded_inputs(linears: Mapping[str, nn.Linear]) -> Iterator[dict[str, list[Floats]]]:
    """Record the inputs of linear layers within the block, one array per call of the encoder."""
    recorded: dict[str, list[Floats]] = {name: [] for name in linears}

    def record(name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if len(inputs[0]):
            recorded[name].append(inputs[0].numpy())

    hooks = [linear.register_forward_pre_hook(partial(record, name)) for name, linear in linears.items()]
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()
