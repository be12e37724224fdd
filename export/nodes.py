"""An ONNX graph in the making: its operators and constants, by the names of what they give."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8  # the oldest that have LayerNormalization: every supported onnxruntime reads them
CONTRIB = "com.microsoft"


class Nodes:
    """Operators in the order they run, and the constants they read."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}

    def _make_model(self, inputs: Sequence[ValueInfoProto], output: ValueInfoProto) -> ModelProto:
        graph = helper.make_graph(self._nodes, "xsent", inputs, [output], list(self._initializers.values()))
        domains = sorted({node.domain for node in self._nodes})
        opsets = [helper.make_opsetid(domain, 1 if domain else OPSET) for domain in domains]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="xsent")

    def _node(
        self,
        op: str,
        inputs: Sequence[str],
        output: str,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  ONNX types them by operator
    ) -> str:
        """Add an operator, and return the name of what it gives."""
        self._nodes.append(helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def _integers(self, name: str, values: Sequence[int]) -> str:
        # Inside the graph: ONNX Runtime reads shapes before it maps any file.
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._initializers[name] = numpy_helper.from_array(value, name)
        return name
