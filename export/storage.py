"""Weights beside the graph: ONNX external data, page-aligned, so that ONNX Runtime maps it into memory."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

PAGE = 4096


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
