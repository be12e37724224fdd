"""An encoder as a BERT that transformers has: its settings, its weights by their names, and how to read a vector off.

A post-norm encoder is BERT. A pre-norm one is Megatron's BERT, though three things differ there: positions are part of
the hidden state, a norm stands at the end, and every norm sees the whole hidden state. So its hidden state is made
wider, and its weights are chosen such that nothing of that is seen. Next to the D numbers of a token lie

- at a small scale, that no norm of the layers notices: what the first attention reads, norm(token) + position, which
  the table knows beforehand; and the mean of the numbers, which themselves have mean 0;
- two large opposite numbers during the first attention and at the end: beside them a token is nothing, so that the
  norms there do the same to each. Biases put them there and take them away.

Such a model is there to be used, in float32; a model to train further is the checkpoint.

Shapes: V pieces, D dimensions, W the wider hidden state, F inner size, d dimensions kept.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from xsent.train.model import Encoder, Layer

SMALL = 2.0**-10  # of what no norm may notice: its square is
LARGE = 2.0**12  # of what a norm may notice alone, in lengths of the longest row of the table
CHUNK = 8  # numbers; hidden states of whole chunks are multiplied faster

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class StockBert:
    """What transformers needs to know.

    Attributes:
        config: Content of `config.json`.
        weights: Tensors by name.
        width: Numbers of a hidden state (W).
        readout: Hidden state to vector [D, W], or None if it is the vector.
    """

    config: dict[str, Any]
    weights: Weights
    width: int
    readout: Tensor | None


def stock_bert(encoder: Encoder) -> StockBert:
    """The BERT that computes what an encoder with layers computes."""
    return _bert(encoder) if encoder.config.norm == "post" else _MegatronBert(encoder).build()


def _config(encoder: Encoder, kind: str, name: str, width: int, eps: float) -> dict[str, Any]:
    shape = encoder.config
    return {
        "architectures": [name],
        "model_type": kind,
        "vocab_size": shape.vocab_size,
        "hidden_size": width,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "intermediate_size": shape.ffn_dim,
        "hidden_act": "silu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": shape.max_length,
        "type_vocab_size": 1,
        "layer_norm_eps": eps,
        "pad_token_id": None,  # a sentence is as long as its mask says
        "dtype": "float32",
    }


def _bert(encoder: Encoder) -> StockBert:
    assert encoder.positions is not None and encoder.table_norm is not None
    dim = encoder.config.dim
    weights: Weights = {
        "embeddings.word_embeddings.weight": encoder.table.weight,
        "embeddings.position_embeddings.weight": encoder.positions,
        "embeddings.token_type_embeddings.weight": torch.zeros(1, dim),
        **_named("embeddings.LayerNorm", encoder.table_norm),
    }
    for number, layer in enumerate(encoder.layers):
        assert isinstance(layer, Layer)
        name = f"encoder.layer.{number}"
        parts = zip(torch.split(layer.qkv.weight, dim), torch.split(layer.qkv.bias, dim), strict=True)
        for part, (weight, bias) in zip(("query", "key", "value"), parts, strict=True):
            weights |= {f"{name}.attention.self.{part}.weight": weight, f"{name}.attention.self.{part}.bias": bias}
        weights |= _named(f"{name}.attention.output.dense", layer.attention_out)
        weights |= _named(f"{name}.attention.output.LayerNorm", layer.attention_norm)
        weights |= _named(f"{name}.intermediate.dense", layer.ffn_in)
        weights |= _named(f"{name}.output.dense", layer.ffn_out)
        weights |= _named(f"{name}.output.LayerNorm", layer.ffn_norm)
    config = _config(encoder, "bert", "BertModel", dim, encoder.table_norm.eps)
    return StockBert(config, weights, dim, None)


def _named(name: str, module: nn.Linear | nn.LayerNorm) -> Weights:
    return {f"{name}.weight": module.weight, f"{name}.bias": module.bias}


class _MegatronBert:
    """A pre-norm encoder in a wider hidden state. All is calculated in float64 and rounded once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._layers = [layer.double() for layer in _copies(encoder)]
        dim, heads = encoder.config.dim, encoder.config.num_heads
        self._dim, self._heads = dim, heads
        # Where they lie in a hidden state.
        self._token, self._input = slice(0, dim), slice(dim, 2 * dim)
        self._mean, self._zero, self._balance, self._plus, self._minus = range(2 * dim, 2 * dim + 5)
        step = math.lcm(heads, CHUNK)
        self._width = math.ceil((2 * dim + 5) / step) * step
        self._eps = self._layers[0].attention_norm.eps
        table = encoder.table.weight.detach().double()
        centred = table - table.mean(1, keepdim=True)
        usual = float(centred.square().mean(1).sqrt().median())
        self._scale = 2.0 ** -round(math.log2(usual or 1.0))  # tokens have numbers of about 1
        self._large = LARGE * 2.0 ** math.ceil(math.log2(float(centred.norm(dim=1).max()) * self._scale or 1.0))

    def build(self) -> StockBert:
        """The whole model."""
        last, name = len(self._layers) - 1, "encoder.layer.{}.{}".format
        weights: Weights = self._embeddings()
        for number, layer in enumerate(self._layers):
            norm = self._blind_norm(self._input, 1 / SMALL) if number == 0 else self._norm(layer.attention_norm)
            weights |= _both(name(number, "attention.ln"), *norm)
            weights |= self._attention(name(number, "attention"), layer, first=number == 0)
            weights |= _both(name(number, "ln"), *self._norm(layer.ffn_norm))
            weights |= _both(name(number, "intermediate.dense"), *self._reading(layer.ffn_in, self._token))
            large = self._large if number == last else 0.0
            weights |= _both(name(number, "output.dense"), *self._adding(layer.ffn_out, large))
        gain, bias = self._blind_norm(self._token, 1 / self._scale)
        gain[self._mean] = gain[self._zero] / SMALL
        weights |= _both("encoder.ln", gain, bias)
        eps = self._eps * self._scale**2 * self._dim / self._width
        config = _config(self._encoder, "megatron-bert", "MegatronBertModel", self._width, eps)
        weights = {name: weight.float() for name, weight in weights.items()}
        return StockBert(config, weights, self._width, self._readout().float())

    def _embeddings(self) -> Weights:
        first, positions = self._layers[0].attention_norm, self._encoder.positions
        assert positions is not None
        table = self._encoder.table.weight.detach().double()
        words = self._state(table * self._scale)
        words[:, self._input] = SMALL * first(table)
        words[:, self._plus], words[:, self._minus] = self._large, -self._large
        places = torch.zeros(len(positions), self._width, dtype=torch.float64)
        places[:, self._input] = SMALL * positions.detach().double()
        for rows in (words, places):  # the whole has mean 0
            rows[:, self._balance] = -rows[:, self._input].sum(1) - rows[:, self._mean]
        return {
            "embeddings.word_embeddings.weight": words,
            "embeddings.position_embeddings.weight": places,
            "embeddings.token_type_embeddings.weight": torch.zeros(1, self._width),
        }

    def _state(self, tokens: Tensor) -> Tensor:
        """Tokens, or what is added to them [..., D] as hidden states [..., W]: the numbers, and apart their mean."""
        states = tokens.new_zeros(*tokens.shape[:-1], self._width)
        mean = tokens.mean(-1, keepdim=True)
        states[..., self._token] = tokens - mean
        states[..., self._mean] = SMALL * mean[..., 0]
        states[..., self._balance] = -states[..., self._mean]
        return states

    def _norm(self, norm: nn.LayerNorm) -> tuple[Tensor, Tensor]:
        """A norm of the tokens' numbers: over W of which all but D are as good as 0."""
        gain, bias = (torch.zeros(self._width, dtype=torch.float64) for _ in range(2))
        gain[self._token] = norm.weight.detach() * math.sqrt(self._dim / self._width)
        bias[self._token] = norm.bias.detach()
        return gain, bias

    def _blind_norm(self, where: slice, factor: float) -> tuple[Tensor, Tensor]:
        """A norm beside the large numbers: what it does to `where`, and to the number that is always 0, is a factor."""
        gain, bias = (torch.zeros(self._width, dtype=torch.float64) for _ in range(2))
        gain[where] = gain[self._zero] = factor * self._large * math.sqrt(2 / self._width)
        return gain, bias

    def _attention(self, name: str, layer: Layer, *, first: bool) -> Weights:
        """Attention with its projections, each head followed by zeros."""
        size, wide = self._dim // self._heads, self._width // self._heads
        weight, bias = self._reading(layer.qkv, self._input if first else self._token)
        rows_of, offsets_of = torch.split(weight, self._dim), torch.split(bias, self._dim)
        parts = zip(("query", "key", "value"), rows_of, offsets_of, strict=True)
        weights: Weights = {}
        for part, rows, offset in parts:
            # Scores are divided by the root of the size of a head.
            gain = math.sqrt(wide / size) if part == "query" else 1.0
            weights |= _both(f"{name}.self.{part}", self._spread(rows * gain), self._spread(offset * gain))
        weight, bias = self._adding(layer.attention_out, -self._large if first else 0.0)
        return weights | _both(f"{name}.output.dense", self._spread(weight.T).T, bias)

    def _spread(self, values: Tensor) -> Tensor:
        """Numbers of the heads [D, ...] with room after each [W, ...]."""
        heads = values.reshape(self._heads, -1, *values.shape[1:])
        spread = values.new_zeros(self._heads, self._width // self._heads, *values.shape[1:])
        spread[:, : heads.shape[1]] = heads
        return spread.flatten(0, 1)

    def _reading(self, linear: nn.Linear, where: slice) -> tuple[Tensor, Tensor]:
        """A linear layer that reads a part of the hidden state: weight [outputs, W] and bias."""
        weight = torch.zeros(linear.out_features, self._width, dtype=torch.float64)
        weight[:, where] = linear.weight.detach()
        if where == self._input:  # what the norm takes for the mean is never quite 0
            weight[:, self._zero] = -weight[:, where].sum(1)
        return weight, linear.bias.detach()

    def _adding(self, linear: nn.Linear, large: float) -> tuple[Tensor, Tensor]:
        """A linear layer whose output is added to tokens: weight [W, inputs] and bias, which adds the large numbers."""
        weight = self._state(linear.weight.detach().T * self._scale).T
        bias = self._state(linear.bias.detach() * self._scale)
        bias[self._plus], bias[self._minus] = large, -large
        return weight, bias

    def _readout(self) -> Tensor:
        readout = torch.zeros(self._dim, self._width, dtype=torch.float64)
        readout[:, self._token] = torch.eye(self._dim)
        readout[:, self._mean] = 1.0
        readout[:, self._zero] = -1.0 - 1.0 / SMALL
        return readout


def _copies(encoder: Encoder) -> list[Layer]:
    copy = Encoder(encoder.config)
    copy.load_state_dict(encoder.state_dict())
    return [layer for layer in copy.layers if isinstance(layer, Layer)]


def _both(name: str, weight: Tensor, bias: Tensor) -> Weights:
    return {f"{name}.weight": weight, f"{name}.bias": bias}
