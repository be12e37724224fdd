"""ONNX Runtime as a backend."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import GRAPH, TABLE, WEIGHTS, Bundle
from xsent.errors import BundleError, MissingExtraError, in_one_line

# Session settings. The optimizer's fused kernel is slower than the two that it replaces (+45% time).
SETTINGS: dict[str, Any] = {"providers": ["CPUExecutionProvider"], "disabled_optimizers": ["SkipLayerNormFusion"]}


class HasGraph(Protocol):
    """A bundle, or another folder with a graph of the same inputs and outputs."""

    @property
    def path(self) -> Path:
        """Its folder."""


class OnnxBackend:
    """ONNX Runtime on the CPU, one thread per sentence. Raises BundleError if the graph cannot be loaded."""

    def __init__(self, bundle: HasGraph) -> None:
        # Here, not above: the other backends do not need it, and it costs 25 MiB.
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError(
                f"onnxruntime cannot be imported ({error}); pip install onnxruntime, or use the numpy backend"
            ) from error
        graph = bundle.graph if isinstance(bundle, Bundle) else bundle.path / GRAPH
        options = session_options(onnxruntime)
        self._weights = []
        try:
            folders = {(graph.parent / name).resolve().parent for name in (graph.name, TABLE, WEIGHTS)}
            if isinstance(bundle, Bundle) and len(folders) > 1:  # symlinks, as git-annex and DVC create them
                # ONNX Runtime reads no weights from other folders, so pass them in. With only the first call it would
                # copy them; the second makes it use the mapped ones. It rejects weights that the graph lacks.
                names = bundle.graph_weights
                self._weights = [onnxruntime.OrtValue.ortvalue_from_numpy(bundle.mapped(name)) for name in names]
                options.add_external_initializers(names, self._weights)
                for name, weight in zip(names, self._weights, strict=True):
                    options.add_initializer(name, weight)
            # By path, not from bytes: only then are the table and the weights memory-mapped.
            self._session = onnxruntime.InferenceSession(str(graph), options, **SETTINGS)
        except Exception as error:  # ONNX Runtime's own types share no base class
            raise BundleError(f"{graph}: cannot be loaded ({in_one_line(error)})") from error

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `Backend.embed`."""
        (vectors,) = self._session.run(["sentence_embedding"], {"input_ids": ids[None]})
        vector: NDArray[np.float32] = vectors[0]
        return vector


def session_options(onnxruntime: Any) -> Any:  # noqa: ANN401  it has no types
    """Options of a session on one thread."""
    options = onnxruntime.SessionOptions()
    # Sentences run in parallel, one thread each: threads within a sentence would only compete for the cores.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Arena and memory pattern stay on: without them the peak after 33,000 sentences was higher, 113 against 106 MiB.
    options.log_severity_level = 3  # errors only; they also arrive as exceptions
    return options
