"""Backends, which turn token ids into a vector with the weights of a bundle."""

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import Bundle
from xsent.errors import BackendError


class Backend(Protocol):
    """Runs a bundle at the depth that it was opened for; may be called from several threads at once."""

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors [B, D], not normalised, of sentences with equally many piece ids [B, T], 1 <= T <= max_length.

        Each has the same bits as that of the sentence by itself.
        """


# Only the requested one is imported.
BACKENDS = {
    "onnx": "xsent.backends.onnx:OnnxBackend",
    "openvino": "xsent.backends.openvino:OpenVinoBackend",
    "numpy": "xsent.backends.numpy:NumpyBackend",
}


def default_backend() -> str:
    """The backend to use if none is given: "onnx", or "numpy" if onnxruntime is not installed."""
    return "onnx" if find_spec("onnxruntime") else "numpy"


def open_backend(name: str, bundle: Bundle) -> Backend:
    """Open a bundle with one of `BACKENDS`; raises BackendError if there is no such backend."""
    if name not in BACKENDS:
        raise BackendError(f"backend {name!r} is not available; available: {', '.join(sorted(BACKENDS))}")
    backend: Backend = resolve_name(BACKENDS[name])(bundle)
    return backend
