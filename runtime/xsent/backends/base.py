"""Backends, which turn token ids into a vector with the weights of a bundle."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from threading import Thread
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


@contextmanager
def preload_backend(name: str) -> Iterator[None]:
    """Import the package of a backend in a second thread while the caller loads something else.

    Only onnxruntime is slow enough to benefit. The backend itself is opened in the caller's thread: in a second one it
    takes 5 MiB more. An import that fails here fails again in `open_backend`, which reports why.
    """
    if name != "onnx" or "onnxruntime" in sys.modules:
        yield
        return

    def run() -> None:
        with suppress(Exception):
            import_module("onnxruntime")

    thread = Thread(target=run, name="xsent-import")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def open_backend(name: str, bundle: Bundle) -> Backend:
    """Open a bundle with one of `BACKENDS`; raises BackendError if there is no such backend."""
    if name not in BACKENDS:
        raise BackendError(f"backend {name!r} is not available; available: {', '.join(sorted(BACKENDS))}")
    backend: Backend = resolve_name(BACKENDS[name])(bundle)
    return backend
