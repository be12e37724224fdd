"""An ONNX graph in the making: operators and constants by the names of what they give, and the weights beside it.

Weights are ONNX external data, page-aligned, so that ONNX Runtime maps them into memory.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8  # the oldest that have LayerNormalization: every supported onnxruntime reads them
CONTRIB = "com.microsoft"
PAGE = 4096


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

    def _node(self, op: str, inputs: Sequence[str], name: str, domain: str = "", **kwargs: Any) -> str:  # noqa: ANN401
        """Add an operator, with ONNX's attributes of it, and return the name of what it gives."""
        self._nodes.append(helper.make_node(op, inputs, [name], name=name, domain=domain, **kwargs))
        return name

    def _integers(self, name: str, values: Sequence[int]) -> str:
        # Inside the graph: ONNX Runtime reads shapes before it maps any file.
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._initializers[name] = numpy_helper.from_array(value, name)
        return name


class ExternalFile:
    """A file of tensors that an ONNX graph refers to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._arrays: list[tuple[int, NDArray[np.generic]]] = []
        self._end = 0
        self.places: dict[str, dict[str, object]] = {}  # see `xsent.manifest.TensorEntry`

    def add(self, name: str, array: NDArray[np.generic]) -> TensorProto:
        """Give an array, which is not copied, the next free page; returns what refers to it in the graph."""
        offset, shape = -(-self._end // PAGE) * PAGE, list(array.shape)
        self._arrays.append((offset, array))
        self._end = offset + array.nbytes
        self.places[name] = {"file": self._name, "offset": offset, "dtype": array.dtype.name, "shape": shape}
        kind, outside = helper.np_dtype_to_tensor_dtype(array.dtype), TensorProto.EXTERNAL
        tensor = TensorProto(name=name, dims=shape, data_type=kind, data_location=outside)
        for key, value in (("location", self._name), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    def write(self, folder: Path) -> None:
        """Write the file into the graph's folder; little-endian, gaps are zeros."""
        with (folder / self._name).open("wb") as file:
            for offset, array in self._arrays:
                file.write(b"\0" * (offset - file.tell()))
                file.write(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).data)
