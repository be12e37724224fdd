"""The weights of a bundle, read without its graph."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import Bundle

Floats = NDArray[np.float32]

_DTYPES = ("float32", "float16", "int8", "uint8")


class Weights:
    """The weights of a bundle by their names in the graph."""

    def __init__(self, bundle: Bundle) -> None:
        self.network = bundle.network
        self._bundle = bundle
        self._tensors = bundle.network.tensors

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

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
