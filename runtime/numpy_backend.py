"""The encoder in numpy alone, for machines where onnxruntime has no wheel or does not run.

It maps the files of the bundle and repeats the arithmetic of the graph (`xsent.export.graph`) step by step, 8-bit
rounding included, so that its vectors agree with those of the other backends. numpy is slow at products of whole
numbers, so 8-bit weights are held as float32: sums of whole numbers are exact there up to 2^24, which 1,024 products
of a portable bundle stay below; where others go beyond, they are off by 6e-8 of themselves.

Shapes: T tokens, D dimensions, H heads, V pieces.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.blas import ONE_THREAD
from xsent.bundle import Bundle
from xsent.errors import BundleError
from xsent.manifest import Network, TensorEntry

Floats = NDArray[np.float32]

_EPSILON = np.float32(1e-5)  # of every layer norm
# So few tokens are multiplied by blocks of so many outputs: OpenBLAS then takes a kernel that does not copy the weights
# first, a fifth to a third faster on AVX-512, as fast elsewhere.
_FEW, _BLOCK = 20, 32
_DTYPES = ("float32", "float16", "int8", "uint8")


class NumpyBackend:
    """numpy on the CPU, one thread a sentence.

    The token table stays on the disk, of which only the rows of a sentence are read; the layers are held in memory,
    8 MiB each at 512 dimensions.

    Args:
        bundle: The bundle to run.

    Raises:
        BundleError: It was exported before there was this backend, or it is damaged.
    """

    def __init__(self, bundle: Bundle) -> None:
        if bundle.network is None:
            raise BundleError(
                f"{bundle.path}: too old for the numpy backend; export the bundle again: xsent-export {bundle.path} NEW"
            )
        self._dim = bundle.dim
        try:
            weights = _Weights(bundle, bundle.network)
            self._table = _Table(weights, bundle.vocab_size)
            self._layers = [_Layer(weights, f"layer{number}") for number in range(bundle.num_layers)]
            self._positions = weights.mapped("positions") if self._layers else None
            self._table_norm = _Norm(weights, "table_norm") if self._layers and weights.norm == "post" else None
            self._check(bundle.max_length)
        except (LookupError, TypeError, ValueError) as error:
            raise BundleError(
                f"{bundle.path}: its network cannot be read ({error}); export the bundle again"
            ) from error

    def embed(self, ids: NDArray[np.int64]) -> Floats:
        """See `Backend.embed`."""
        x = self._table.rows(ids)  # [T, D]
        with ONE_THREAD:
            vector: Floats = self._run(x)[0]
        return vector

    def _run(self, x: Floats) -> Floats:
        """The rows of a sentence [T, D] to its vector [1, D]."""
        if self._positions is None:
            return _mean(x)
        positions = self._positions[: len(x)]
        if self._table_norm is None:
            return self._pre_norm(x, positions)
        return self._post_norm(self._table_norm(x + positions))

    def _pre_norm(self, x: Floats, positions: Floats) -> Floats:
        """Each layer is x + attention(norm(x)), then x + feed-forward(norm(x))."""
        for number, layer in enumerate(self._layers):
            hidden = layer.attention_norm(x)
            x = x + layer.attend(hidden if number else hidden + positions)
            hidden = layer.expand(layer.ffn_norm(x))
            if number == len(self._layers) - 1:  # as in the graph: one product, not one a token
                x, hidden = _mean(x)[:, : self._dim], _mean(hidden)
            x = x + layer.ffn_out(hidden)
        return x

    def _post_norm(self, x: Floats) -> Floats:
        """Each layer is norm(x + attention(x)), then norm(x + feed-forward(x))."""
        for layer in self._layers:
            x = layer.attention_norm(x + layer.attend(x))
            x = layer.ffn_norm(x + layer.ffn_out(layer.expand(x)))
        return _mean(x)[:, : self._dim]

    def _check(self, max_length: int) -> None:
        """Run the shortest sentence: weights that do not fit each other say so here."""
        if self._positions is not None and len(self._positions) < max_length:
            raise ValueError(f"{len(self._positions)} positions, expected {max_length}")
        vector = self.embed(np.zeros(1, np.int64))
        if vector.shape != (self._dim,):
            raise ValueError(f"its vectors have {len(vector)} numbers, expected {self._dim}")


class _Weights:
    """The weights of a bundle by their names in the graph."""

    def __init__(self, bundle: Bundle, network: Network) -> None:
        if network.norm not in ("pre", "post"):
            raise ValueError(f"norm is {network.norm!r}")
        self.norm, self.heads = network.norm, network.heads
        self._bundle = bundle
        self._tensors: Mapping[str, TensorEntry] = network.tensors

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def mapped(self, name: str) -> NDArray[Any]:
        """A weight as it lies on the disk; only what is used of it is read."""
        entry = self._tensors[name]
        if entry.file not in self._bundle.files or entry.dtype not in _DTYPES:
            raise ValueError(f"{name} is {entry.dtype} in {entry.file}")
        dtype = np.dtype(entry.dtype).newbyteorder("<")
        if entry.offset + dtype.itemsize * math.prod(entry.shape) > self._bundle.files[entry.file].bytes:
            raise ValueError(f"{name} ends after {entry.file}")
        return np.asarray(np.memmap(self._bundle.path / entry.file, dtype, "r", entry.offset, entry.shape))

    def floats(self, name: str) -> Floats:
        """A weight in memory."""
        return np.array(self.mapped(name), np.float32)


class _Table:
    """The token table."""

    def __init__(self, weights: _Weights, vocab_size: int) -> None:
        self._table = weights.mapped("table")  # [V, D] float32 or int8, [V, D / 2] uint8: two numbers a byte
        self._scales = weights.mapped("table.scales") if "table.scales" in weights else None  # [V, blocks of a row]
        if len(self._table) != vocab_size:
            raise ValueError(f"the table has {len(self._table)} rows, expected {vocab_size}")

    def rows(self, ids: NDArray[np.int64]) -> Floats:
        """The vectors of tokens [T, D]."""
        rows = self._table[ids]
        if rows.dtype == np.uint8:
            rows = np.concatenate([rows & 15, rows >> 4], axis=1).astype(np.float32) - 8
        if self._scales is not None:
            scales = self._scales[ids].astype(np.float32)
            rows = (rows.reshape(*scales.shape, -1) * scales[:, :, None]).reshape(rows.shape)
        vectors: Floats = rows
        return vectors


class _Norm:
    """Layer norm."""

    def __init__(self, weights: _Weights, name: str) -> None:
        self._weight, self._bias = weights.floats(f"{name}.weight"), weights.floats(f"{name}.bias")

    def __call__(self, x: Floats) -> Floats:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.square(centred).mean(axis=1, keepdims=True)
        normed: Floats = centred / np.sqrt(variance + _EPSILON) * self._weight + self._bias
        return normed


class _Linear:
    """A linear layer, in 8 bits if its weight is."""

    def __init__(self, weights: _Weights, name: str) -> None:
        # [outputs, inputs]: a few tokens are multiplied up to a third faster so than by [inputs, outputs].
        self._weight = np.ascontiguousarray(weights.mapped(f"{name}.weight").T, np.float32)
        self._bias = weights.floats(f"{name}.bias")
        self._scales = weights.floats(f"{name}.scales") if f"{name}.scales" in weights else None

    def __call__(self, x: Floats) -> Floats:
        if self._scales is None:
            return self._product(x) + self._bias
        numbers, step = quantize(x)
        return self._product(numbers) * (step * self._scales) + self._bias

    def _product(self, x: Floats) -> Floats:
        """The product of x and the weight [T, outputs]."""
        outputs, inputs = self._weight.shape
        if len(x) > _FEW or outputs % _BLOCK:
            return (self._weight @ x.T).T
        return (self._weight.reshape(-1, _BLOCK, inputs) @ x.T).reshape(outputs, -1).T


class _Layer:
    """One layer but for how its parts are joined, which the norm decides."""

    def __init__(self, weights: _Weights, name: str) -> None:
        self._heads = weights.heads
        self.attention_norm, self.ffn_norm = (_Norm(weights, f"{name}.{part}_norm") for part in ("attention", "ffn"))
        self._qkv, self._attention_out = _Linear(weights, f"{name}.qkv"), _Linear(weights, f"{name}.attention_out")
        self._ffn_in, self.ffn_out = _Linear(weights, f"{name}.ffn_in"), _Linear(weights, f"{name}.ffn_out")

    def attend(self, x: Floats) -> Floats:
        """Attention with its projections; the queries' weights hold the scale of the scores."""
        parts = self._qkv(x).reshape(len(x), 3, self._heads, -1)
        query, key, value = parts.transpose(1, 2, 0, 3)  # each [H, T, D / H]
        mixed = _softmax(query @ key.transpose(0, 2, 1)) @ value
        return self._attention_out(mixed.transpose(1, 0, 2).reshape(len(x), -1))

    def expand(self, x: Floats) -> Floats:
        """The inner side of the feed-forward block: SiLU of a projection."""
        hidden = self._ffn_in(x)
        with np.errstate(over="ignore"):  # exp of a large number is infinity, and the quotient 0
            activated: Floats = hidden / (1 + np.exp(-hidden))
            return activated


def quantize(x: Floats) -> tuple[Floats, np.float32]:
    """Round activations to 256 steps between their extremes and 0, as ONNX's DynamicQuantizeLinear does.

    Args:
        x: Numbers of any shape.

    Returns:
        Steps from 0 as whole numbers of the same shape, and the size of a step: their product is nearly `x`.
    """
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    step = (high - low) / np.float32(255) or np.float32(1)
    zero = np.rint(np.clip(-low / step, 0, 255))
    return np.clip(np.rint(x / step), -zero, 255 - zero), step


def _softmax(scores: Floats) -> Floats:
    shares: Floats = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _mean(x: Floats) -> Floats:
    """The mean over the tokens [1, D]."""
    mean: Floats = x.mean(axis=0, keepdims=True)
    return mean
