"""What text shows of the inputs of linear layers, so that these and the weights are rounded well.

Large activations are made small before they are rounded (SmoothQuant, Xiao et al. 2023).

Activations have one 8-bit scale a sentence, and a BERT has a few channels that are ten times as large as the others:
all the rest is then rounded to a tenth of the steps. So each channel of a linear layer's input is multiplied by a
factor, and the layer's weights for it are divided by it: the product stays, and both sides are rounded well. How much
the weights take over is tried out for each layer, as in AWQ (Lin et al. 2024): the share is kept that leaves the least
error of the product. And what inputs have in common says how an error of one weight is made good by others, see
`xsent_export.quantization`.
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
from xsent_export.quantization import Target, quantize_columns
from xsent_train.checkpoint import Checkpoint, to_tokens
from xsent_train.from_bundle import SMOOTHING
from xsent_train.model import Encoder

SMOOTHED = ("qkv", "ffn_in", "ffn_out")  # what attention mixes has no large channels
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the spread that the weights may take over (their alpha)
SENTENCES = 256  # looked at, at most
LEAST = 1e-5

Floats = NDArray[np.float32]


class ActivationStats(NamedTuple):
    """What is known of linear layers, by their names in a graph such as `layer0.qkv`; nothing of those without."""

    smoothing: Mapping[str, Floats] = MappingProxyType({})  # what input channels are multiplied by [I]
    moments: Mapping[str, Floats] = MappingProxyType({})  # sum of x^T x over the smoothed inputs [I, I]


NOTHING = ActivationStats()


def calibration_of(checkpoint: Checkpoint, form: BundleSpec, sentences: Sequence[str]) -> ActivationStats:
    """The calibration for a form of a checkpoint: that of the bundle that it was made of, or found anew.

    The weights of a bundle are whole steps already: with the same factors they are rounded as they were before. Only
    quantised layers are calibrated.
    """
    if not form.num_layers or form.precision == "float32":
        return NOTHING
    kept = {name: factors for name, factors in checkpoint.weights.items() if name.startswith(SMOOTHING)}
    if kept:
        return ActivationStats({name.removeprefix(SMOOTHING): factors.numpy() for name, factors in kept.items()})
    tokenizer = Tokenizer(checkpoint.tokenizer)
    read = [tokenizer.encode(text) for text in sentences]
    return calibrate(checkpoint.load_encoder().first(form.num_layers), read, form.target)


@torch.inference_mode()
def calibrate(encoder: Encoder, sentences: Sequence[Sequence[int]], target: Target = "portable") -> ActivationStats:
    """Look at the linear layers of an encoder by the ids of text like that it will read.

    Factors of smoothing (their eq. 4) are powers of two, with a median of 1.
    """
    if not sentences:
        return NOTHING
    modules = ((name, part) for name, part in encoder.named_modules() if name.startswith("layers."))
    linears = {name.replace("layers.", "layer"): part for name, part in modules if isinstance(part, nn.Linear)}
    with _inputs(linears) as inputs:
        for ids in sentences[:: -(-len(sentences) // SENTENCES)]:
            encoder(to_tokens([ids], encoder))
    smoothing, moments = {}, {}
    for name, linear in linears.items():
        seen, weight = inputs.pop(name), linear.weight.numpy().T
        factors = np.ones(len(weight), np.float32)
        if name.endswith(SMOOTHED):
            tried = (smoothing_factors(seen, weight, share) for share in SHARES)
            factors = smoothing[name] = min(tried, key=partial(product_error, seen, weight, target))
        tokens = np.concatenate(seen) * factors
        if len(tokens) > len(weight):  # fewer say more of themselves than of what inputs have in common
            moments[name] = tokens.T @ tokens
    return ActivationStats(smoothing, moments)


def smoothing_factors(inputs: Sequence[Floats], weight: Floats, share: float) -> Floats:
    """What channels of a layer's inputs are multiplied by [I]; `share` of their spread becomes the weight's [I, O]."""
    largest = np.max([np.abs(x).max(axis=0) for x in inputs], axis=0)
    largest, weights = (np.maximum(x, LEAST) for x in (largest, np.abs(weight).max(axis=1)))
    divisors = largest**share / weights ** (1 - share)  # as theirs: what inputs are divided by
    # Powers of two: no product is rounded by them, and the last digits of what was measured change nothing.
    powers: Floats = np.exp2(np.rint(np.log2(np.median(divisors) / divisors)))
    return powers


def product_error(inputs: Sequence[Floats], weight: Floats, target: Target, factors: Floats) -> float:
    """The squared error of a linear layer [I, O] in 8 bits, over all inputs [tokens, I] that sentences gave it."""
    numbers, scales = quantize_columns(weight / factors[:, None], target)
    kept, error = numbers * scales, 0.0
    for x in inputs:
        rounded, step = quantize(x * factors)
        error += float(np.square(rounded * step @ kept - x @ weight).sum())
    return error


@contextmanager
def _inputs(linears: Mapping[str, nn.Linear]) -> Iterator[dict[str, list[Floats]]]:
    """What linear layers are given meanwhile, once for each sentence that is encoded alone."""
    found: dict[str, list[Floats]] = {name: [] for name in linears}

    def note(name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if len(inputs[0]):
            found[name].append(inputs[0].numpy())

    hooks = [linear.register_forward_pre_hook(partial(note, name)) for name, linear in linears.items()]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
