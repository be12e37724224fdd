"""Large activations made small before they are rounded (SmoothQuant, Xiao et al. 2023).

Activations have one 8-bit scale a sentence, and a BERT has a few channels that are ten times as large as the others:
all the rest is then rounded to a tenth of the steps. So each channel of a linear layer's input is multiplied by a
factor, and the layer's weights for it are divided by it: the product stays, and both sides are rounded well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from xsent.export.options import Form
from xsent.tokenizer import Tokenizer
from xsent.train.bundles import SMOOTHING
from xsent.train.checkpoint import Checkpoint, to_tokens
from xsent.train.model import Encoder

# The share of the spread that the weights take over (their alpha), by linear layer: of 0.5 to 1 these left the least
# error of the product in the layers of all-MiniLM-L6-v2. What attention mixes has no large channels.
SHARES = {"qkv": 0.65, "ffn_in": 0.65, "ffn_out": 0.8}
SENTENCES = 64  # looked at, at most; of more the rarest extremes would decide: in 8 bits that cost 0.001 of cosine
BATCH = 32
LEAST = 1e-5

Smoothing = Mapping[str, NDArray[np.float32]]  # what input channels are multiplied by, by the name of the linear layer


def smoothing_of(checkpoint: Checkpoint, form: Form, sentences: Sequence[str]) -> Smoothing:
    """The factors for a form of a checkpoint: those of the bundle that it was made of, or found anew.

    With the same factors the weights of a bundle are rounded as they were before. Only quantised layers are smoothed.
    """
    if not form.num_layers or form.precision == "float32":
        return {}
    kept = {name: factors for name, factors in checkpoint.weights.items() if name.startswith(SMOOTHING)}
    if kept:
        return {name.removeprefix(SMOOTHING): factors.numpy() for name, factors in kept.items()}
    tokenizer = Tokenizer(checkpoint.tokenizer)
    return fit_smoothing(checkpoint.encoder.first(form.num_layers), [tokenizer.encode(text) for text in sentences])


@torch.inference_mode()
def fit_smoothing(encoder: Encoder, sentences: Sequence[Sequence[int]]) -> Smoothing:
    """Find the factors for the linear layers of an encoder (their eq. 4) by the ids of text like that it will read.

    They are powers of two, with a median of 1, by the names of the layers, such as `layer0.qkv`.
    """
    if not sentences:
        return {}
    chosen = sentences[:: -(-len(sentences) // SENTENCES)]
    modules = ((name, part) for name, part in encoder.named_modules() if name.endswith(tuple(SHARES)))
    linears = {name: part for name, part in modules if isinstance(part, nn.Linear)}
    with _largest_inputs(linears) as largest:
        for start in range(0, len(chosen), BATCH):
            encoder(to_tokens(chosen[start : start + BATCH], encoder))
    smoothing = {}
    for name, linear in linears.items():
        inputs, weights = (x.clamp(min=LEAST) for x in (largest[name], linear.weight.abs().amax(dim=0)))
        share = SHARES[name.rpartition(".")[2]]
        factors = inputs**share / weights ** (1 - share)  # as theirs: what inputs are divided by
        # Powers of two: no product is rounded by them, and the last digits of what was measured change nothing.
        exponents = (factors.median() / factors).log2().round()
        smoothing[name.replace("layers.", "layer")] = exponents.exp2().numpy()
    return smoothing


@contextmanager
def _largest_inputs(linears: Mapping[str, nn.Linear]) -> Iterator[dict[str, Tensor]]:
    """The largest absolute value of each input channel of linear layers, over all that is encoded meanwhile."""
    found = {name: torch.zeros(linear.in_features) for name, linear in linears.items()}

    def note(name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if len(inputs[0]):
            found[name] = torch.maximum(found[name], inputs[0].abs().amax(dim=0))

    hooks = [linear.register_forward_pre_hook(partial(note, name)) for name, linear in linears.items()]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
