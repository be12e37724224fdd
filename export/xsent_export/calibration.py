"""The inputs of linear layers, measured on text, so that inputs and weights lose little when they are rounded.

A sentence's activations share one 8-bit scale. A BERT has a few channels that are ten times as large as the others, so
that the others are rounded to a tenth of the steps. Each channel of a linear layer's input is therefore multiplied by a
factor, and the layer's weights for this channel are divided by it (SmoothQuant, Xiao et al. 2023): the product stays
the same, and both sides are rounded well. How much of the spread moves into the weights is tried for each layer, and
the share with the least error of the product is kept (AWQ, Lin et al. 2024). The moments of the inputs let the weights
compensate for each other's errors, see `xsent_export.quantization`.
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
from xsent.tokenizer import Tokenizer
from xsent_export.options import BundleSpec
from xsent_export.quantization import quantize_columns
from xsent_train.checkpoint import Checkpoint, to_tokens
from xsent_train.from_bundle import SMOOTHING
from xsent_train.model import Encoder

SMOOTHED = ("qkv", "ffn_in", "ffn_out")  # the input of attention_out has no large channels
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the spread that may move into the weights (alpha in SmoothQuant)
SENTENCES = 256  # most sentences that are encoded
LEAST = 1e-5

Vectors = NDArray[np.float32]


class ActivationStats(NamedTuple):
    """Measurements of the inputs of linear layers, by their names in a graph such as `layer0.qkv`."""

    smoothing: Mapping[str, Vectors] = MappingProxyType({})  # factors of the input channels [I]
    moments: Mapping[str, Vectors] = MappingProxyType({})  # sum of x^T x over the smoothed inputs [I, I]


NOTHING = ActivationStats()


def calibrate_checkpoint(
    checkpoint: Checkpoint, encoder: Encoder, spec: BundleSpec, sentences: Sequence[str]
) -> ActivationStats:
    """The statistics for a bundle of this checkpoint's encoder; nothing if no layer is quantised.

    A checkpoint that was read from a bundle keeps the factors of that bundle: its weights are whole steps already, and
    with the same factors they are rounded as before.
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
    """Measure the inputs of an encoder's linear layers on sentences, given as ids.

    The factors of smoothing (SmoothQuant, eq. 4) are powers of two with a median of 1.
    """
    if not sentences:
        return NOTHING
    modules = ((name, part) for name, part in encoder.named_modules() if name.startswith("layers."))
    linears = {name.replace("layers.", "layer"): part for name, part in modules if isinstance(part, nn.Linear)}
    with _recorded_inputs(linears) as recorded:
        for ids in sentences[:: -(-len(sentences) // SENTENCES)]:
            encoder(to_tokens([ids], encoder))
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
        if len(tokens) > len(weight):  # moments of fewer tokens made the product worse
            moments[name] = tokens.T @ tokens
    return ActivationStats(smoothing, moments)


def smoothing_factors(inputs: Sequence[Vectors], weight: Vectors, share: float) -> Vectors:
    """Factors of a layer's input channels [I] that move `share` of their spread into its weight [I, O]."""
    largest_inputs = np.maximum(np.max([np.abs(x).max(axis=0) for x in inputs], axis=0), LEAST)
    largest_weights = np.maximum(np.abs(weight).max(axis=1), LEAST)
    divisors = largest_inputs**share / largest_weights ** (1 - share)  # of the inputs, as in SmoothQuant
    # Powers of two: they round no product, and the last digits of a measurement change nothing.
    factors: Vectors = np.exp2(np.rint(np.log2(np.median(divisors) / divisors)))
    return factors


def product_error(inputs: Sequence[Vectors], weight: Vectors, factors: Vectors) -> float:
    """The squared error of a linear layer [I, O] in 8 bits over its inputs, one array [tokens, I] a sentence."""
    numbers, scales = quantize_columns(weight / factors[:, None])
    kept = numbers * scales
    error = 0.0
    for x in inputs:
        rounded, step = quantize(x * factors)
        error += float(np.square(rounded * step @ kept - x @ weight).sum())
    return error


@contextmanager
def _recorded_inputs(linears: Mapping[str, nn.Linear]) -> Iterator[dict[str, list[Vectors]]]:
    """Record the inputs of linear layers inside the block, one array a sentence if sentences are encoded alone."""
    recorded: dict[str, list[Vectors]] = {name: [] for name in linears}

    def record(name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if len(inputs[0]):
            recorded[name].append(inputs[0].numpy())

    hooks = [linear.register_forward_pre_hook(partial(record, name)) for name, linear in linears.items()]
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()
