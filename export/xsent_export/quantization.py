"""Symmetric quantisation: value = integer x scale, without a zero point. Raises ValueError for infinities and NaN.

A table has one scale per row (int8) or per block of a row (int4), so that an outlier only affects its own word. A
linear layer has one scale per output channel; weights that are rounded later compensate for the errors of earlier ones
(GPTQ, Frantar et al. 2023).

CPUs without VNNI multiply two unsigned 8-bit activations by two weights and add the products in 16 bits (vpmaddubsw).
The sum is exact if the two weights, those of inputs 2i and 2i + 1, add up to at most 128. Most pairs of a column do
even if its largest weight is 127, so the scale is the smallest that lets all pairs fit. That is finer than 64 steps for
each weight, the limit that needs no look at the neighbour: the squared error is a third.

The activations of a linear layer are rounded in steps that were measured at export, so that a vector does not depend on
other sentences. Those of the second feed-forward layer have steps of each token's own size, because a few tokens are
far larger than the others.

In a BERT, a few channels are ten times as large as the others, which are then rounded to a tenth of the steps. So each
channel of a linear layer's input is multiplied by a factor, and the layer's weights for this channel are divided by it
(SmoothQuant, Xiao et al. 2023): the product does not change, and both sides are rounded well. For each layer, several
shares of the spread to move into the weights are tried, and the one with the smallest error of the product is kept
(AWQ, Lin et al. 2024).
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
from xsent.bundle import Rounding
from xsent.similarity import Floats
from xsent.tokenizer import Tokenizer
from xsent_export.options import BundleSpec
from xsent_train.checkpoint import ROUNDING, SCALES, SMOOTHING, Checkpoint
from xsent_train.model import Encoder
from xsent_train.tokens import to_tokens

TABLE_LIMIT = WEIGHT_LIMIT = 127
PAIR_LIMIT = 128  # sum of two neighbouring weights of one sign: 255 x 128 = 32,640 fits into 16 bits

DAMPING = 0.01  # share of the inputs' mean variance, as in GPTQ: directions missing from the text count a little

NIBBLE_LIMIT = 7
BLOCK = 64  # numbers of a row that share a scale in 4 bits
# Shares of a block's largest number to try as its limit, because clipping it makes the steps of the rest finer.
SHRINK = np.linspace(0.7, 1.0, 13, dtype=np.float32)

SMOOTHED = ("qkv", "ffn_in")  # that of attention_out has no large channels, that of ffn_out steps by token
BY_TOKEN = "ffn_out"  # the layer whose inputs have steps of each token's own size
# The most negative inputs of that layer, which are values of an activation function, and the steps for them.
LOWEST, STEPS_BELOW = {"gelu": -0.17, "silu": -0.2785}, 16
MIDDLE = 128  # the zero point of inputs of both signs
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the spread that may move into the weights (alpha in SmoothQuant)
SENTENCES = 256  # maximum number of sentences to encode
LEAST = 1e-5  # in place of channels that are always zero


def quantize_rows(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """The int8 rows of a table [V, D] in -127..127, and their scales [V, 1]; the product restores the table."""
    return _quantize(table, axis=1, limit=TABLE_LIMIT)


def quantize_columns(
    weight: Floats, moments: Floats | None = None, scales: Floats | None = None
) -> tuple[NDArray[np.int8], Floats]:
    """The int8 weight of a linear layer [inputs, outputs], in pairs within `PAIR_LIMIT`, and the scales of its outputs.

    With the `moments` of its inputs, the sum of x^T x [inputs, inputs], each weight compensates for the error that the
    weights before it left in the product. An output whose weights would move by more than half a step (root mean
    square) is rounded plainly. With the `scales` of an earlier quantization, its weights do not change.
    """
    scales = scales_of_columns(_finite(weight)) if scales is None else scales
    numbers = _rounded(weight / scales)
    if moments is not None and len(weight):
        compensated = _rounded(weight / scales, _compensation(moments))
        moved = np.square(compensated - weight / scales).mean(axis=0)
        numbers = np.where(moved > 0.25, numbers, compensated)
    return numbers, scales


def scales_of_columns(weight: Floats) -> Floats:
    """The smallest scales of the outputs [O] with which a weight [I, O] and its pairs keep their limits."""
    pairs = np.concatenate([weight, np.zeros((len(weight) % 2, weight.shape[1]), np.float32)])
    sums = np.abs(pairs[0::2] + pairs[1::2]).max(axis=0, initial=0.0)  # of one sign; others are below their larger one
    largest = np.maximum(np.abs(weight).max(axis=0, initial=0.0) / WEIGHT_LIMIT, sums / PAIR_LIMIT)
    return np.where(largest > 0, largest, 1.0).astype(np.float32)


def quantize_freely(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """The int8 weight of a linear layer [inputs, outputs] that is multiplied in float32, and its scales [outputs]."""
    numbers, scales = _quantize(weight, axis=0, limit=WEIGHT_LIMIT)
    return numbers, scales[0]


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


def _rounded(weight: Floats, compensation: Floats | None = None) -> NDArray[np.int8]:
    """Whole numbers for a weight [I, O] in steps, each pair of inputs within `PAIR_LIMIT`.

    With `_compensation`, input after input makes up for earlier ones (GPTQ, Frantar et al. 2023, eq. 2 and 3).
    """
    remaining = weight.copy()
    numbers = np.zeros(weight.shape, np.int8)
    for i in range(len(weight)):
        neighbour = numbers[i - 1].astype(np.int16) if i % 2 else np.zeros(weight.shape[1], np.int16)
        high = np.minimum(WEIGHT_LIMIT, PAIR_LIMIT - neighbour)
        low = np.maximum(-WEIGHT_LIMIT, -PAIR_LIMIT - neighbour)
        numbers[i] = np.clip(np.rint(remaining[i]), low, high)
        if compensation is not None:
            error = (remaining[i] - numbers[i]) / compensation[i, i]
            remaining[i + 1 :] -= np.outer(compensation[i, i + 1 :], error)
    return numbers


def _compensation(moments: Floats) -> Floats:
    """How the error of each weight is passed on to later ones [I, I], from the moments of their inputs."""
    size = len(moments)
    damping = DAMPING * np.trace(moments, dtype=np.float64) / size or 1.0
    inverse = np.linalg.inv(moments.astype(np.float64) + damping * np.eye(size))
    upper: Floats = np.linalg.cholesky(inverse).T.astype(np.float32)
    return upper


def _finite(values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise ValueError("weights contain infinities or NaN; export an earlier checkpoint")
    return values


class LayerStats(NamedTuple):
    """What linear layers are quantised with, by their names in a graph such as `layer0.qkv`."""

    smoothing: Mapping[str, Floats] = MappingProxyType({})  # factors of the input channels [I]
    moments: Mapping[str, Floats] = MappingProxyType({})  # sum of x^T x over the smoothed inputs [I, I]
    rounding: Mapping[str, Rounding] = MappingProxyType({})  # of the smoothed inputs
    scales: Mapping[str, Floats] = MappingProxyType({})  # of the outputs [O], if they are known

    def rounding_of(self, name: str, activation: str) -> Rounding:
        """The rounding of a layer's inputs; steps of each token's own size if they were not measured."""
        if name.endswith(BY_TOKEN):
            return Rounding(-LOWEST[activation] / STEPS_BELOW, STEPS_BELOW, by_token=True)
        return self.rounding.get(name, Rounding(LEAST, MIDDLE, by_token=True))


NOTHING = LayerStats()


def calibrate_checkpoint(
    checkpoint: Checkpoint, encoder: Encoder, spec: BundleSpec, sentences: Sequence[str]
) -> LayerStats:
    """The statistics for a bundle of this checkpoint's encoder; `NOTHING` if no layer is quantised.

    A checkpoint that was read from a bundle keeps what that bundle was quantised with, so that its weights, which are
    already whole numbers of steps, do not change.
    """
    if not spec.num_layers or spec.precision == "float32":
        return NOTHING
    smoothing, scales, rounding = (_kept(checkpoint, prefix) for prefix in (SMOOTHING, SCALES, ROUNDING))
    kept = LayerStats(smoothing, scales=scales)
    if rounding:
        grids = {name: Rounding(float(step), int(zero), by_token=False) for name, (step, zero) in rounding.items()}
        return kept._replace(rounding=grids)
    tokenizer = Tokenizer(checkpoint.tokenizer)
    return calibrate(encoder, [tokenizer.encode(text) for text in sentences], kept)


def _kept(checkpoint: Checkpoint, prefix: str) -> dict[str, Floats]:
    """The weights of a checkpoint whose names begin with a prefix, without it."""
    found = ((name, weight) for name, weight in checkpoint.weights.items() if name.startswith(prefix))
    return {name.removeprefix(prefix): weight.numpy() for name, weight in found}


@torch.inference_mode()
def calibrate(encoder: Encoder, sentences: Sequence[Sequence[int]], kept: LayerStats = NOTHING) -> LayerStats:
    """Measure the inputs of an encoder's linear layers on sentences given as ids.

    The smoothing factors (SmoothQuant, eq. 4) are powers of two, and at most 1. If some are `kept`, with the scales of
    the weights, only the rounding of inputs is measured.
    """
    if not sentences:
        return kept
    modules = ((name, part) for name, part in encoder.named_modules() if name.startswith("layers."))
    linears = {name.replace("layers.", "layer"): part for name, part in modules if isinstance(part, nn.Linear)}
    with _recorded_inputs(linears) as recorded:
        for ids in sentences[:: -(-len(sentences) // SENTENCES)]:
            encoder(to_tokens([ids], encoder.config.max_length))
    smoothing, moments, rounding = dict(kept.smoothing), {}, {}
    for name, linear in linears.items():
        inputs = recorded.pop(name)
        weight = linear.weight.numpy().T
        if name.endswith(SMOOTHED) and not kept.scales:
            tried = (smoothing_factors(inputs, weight, share) for share in SHARES)
            smoothing[name] = min(tried, key=partial(product_error, inputs, weight))
        tokens = np.concatenate(inputs) * smoothing.get(name, np.float32(1))
        if not name.endswith(BY_TOKEN):
            rounding[name] = _range_in_steps(tokens)
        if len(tokens) > len(weight) and not kept.scales:  # with fewer tokens, moments make the product worse
            moments[name] = tokens.T @ tokens
    return kept._replace(smoothing=smoothing, moments=moments, rounding=rounding)


def _range_in_steps(tokens: Floats) -> Rounding:
    """The rounding whose 256 numbers reach from the smallest to the largest of some activations, and to 0."""
    low, high = min(0.0, float(tokens.min())), max(0.0, float(tokens.max()))
    step = float(np.float32((high - low) / 255)) or 1.0
    return Rounding(step, round(-low / step), by_token=False)


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
