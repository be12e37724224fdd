"""A readout as one more layer, for tools that only know a BERT and the mean of its tokens.

- Its attention weighs the tokens as the readout does, identically for every token, so every token gets their mean; its
  output matrix is that of the readout.
- This output is so large that the token's own state, which is added to it, does not count.
- Its feed-forward block adds nothing.
- Its norms subtract the mean of a vector's numbers. So that this mean is zero, each number of the output is scaled, by
  a direction in which the readout has almost no output. The last norm scales back.

So all tokens of a sentence have its vector, of another length, and every kind of pooling returns it.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from xsent_train.model import Encoder

Matrix = NDArray[np.float64]

LEAST = 0.05  # smallest number of a direction, relative to the mean; the last norm multiplies by the inverse


def readout_as_layer(encoder: Encoder, large: float) -> Encoder:
    """An encoder without readouts whose vectors have the same direction as those of `encoder`.

    `large` is the ratio of the length of the new layer's output to that of the state that is added to it.
    """
    if not encoder.readouts:
        return encoder
    config, last = encoder.config, len(encoder.layers)
    layer = _layer(encoder, large)
    state = {name: weight for name, weight in encoder.state_dict().items() if not name.startswith("readouts.")}
    state |= {f"layers.{last}.{name}": torch.from_numpy(weight).float() for name, weight in layer.items()}
    grown = Encoder.empty(replace(config, num_layers=last + 1, depths=()))
    grown.load_state_dict(state, assign=True)
    return grown.eval()


def _layer(encoder: Encoder, large: float) -> dict[str, Matrix]:
    """The weights of the layer, by their names in the encoder."""
    dim, ffn_dim = encoder.config.dim, encoder.config.ffn_dim
    state = {name: value.double().numpy() for name, value in encoder.state_dict().items()}
    last = len(encoder.layers)
    weight, bias, query = (state[f"readouts.{last}.{part}"] for part in ("weight", "bias", "query"))
    norm = f"layers.{last - 1}.ffn_norm" if last else "table_norm"
    gain, shift = state[f"{norm}.weight"], state[f"{norm}.bias"]
    # What the readout maps the output of the last norm to: a varying part, whose mean is zero, and a constant one.
    moving = weight * gain
    moving -= moving.mean(axis=1, keepdims=True)
    constant = bias + weight @ shift
    scale = _silent_direction(np.column_stack([moving, constant]))
    # The ratio of lengths of a state, scaled back like the output, and a vector, for a sentence of one token.
    large *= np.linalg.norm(np.hypot(gain, shift) / scale) / np.sqrt((moving**2).sum() + (constant**2).sum())
    # In each head, the query of every token has only one number, and every key has its score there.
    width = dim // encoder.config.num_heads
    asks, keys = np.zeros(dim), np.zeros((dim, dim))
    asks[::width], keys[::width] = width**0.5, query
    nothing, one = np.zeros(dim), np.ones(dim)
    return {
        "qkv.weight": np.concatenate([np.zeros((dim, dim)), keys, np.eye(dim)]),
        "qkv.bias": np.concatenate([asks, nothing, nothing]),
        "attention_out.weight": large * scale[:, None] * weight,
        "attention_out.bias": large * scale * bias,
        "attention_norm.weight": one,
        "attention_norm.bias": nothing,
        "ffn_in.weight": np.zeros((ffn_dim, dim)),
        "ffn_in.bias": np.zeros(ffn_dim),
        "ffn_out.weight": np.zeros((dim, ffn_dim)),
        "ffn_out.bias": nothing,
        "ffn_norm.weight": 1 / scale,
        "ffn_norm.bias": nothing,
    }


def _silent_direction(outputs: Matrix) -> Matrix:
    """The direction [D] with the smallest outputs [D, n]; its numbers average 1, and none of them is near 0."""
    square = outputs @ outputs.T
    direction: Matrix = np.linalg.eigh(square)[1][:, 0] * len(square) ** 0.5
    fixed = np.zeros(len(square), bool)
    while (small := (np.abs(direction) < LEAST) & ~fixed).any():
        direction[small] = np.copysign(LEAST, direction[small])
        fixed |= small
        rows = square[~fixed]  # the other numbers compensate
        direction[~fixed] -= np.linalg.lstsq(rows[:, ~fixed], rows @ direction, rcond=1e-12)[0]
    return direction
