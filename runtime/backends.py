"""What runs a bundle's graph."""

from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import Bundle
from xsent.errors import BackendError


class Backend(Protocol):
    """Runs the graph of a bundle; may be called from several threads at once."""

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Encode one sentence.

        Args:
            ids: Piece ids [T], 1 <= T <= max_length.

        Returns:
            The sentence vector [D], not normalised.
        """
        ...


# Module and class: only the one that is asked for is loaded.
BACKENDS = {
    "onnx": ("xsent.onnx_backend", "OnnxBackend"),
    "openvino": ("xsent.openvino_backend", "OpenVinoBackend"),
    "numpy": ("xsent.numpy_backend", "NumpyBackend"),
}


def default_backend() -> str:
    """The backend to use where none is named: "onnx", or "numpy" where onnxruntime is not installed."""
    return "onnx" if find_spec("onnxruntime") else "numpy"


def open_backend(name: str, bundle: Bundle) -> Backend:
    """Open a bundle with a backend.

    Args:
        name: One of `BACKENDS`.
        bundle: The bundle.

    Raises:
        BackendError: There is no such backend; names those there are.
        BundleError: The bundle lacks what the backend runs, or it is damaged.
        MissingExtraError: The backend's package is not installed.
    """
    if name not in BACKENDS:
        raise BackendError(f"backend {name!r} is not available; available: {', '.join(sorted(BACKENDS))}")
    module, kind = BACKENDS[name]
    backend: Backend = getattr(import_module(module), kind)(bundle)
    return backend
