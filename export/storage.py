"""Weights beside the graph: ONNX external data, page-aligned, so that ONNX Runtime maps it into memory."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

PAGE = 4096


class ExternalFile:
    """A file of tensors that an ONNX graph refers to.

    Attributes:
        name: The file's name, relative to the graph's folder.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._arrays: list[tuple[int, NDArray[np.generic]]] = []
        self._end = 0

    def add(self, name: str, array: NDArray[np.generic]) -> TensorProto:
        """Give an array the next free page.

        Args:
            name: Name of the tensor in the graph.
            array: The values; kept, not copied.

        Returns:
            The tensor that refers to the file.
        """
        offset = -(-self._end // PAGE) * PAGE
        self._arrays.append((offset, array))
        self._end = offset + array.nbytes
        tensor = TensorProto(
            name=name,
            dims=array.shape,
            data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (("location", self.name), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    def write(self, folder: Path) -> None:
        """Write the file into the graph's folder; little-endian, gaps are zeros."""
        with (folder / self.name).open("wb") as file:
            for offset, array in self._arrays:
                file.write(b"\0" * (offset - file.tell()))
                file.write(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).data)
