"""The encoder in pure numpy, for machines where onnxruntime has no wheel or does not run.

It maps the files of the bundle and repeats the arithmetic of the graph (`xsent_export.graph`) step by step, 8-bit
rounding included, so that its vectors agree with those of the other backends. numpy is slow at integer products, so
8-bit weights are held as float32, in which sums of whole numbers are exact up to 2^24. Only sums of more than a
thousand products can exceed it; their relative error is 6e-8.

Shapes: T tokens, D dimensions, H heads, V pieces.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.backends.threads import ONE_THREAD
from xsent.bundle import Bundle, Rounding
from xsent.errors import BundleError
from xsent.similarity import Floats

# Up to `_FEW` tokens are multiplied in blocks of `_BLOCK` outputs: OpenBLAS then uses a kernel that does not copy the
# weights first, which is a fifth to a third faster on AVX-512 and equally fast elsewhere.
_FEW = 20
_BLOCK = 32
_FRAME = 2  # the first and the last token


class NumpyBackend:
    """numpy on the CPU, one thread per sentence; memory-maps the table, layers use 4 bytes per weight.

    Raises BundleError if the network of the bundle cannot be read.
    """

    def __init__(self, bundle: Bundle) -> None:
        network = bundle.network
        self._dim = bundle.dim
        try:
            self._table = Table(bundle)
            self._layers = [_Layer(bundle, f"layer{number}") for number in range(bundle.layers)]
            has_readouts = any(name.startswith("readout") for name in network.tensors)
            self._readout = _Readout(bundle, f"readout{bundle.layers}") if has_readouts else None
            self._first = [network.first]
            self._last = [network.last]
            framed = has_readouts or bool(self._layers)  # otherwise the vector is just the mean of the rows
            self._positions = bundle.mapped("positions") if framed else None
            self._table_norm = _Norm(bundle, "table_norm") if framed else None
            if self._positions is not None and len(self._positions) < bundle.max_length + _FRAME:
                raise ValueError(f"{len(self._positions)} positions, expected {bundle.max_length + _FRAME}")
            vector = self._embed(np.zeros(1, np.int64))  # raises an error if the shapes of weights do not match
            if vector.shape != (self._dim,):
                raise ValueError(f"its vectors have {len(vector)} numbers, expected {self._dim}")
        except (LookupError, TypeError, ValueError) as error:
            raise BundleError(
                f"{bundle.path}: its network cannot be read ({error}); export the bundle again"
            ) from error

    def embed(self, ids: NDArray[np.int64]) -> Floats:
        """See `Backend.embed`; one sentence after the other."""
        with ONE_THREAD:
            return np.stack([self._embed(one) for one in ids])

    def _embed(self, ids: NDArray[np.int64]) -> Floats:
        framed = ids if self._table_norm is None else np.concatenate([self._first, ids, self._last])
        x = self._table(framed)  # [T, D] or, with the first and the last token, [T + 2, D]
        if self._table_norm is not None and self._positions is not None:
            x = self._table_norm(x + self._positions[: len(x)])
        for layer in self._layers:
            x = layer(x)
        vector: Floats = x.mean(axis=0)[: self._dim] if self._readout is None else self._readout(x)
        return vector


class Table:
    """The rows of a bundle's table, memory-mapped. Raises LookupError or ValueError if they cannot be read."""

    def __init__(self, bundle: Bundle) -> None:
        # [V, D] float32 or int8, or [V, D / 2] uint8, two numbers per byte; scales are [V, blocks per row].
        self._rows = bundle.mapped("table")
        self._scales = bundle.mapped("table.scales") if "table.scales" in bundle.network.tensors else None
        if len(self._rows) != bundle.vocab_size:
            raise ValueError(f"the table has {len(self._rows)} rows, expected {bundle.vocab_size}")

    def __call__(self, pieces: NDArray[np.int64]) -> Floats:
        """The rows of pieces [n, D]."""
        return unpack_rows(self._rows[pieces], None if self._scales is None else self._scales[pieces])


class _Norm:
    """Layer norm."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self._weight = bundle.floats(f"{name}.weight")
        self._bias = bundle.floats(f"{name}.bias")
        self._epsilon = np.float32(bundle.network.norm_eps)

    def __call__(self, x: Floats) -> Floats:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.square(centred).mean(axis=1, keepdims=True)
        normed: Floats = centred / np.sqrt(variance + self._epsilon) * self._weight + self._bias
        return normed


class _Linear:
    """A linear layer, computed in 8 bits if its weight is 8-bit."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        # [outputs, inputs]: for a few tokens up to a third faster than [inputs, outputs].
        self._weight = np.ascontiguousarray(bundle.mapped(f"{name}.weight").T, np.float32)
        self._bias = bundle.floats(f"{name}.bias")
        self._scales = bundle.floats(f"{name}.scales") if f"{name}.scales" in bundle.network.tensors else None
        self._smoothing = bundle.floats(f"{name}.smoothing") if f"{name}.smoothing" in bundle.network.tensors else None
        self._rounding = bundle.network.rounding.get(name)

    def __call__(self, x: Floats) -> Floats:
        if self._scales is None:
            return self._product(x) + self._bias
        x = x if self._smoothing is None else x * self._smoothing
        numbers, step = quantize(x) if self._rounding is None else round_to_grid(x, self._rounding)
        return self._product(numbers) * (step * self._scales) + self._bias

    def _product(self, x: Floats) -> Floats:
        """The product of x and the weight [T, outputs]."""
        outputs, inputs = self._weight.shape
        if len(x) > _FEW or outputs % _BLOCK:
            return (self._weight @ x.T).T
        return (self._weight.reshape(-1, _BLOCK, inputs) @ x.T).reshape(outputs, -1).T


class _Readout:
    """The mean of the tokens, weighted by a query if there is one, through a linear layer."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self._linear = _Linear(bundle, name)
        query = f"{name}.query"
        self._query = bundle.floats(query) if query in bundle.network.tensors else None

    def __call__(self, x: Floats) -> Floats:
        mean: Floats = x.mean(axis=0) if self._query is None else softmax(x @ self._query) @ x
        vector: Floats = self._linear(mean[None])[0]
        return vector


class _Layer:
    """One layer: norm(x + attention(x)), then norm(x + feed-forward(x))."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        if (activation := bundle.network.activation) not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}")
        self._heads = bundle.network.heads
        self._activation = ACTIVATIONS[activation]
        self._qkv = _Linear(bundle, f"{name}.qkv")
        self._attention_out = _Linear(bundle, f"{name}.attention_out")
        self._attention_norm = _Norm(bundle, f"{name}.attention_norm")
        self._ffn_in = _Linear(bundle, f"{name}.ffn_in")
        self._ffn_out = _Linear(bundle, f"{name}.ffn_out")
        self._ffn_norm = _Norm(bundle, f"{name}.ffn_norm")

    def __call__(self, x: Floats) -> Floats:
        """Transform tokens [T, D]."""
        x = self._attention_norm(x + self._attend(x))
        return self._ffn_norm(x + self._ffn_out(self._activation(self._ffn_in(x))))

    def _attend(self, x: Floats) -> Floats:
        """Attention with its projections; the queries' weights hold the scale of the scores."""
        parts = self._qkv(x).reshape(len(x), 3, self._heads, -1)
        query, key, value = parts.transpose(1, 2, 0, 3)  # each [H, T, D / H]
        mixed = softmax(query @ key.transpose(0, 2, 1)) @ value
        return self._attention_out(mixed.transpose(1, 0, 2).reshape(len(x), -1))


def unpack_rows(rows: NDArray[Any], scales: NDArray[Any] | None) -> Floats:
    """Dequantise rows of a table [n, D], with the scales of their blocks."""
    if rows.dtype == np.uint8:  # two numbers per byte
        rows = np.concatenate([rows & 15, rows >> 4], axis=1).astype(np.float32) - 8
    if scales is not None:
        rows = (rows.reshape(*scales.shape, -1) * scales.astype(np.float32)[:, :, None]).reshape(rows.shape)
    return rows


def softmax(scores: Floats) -> Floats:
    """Softmax along the last axis."""
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    normed: Floats = shares / shares.sum(axis=-1, keepdims=True)
    return normed


def gelu(x: Floats) -> Floats:
    """The product of x and the share of the normal distribution below x, off by at most 5e-7.

    By formula 7.1.26 of Abramowitz and Stegun (1964), which is Hastings' (1955): for z >= 0 and t = 1 / (1 + p z),
    erfc(z) = (a1 t + ... + a5 t^5) exp(-z^2), off by at most 1.5e-7.
    """
    size = np.abs(x)
    t = 1 / (1 + size * _HASTINGS_P)
    tail = t * _HASTINGS[0]
    for factor in _HASTINGS[1:]:  # in place: fresh memory costs more than the sums
        tail += factor
        tail *= t
    size *= tail
    np.multiply(x, x, out=tail)
    tail *= np.float32(-0.5)
    size *= np.exp(tail, out=tail)
    return np.maximum(x, 0) - size


# p / sqrt(2) and a5 / 2 ... a1 / 2: the share of the normal distribution above x is erfc(x / sqrt(2)) / 2.
_HASTINGS_P = np.float32(0.3275911 / math.sqrt(2))
_HASTINGS = tuple(np.float32(a / 2) for a in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))


def silu(x: Floats) -> Floats:
    """The product of x and its logistic function."""
    with np.errstate(over="ignore"):  # exp of a large number is infinity, and the quotient 0
        activated: Floats = x / (1 + np.exp(-x))
    return activated


ACTIVATIONS = {"gelu": gelu, "silu": silu}


def round_to_grid(x: Floats, rounding: Rounding) -> tuple[Floats, Floats]:
    """Activations [T, inputs] in whole steps from 0, and the steps, one for all or of each token [T, 1]."""
    above, step, largest = 255 - rounding.zero, np.float32(rounding.step), np.ones((1, 1), np.float32)
    if rounding.by_token:
        step, least = np.float32(1 / above), np.float32(rounding.step * above)
        largest = np.maximum(np.abs(x).max(axis=1, keepdims=True), least)
        x = x / largest
    return np.clip(np.rint(x / step), -np.float32(rounding.zero), np.float32(above)), step * largest


def quantize(x: Floats) -> tuple[Floats, np.float32]:
    """Activations of a sentence in whole steps from 0, and the step, as by ONNX's DynamicQuantizeLinear.

    For bundles of earlier versions.
    """
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    step = (high - low) / np.float32(255) or np.float32(1)
    zero = np.rint(np.clip(-low / step, 0, 255))
    return np.clip(np.rint(x / step), -zero, 255 - zero), step
