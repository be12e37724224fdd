"""ONNX Runtime as a backend."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.errors import BundleError, MissingExtraError, in_one_line, warn

# Session settings. The optimizer's fused kernel is slower than the two that it replaces (+45% time).
SETTINGS: dict[str, Any] = {"providers": ["CPUExecutionProvider"], "disabled_optimizers": ["SkipLayerNormFusion"]}


class HasGraph(Protocol):
    """A bundle, or another folder with a graph of the same inputs and outputs."""

    @property
    def graph(self) -> Path:
        """The graph."""


class OnnxBackend:
    """ONNX Runtime on the CPU, on the thread that calls it. Raises BundleError if the graph cannot be loaded.

    Graphs of earlier versions take one sentence at a time. Others take several, if this CPU gives the first two of them
    the same bits together as apart.
    """

    def __init__(self, bundle: HasGraph) -> None:
        # Here, not above: the other backends do not need it, and it costs 25 MiB.
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError(
                f"onnxruntime cannot be imported ({in_one_line(error)}); install it again, "
                "or run pip uninstall onnxruntime: numpy takes over"
            ) from error
        graph = bundle.graph
        try:
            # By path, not from bytes: only then are the table and the weights memory-mapped.
            self._session = onnxruntime.InferenceSession(str(graph), session_options(onnxruntime), **SETTINGS)
            # Whether it takes several sentences; None until it was tried.
            self._together = False if self._session.get_inputs()[0].shape[0] == 1 else None
        except Exception as error:  # ONNX Runtime's own types share no base class
            advice = "copy the whole bundle again, with cp -rL if its files are links"
            raise BundleError(f"{graph}: cannot be loaded ({in_one_line(error)}); {advice}") from error

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `Backend.embed`."""
        if len(ids) > 1 and self._together is None:
            self._together = self._try_together(ids[:2])
        if len(ids) == 1 or self._together:
            return self._run(ids)
        return self._run_each(ids)

    def _run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._session.run(["sentence_embedding"], {"input_ids": ids})[0]
        return vectors

    def _run_each(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.concatenate([self._run(one[None]) for one in ids])

    def _try_together(self, ids: NDArray[np.int64]) -> bool:
        """Whether sentences have the same bits together as apart; they should, on every CPU."""
        equal = np.array_equal(self._run(ids), self._run_each(ids))
        if not equal:
            warn(
                "this CPU computes several sentences at once with other bits than each by itself, so each is encoded "
                "by itself; lists take longer, and the vectors are right"
            )
        return equal


def session_options(onnxruntime: Any) -> Any:  # noqa: ANN401  it has no types
    """Options of a session on one thread."""
    options = onnxruntime.SessionOptions()
    # Sentences run in parallel, one thread each: threads within a sentence would only compete for the cores.
    options.intra_op_num_threads = 1
    # Arena and memory pattern stay on: without them the peak after 33,000 sentences was higher, 113 against 106 MiB.
    options.log_severity_level = 3  # errors only; they also arrive as exceptions
    return options
