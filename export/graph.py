"""The encoder as an ONNX graph: token ids in, the sentence vector out.

`input_ids` int64 [1, T] -> `sentence_embedding` float32 [1, D], not normalised: look-up, layers and mean inside.
Written node by node, not traced, so that the same weights always give the same bytes and every operator is one that
ONNX Runtime runs fast.

Shapes: T tokens, D dimensions, H heads.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper
from torch import Tensor, nn

from xsent.bundle import GRAPH, TABLE, WEIGHTS
from xsent.export.quantization import quantize_columns, quantize_rows
from xsent.export.storage import ExternalFile
from xsent.train.model import Encoder, Layer

Precision = Literal["int8", "float32"]

INPUT, OUTPUT = "input_ids", "sentence_embedding"
OPSET, IR_VERSION = 17, 8  # the oldest that have LayerNormalization: every supported onnxruntime reads them
CONTRIB = "com.microsoft"


class EncoderGraph:
    """An encoder as a graph and its two files of weights.

    Args:
        encoder: The trained encoder.
        precision: "int8", or "float32" for the same graph without quantisation.

    Raises:
        ValueError: A weight is not finite.
    """

    def __init__(self, encoder: Encoder, precision: Precision) -> None:
        self._precision = precision
        self._dim = encoder.config.dim
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._table = ExternalFile(TABLE)
        self._weights = ExternalFile(WEIGHTS)
        self._encoder(encoder)

    def write(self, folder: Path) -> None:
        """Write the graph and its weights into a folder."""
        (folder / GRAPH).write_bytes(self._model().SerializeToString(deterministic=True))
        self._table.write(folder)
        self._weights.write(folder)

    def _model(self) -> ModelProto:
        graph = helper.make_graph(
            self._nodes,
            "xsent",
            [helper.make_tensor_value_info(INPUT, TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, self._dim])],
            list(self._initializers.values()),
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="xsent")

    def _encoder(self, encoder: Encoder) -> None:
        x = self._look_up(encoder.table)  # [1, T, D]
        if encoder.positions is None:
            self._mean(x, OUTPUT)
            return
        positions: str | None = self._positions(encoder.positions)
        if encoder.table_norm is not None:
            self._post_norm_layers(encoder, self._node("Add", [x, str(positions)], "positioned"))
            return
        last = len(encoder.layers) - 1
        for number, layer in enumerate(encoder.layers):
            assert isinstance(layer, Layer)
            x = self._attention(f"layer{number}", layer, x, positions)
            x = self._feed_forward(f"layer{number}", layer, x, last=number == last)
            positions = None

    def _post_norm_layers(self, encoder: Encoder, x: str) -> None:
        assert encoder.table_norm is not None
        x = self._norm("table_norm", encoder.table_norm, x)
        for number, layer in enumerate(encoder.layers):
            assert isinstance(layer, Layer)
            name = f"layer{number}"
            x = self._node("Add", [x, self._mix(name, layer, x)], f"{name}.attended")
            x = self._norm(f"{name}.attention_norm", layer.attention_norm, x)
            hidden = self._linear(f"{name}.ffn_out", layer.ffn_out, self._expand(name, layer, x))
            x = self._node("Add", [x, hidden], f"{name}.out")
            x = self._norm(f"{name}.ffn_norm", layer.ffn_norm, x)
        self._mean(x, OUTPUT)

    def _look_up(self, table: nn.Embedding) -> str:
        values = _array(table.weight)
        if self._precision == "float32":
            return self._node("Gather", [self._weight("table", values, self._table), INPUT], "embedded")
        # Scaled after the look-up, so that only the rows of the sentence are ever read from the disk.
        numbers, scales = quantize_rows(values)
        rows = self._node("Gather", [self._weight("table", numbers, self._table), INPUT], "rows")
        scale = self._node("Gather", [self._weight("table.scales", scales), INPUT], "row_scales")  # [1, T, 1]
        rows = self._node("Cast", [rows], "rows_float", to=TensorProto.FLOAT)
        return self._node("Mul", [rows, scale], "embedded")

    def _positions(self, positions: Tensor) -> str:
        length = self._node("Shape", [INPUT], "length", start=1, end=2)
        inputs = [self._weight("positions", _array(positions)), self._integers("zero", [0]), length]
        return self._node("Slice", inputs, "first_positions")

    def _attention(self, name: str, layer: Layer, x: str, positions: str | None) -> str:
        """Add attention(norm(x) + positions) to x."""
        hidden = self._norm(f"{name}.attention_norm", layer.attention_norm, x)
        if positions is not None:
            hidden = self._node("Add", [hidden, positions], f"{name}.positioned")
        return self._node("Add", [x, self._mix(name, layer, hidden)], f"{name}.attended")

    def _mix(self, name: str, layer: Layer, hidden: str) -> str:
        """Attention with its projections."""
        # The scale of the attention scores, folded into the queries.
        gain = np.ones(3 * self._dim, np.float32)
        gain[: self._dim] = (self._dim // layer.num_heads) ** -0.5
        hidden = self._linear(f"{name}.qkv", layer.qkv, hidden, gain)
        hidden = self._attend(f"{name}.heads", layer.num_heads, hidden)
        return self._linear(f"{name}.attention_out", layer.attention_out, hidden)

    def _expand(self, name: str, layer: Layer, x: str) -> str:
        """The inner side of the feed-forward block."""
        hidden = self._linear(f"{name}.ffn_in", layer.ffn_in, x)
        return self._node("QuickGelu", [hidden], f"{name}.silu", CONTRIB, alpha=1.0)  # x * sigmoid(x)

    def _attend(self, name: str, heads: int, qkv: str) -> str:
        """Mix the values of all tokens; plain operators, as the fused ones are no faster for one sentence."""
        split = self._integers("split_heads", [-1, 3, heads, self._dim // heads])
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        hidden = self._node("Reshape", [qkv, split], f"{name}.split")  # [T, 3, H, D/H]
        self._nodes.append(helper.make_node("Split", [hidden], parts, name=f"{name}.parts", axis=1))
        turned = zip(parts, ([1, 2, 0, 3], [1, 2, 3, 0], [1, 2, 0, 3]), strict=True)
        query, key, value = (self._node("Transpose", [p], f"{p}.turned", perm=perm) for p, perm in turned)
        scores = self._node("MatMul", [query, key], f"{name}.scores")  # [1, H, T, T]
        shares = self._node("Softmax", [scores], f"{name}.shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{name}.mixed")  # [1, H, T, D/H]
        mixed = self._node("Transpose", [mixed], f"{name}.turned", perm=[0, 2, 1, 3])
        return self._node("Reshape", [mixed, self._integers("join_heads", [1, -1, self._dim])], name)

    def _feed_forward(self, name: str, layer: Layer, x: str, *, last: bool) -> str:
        """Add feed_forward(norm(x)) to x; for the last layer only its mean over the tokens [1, D]."""
        hidden = self._expand(name, layer, self._norm(f"{name}.ffn_norm", layer.ffn_norm, x))
        if last:
            # The mean is linear: taken before the last projection, that runs once, not once a token.
            x, hidden = self._mean(x, "mean"), self._mean(hidden, "mean_hidden")
        hidden = self._linear(f"{name}.ffn_out", layer.ffn_out, hidden)
        return self._node("Add", [x, hidden], OUTPUT if last else f"{name}.out")

    def _norm(self, name: str, norm: nn.LayerNorm, x: str) -> str:
        weights = [self._weight(f"{name}.{p}", _array(getattr(norm, p))) for p in ("weight", "bias")]
        return self._node("LayerNormalization", [x, *weights], name, axis=-1, epsilon=norm.eps)

    def _mean(self, x: str, name: str) -> str:
        return self._node("ReduceMean", [x], name, axes=[1], keepdims=0)

    def _linear(self, name: str, linear: nn.Linear, x: str, gain: NDArray[np.float32] | None = None) -> str:
        """Add a linear layer; `gain` [outputs] multiplies what comes out."""
        weight, bias = _array(linear.weight).T, _array(linear.bias)  # [inputs, outputs], [outputs]
        if gain is not None:
            weight, bias = weight * gain, bias * gain
        bias_name = self._weight(f"{name}.bias", bias)
        if self._precision == "float32":
            product = self._node("MatMul", [x, self._weight(f"{name}.weight", weight)], f"{name}.product")
            return self._node("Add", [product, bias_name], name)
        # Activations get one scale a sentence, found anew each time.
        numbers, scales = quantize_columns(weight)
        columns = [self._weight(f"{name}.weight", numbers), self._weight(f"{name}.scales", scales)]
        return self._node("DynamicQuantizeMatMul", [x, *columns, "", bias_name], name, CONTRIB)

    def _node(
        self,
        op: str,
        inputs: Sequence[str],
        output: str,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  ONNX types them by operator
    ) -> str:
        self._nodes.append(helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def _weight(self, name: str, values: NDArray[np.generic], file: ExternalFile | None = None) -> str:
        self._initializers[name] = (file or self._weights).add(name, values)
        return name

    def _integers(self, name: str, values: Sequence[int]) -> str:
        # Inside the graph: ONNX Runtime reads shapes before it maps any file.
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.detach().float().cpu().numpy()
