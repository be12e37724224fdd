"""What runs a bundle's graph."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import Bundle
from xsent.errors import BackendError, BundleError, MissingExtraError
from xsent.numpy_backend import NumpyBackend
from xsent.openvino_backend import OpenVinoBackend


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


class OnnxBackend:
    """ONNX Runtime on the CPU, one thread a sentence.

    Args:
        bundle: The bundle to run.

    Raises:
        BundleError: The graph cannot be loaded.
        MissingExtraError: onnxruntime is not installed.
    """

    def __init__(self, bundle: Bundle) -> None:
        onnxruntime = _import_onnxruntime()
        try:
            # By path, never from bytes: only so are the table and the weights memory-mapped.
            self._session = onnxruntime.InferenceSession(
                str(bundle.graph_path),
                _session_options(onnxruntime),
                providers=["CPUExecutionProvider"],
                # Its fused kernel is slower than the two it replaces (+45% time).
                disabled_optimizers=["SkipLayerNormFusion"],
            )
        except Exception as error:  # ONNX Runtime's own types share no base class
            reason = " ".join(str(error).split())
            raise BundleError(f"{bundle.graph_path}: cannot be loaded ({reason})") from error

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `Backend.embed`."""
        (vectors,) = self._session.run(["sentence_embedding"], {"input_ids": ids[None]})
        vector: NDArray[np.float32] = vectors[0]
        return vector


BACKENDS: Mapping[str, Callable[[Bundle], Backend]] = {
    "onnx": OnnxBackend,
    "openvino": OpenVinoBackend,
    "numpy": NumpyBackend,
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
    return BACKENDS[name](bundle)


def _import_onnxruntime() -> Any:  # noqa: ANN401  it has no types
    # Here, not above: the other backends do without, and it costs 25 MiB.
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            f"onnxruntime cannot be imported ({error}); pip install onnxruntime, or use the numpy backend"
        ) from error
    return onnxruntime


def _session_options(onnxruntime: Any) -> Any:  # noqa: ANN401
    options = onnxruntime.SessionOptions()
    # Sentences run in parallel, one thread each: threads inside a sentence would only fight over the cores.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Arena and memory pattern stay on: without them the peak after 33,000 sentences was higher, 113 against 106 MiB.
    options.log_severity_level = 3  # errors only; they also arrive as exceptions
    return options
