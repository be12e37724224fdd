"""An LSTM of any size with random weights in both directions, pooled by the largest: the shape of LASER2."""

from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from xsent.bench.latency import quiet
from xsent.bench.peers.shapes import Shape
from xsent.export.nodes import Nodes

DIRECTIONS, GATES = 2, 4


class LstmGraph(Nodes):
    """Ids and mask, int64 [B, T], to vectors, float32 [B, 2 x width]; what is masked moves nothing."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._rng = np.random.default_rng(0)
        self._shape = shape

    def model(self) -> ModelProto:
        """The whole in float32."""
        shape, mask = self._shape, "attention_mask"
        out = DIRECTIONS * shape.width
        rows = self._node("Gather", [self._weight("table", shape.vocabulary, shape.row), "input_ids"], "rows")
        states = self._node("Transpose", [rows], "steps", perm=[1, 0, 2])
        counts = self._node("ReduceSum", [mask, self._integers("tokens", [1])], "counts", keepdims=0)
        lengths = self._node("Cast", [counts], "lengths", to=TensorProto.INT32)
        for layer in range(shape.layers):
            states = self._layer(f"layer{layer}", states, lengths, shape.row if layer == 0 else out)
        steps = self._node("Transpose", [mask], "mask_steps", perm=[1, 0])
        real = self._node("Cast", [steps], "real_steps", to=TensorProto.BOOL)
        real = self._node("Unsqueeze", [real, self._integers("last", [2])], "real")
        lowest = self._constant("lowest", np.array(-np.inf, np.float32))
        kept = self._node("Where", [real, states, lowest], "kept")
        pooled = self._node("ReduceMax", [kept], "sentence_embedding", axes=[0], keepdims=0)
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("input_ids", mask)]
        return self._make_model(inputs, helper.make_tensor_value_info(pooled, TensorProto.FLOAT, ["batch", out]))

    def _layer(self, name: str, states: str, lengths: str, width: int) -> str:
        """States [T, B, 2 x hidden] of a layer from those of the one before, [T, B, width]."""
        hidden = self._shape.width
        weights = [
            self._weight(f"{name}.input", DIRECTIONS, GATES * hidden, width),
            self._weight(f"{name}.state", DIRECTIONS, GATES * hidden, hidden),
            self._weight(f"{name}.bias", DIRECTIONS, 2 * GATES * hidden),
        ]
        both = self._node(
            "LSTM", [states, *weights, lengths], f"{name}.both", hidden_size=hidden, direction="bidirectional"
        )
        beside = self._node("Transpose", [both], f"{name}.beside", perm=[0, 2, 1, 3])
        return self._node("Reshape", [beside, self._integers(f"{name}.shape", [0, 0, -1])], f"{name}.states")

    def _weight(self, name: str, *shape: int) -> str:
        return self._constant(name, 0.05 * self._rng.standard_normal(shape, np.float32))


def write_lstm(shape: Shape, folder: Path) -> None:
    """`onnx/model.onnx` in int8 by ONNX Runtime's own tools."""
    graph = folder / "onnx" / "model.onnx"
    graph.parent.mkdir()
    with quiet():
        quantize_dynamic(LstmGraph(shape).model(), graph, weight_type=QuantType.QInt8)
