"""The encoder as one ONNX file that contains its weights, for other tools.

Shapes: B sentences, T tokens of the longest, D dimensions, H heads.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from xsent.errors import DataError
from xsent.files.atomic import atomic_file
from xsent_export.graph import INPUT, MASK, OUTPUT, STATES, EncoderGraph, ExternalFile
from xsent_export.quantization import quantize_freely
from xsent_train.model import Encoder, ModelConfig

MAX_BYTES = 2**31 - 1  # of a protobuf message


class OneFileGraph(EncoderGraph):
    """A graph of all layers that contains its weights."""

    def serialized(self, name: Path, place: str) -> bytes:
        """The model as bytes. Raises DataError if it is too large for `place`."""
        model = self.model()
        if (size := model.ByteSize()) > MAX_BYTES:
            raise DataError(f"{name}: {size / 1e9:.1f} GB do not fit into {place}")
        return bytes(model.SerializeToString(deterministic=True))

    def write_file(self, path: Path) -> None:
        """Write the graph as one ONNX file. Raises DataError if it is too large."""
        model = self.serialized(path, "one ONNX file of at most 2.1; export to int8")
        with atomic_file(path) as file:
            file.write(model)

    def _branch(self, encoder: Encoder, depth: int, x: str) -> None:
        pass  # one graph, of all layers

    def _weight(self, name: str, values: NDArray[np.generic], file: ExternalFile | None = None) -> str:
        return self._constant(name, np.ascontiguousarray(values))


class BatchGraph(OneFileGraph):
    """A graph for padded batches that contains its weights, with only standard operators.

    `input_ids`, `attention_mask` int64 [B, T] -> `sentence_embedding` float32 [B, D], not normalised, and with layers
    `last_hidden_state` [B, T, width], the tokens before the mean; if a readout weighs them, each is the vector. With
    layers or a readout, the ids have to include the first and the last token of each sentence. In int8, weights are
    stored in 8 bits but computed in float32, so a vector depends neither on padding nor on the other sentences.
    """

    def model(self) -> ModelProto:
        """The graph with its weights."""
        shape = ["batch", "tokens"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in (INPUT, MASK)]
        outputs = [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", self._spec.dim])]
        if last := self._spec.num_layers:  # for tools that pool themselves
            width = self._width
            if self._weighs:
                one, width = self._integers("one", [1]), self._spec.dim
                row = self._node("Unsqueeze", [OUTPUT, one], "vector.row")
                states = self._node(
                    "Expand", [row, self._node("Concat", [one, self._length, one], "states_shape", axis=0)], STATES
                )
            else:
                states = self._node("Identity", [f"layer{last - 1}.ffn_norm"], STATES)
            outputs.append(helper.make_tensor_value_info(states, TensorProto.FLOAT, [*shape, width]))
        return self._make_model(inputs, *outputs)

    def _frame(self, config: ModelConfig) -> str:
        return INPUT  # the ids include the first and the last token

    def _swap(self, x: str, name: str) -> str:
        return x  # [B, T, D] all the way

    def _is_real(self, ids: str) -> str:
        """Whether each position holds a token [B, T]."""
        return self._node("Cast", [MASK], "is_real", to=TensorProto.BOOL)

    def _prepare(self, ids: str) -> None:
        self._length = self._node("Shape", [ids], "length", start=1, end=2)  # [1]
        real = self._is_real(ids)
        # Selected, not computed: OpenVINO takes (mask - 1) * 1e9 for scaled 8-bit numbers and loses the attention.
        one = self._constant("1", np.array(1, np.float32))
        zero = self._constant("0", np.array(0, np.float32))
        below = self._constant("-1e9", np.array(-1e9, np.float32))
        mask = self._node("Where", [real, one, zero], "mask")  # [B, T]
        self._real = self._node("Unsqueeze", [mask, self._integers("last_axis", [-1])], "real")  # [B, T, 1]
        count = self._node("ReduceSum", [mask, self._integers("one", [1])], "count", keepdims=1)  # [B, 1]
        # The vector of an empty sentence is zero.
        self._count = self._node("Max", [count, one], "real_count")
        if self._spec.num_layers or self._weighs:
            self._hidden = self._node("Where", [real, zero, below], "hidden")
        if self._spec.num_layers:
            axes = self._integers("heads_and_queries", [1, 2])
            self._below = self._node("Unsqueeze", [self._hidden, axes], "score_mask")

    def _mean(self, x: str, name: str) -> str:
        total = self._node("Mul", [x, self._real], f"{name}.real")
        total = self._node("ReduceSum", [total, self._integers("one", [1])], f"{name}.total", keepdims=0)
        return self._node("Div", [total, self._count], name)

    def _weighted_mean(self, scores: str, x: str) -> str:
        return super()._weighted_mean(self._node("Add", [scores, self._hidden], "real_scores"), x)

    def _attend(self, name: str, heads: int, qkv: str) -> str:
        size = self._width // heads
        hidden = self._node("Reshape", [qkv, self._integers("split_heads", [0, 0, 3, heads, size])], f"{name}.split")
        # [3, B, H, T, D/H]
        hidden = self._node("Transpose", [hidden], f"{name}.turned", perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self._node("Gather", [hidden, self._constant(part, np.array(i, np.int64))], f"{name}.{part}", axis=0)
            for i, part in enumerate(("query", "key", "value"))
        )
        key = self._node("Transpose", [key], f"{name}.key.turned", perm=[0, 1, 3, 2])
        products = self._node("MatMul", [query, key], f"{name}.products")
        scores = self._node("Add", [products, self._below], f"{name}.scores")
        shares = self._node("Softmax", [scores], f"{name}.shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{name}.mixed")
        mixed = self._node("Transpose", [mixed], f"{name}.joined", perm=[0, 2, 1, 3])
        return self._node("Reshape", [mixed, self._integers("join_heads", [0, 0, self._width])], name)

    def _activate(self, x: str, name: str) -> str:
        if self._config.activation == "silu":
            return self._node("Mul", [x, self._node("Sigmoid", [x], f"{name}.gate")], name)
        # x * (1 + erf(x / sqrt(2))) / 2, in the order that readers of ONNX recognise as one operator.
        root, one, half = (self._constant(f"gelu.{v:.1f}", np.array(v, np.float32)) for v in (2**0.5, 1, 0.5))
        gate = self._node("Erf", [self._node("Div", [x, root], f"{name}.scaled")], f"{name}.erf")
        gate = self._node("Mul", [x, self._node("Add", [gate, one], f"{name}.gate")], f"{name}.double")
        return self._node("Mul", [gate, half], name)

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        if self._spec.precision == "float32":
            return self._float_product(name, x, weight, bias)
        numbers, scales = quantize_freely(weight)
        # Not DequantizeLinear, which ONNX Runtime fuses with the product and then computes in 8 bits.
        matrix = self._node("Cast", [self._weight(f"{name}.weight", numbers)], f"{name}.numbers", to=TensorProto.FLOAT)
        matrix = self._node("Mul", [matrix, self._weight(f"{name}.scales", scales)], f"{name}.matrix")
        product = self._node("MatMul", [x, matrix], f"{name}.product")
        return self._node("Add", [product, self._weight(f"{name}.bias", bias)], name)
