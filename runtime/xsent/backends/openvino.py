"""OpenVINO on the CPU: one compiled graph for each of a few lengths.

OpenVINO is fast at lengths that it was compiled for and recompiles for every other. A sentence is padded with negative
ids to the next of those lengths; the graph excludes padding from attention and mean, so its vector is the same.
"""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle
from xsent.errors import BackendError, BundleError, MissingExtraError, in_one_line, install_advice

FOLDER = "openvino"
FILES = ("model.xml", "model.bin")

# Each length takes about 15 MiB and, at the start, up to a fifth of a second. With only powers of two, long sentences
# are a seventh slower; with one graph for any length, all sentences are a third slower.
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_PADDING = -1
# Sentences encoded at once by one graph. Each takes 6 MiB in every graph.
_MOST_STREAMS = 4


class OpenVinoBackend:
    """OpenVINO on the CPU, one thread per sentence. Raises BundleError if its files are missing or damaged."""

    def __init__(self, bundle: Bundle) -> None:
        path = bundle.path / FOLDER / FILES[0]
        if bundle.layers != bundle.num_layers:
            raise BackendError(
                f"the openvino backend supports only the full {bundle.num_layers} layers; omit layers={bundle.layers}, "
                "or use the onnx or numpy backend"
            )
        for name in FILES:
            if f"{FOLDER}/{name}" not in bundle.files:
                raise BundleError(
                    f"{bundle.path}: has no {FOLDER}/{name}; create a bundle that has it with "
                    "xsent-export CHECKPOINT OUT --format openvino"
                )
        openvino, core = import_openvino(), open_core()
        self._lengths = prepared_lengths(bundle.max_length)
        self._process = os.getpid()
        try:
            model = core.read_model(path)
            if not model.output("sentence_embedding").partial_shape.compatible(openvino.PartialShape([1, bundle.dim])):
                raise ValueError(f"its vectors do not have {bundle.dim} numbers")
            self._graphs = [_compile(core, model, length) for length in self._lengths]
            # Idle requests of each graph; `pop` and `append` of a list are atomic.
            self._idle = [[graph.create_infer_request()] for graph in self._graphs]
            for length in self._lengths:  # the first run allocates
                self._embed(np.zeros(length, np.int64))
        except (RuntimeError, ValueError) as error:
            reason = in_one_line(error)
            raise BundleError(f"{path}: cannot be loaded ({reason}); copy the whole bundle again") from error

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `Backend.embed`; one sentence after the other."""
        if os.getpid() != self._process:  # a forked process lacks its threads and would wait forever
            raise BackendError(
                "an encoder with the openvino backend cannot be used in a process forked from the one that opened it; "
                "open it there, or use the start method spawn"
            )
        return np.stack([self._embed(one) for one in ids])

    def _embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        place = bisect_left(self._lengths, len(ids))
        idle = self._idle[place]
        try:
            request = idle.pop()
        except IndexError:
            request = self._graphs[place].create_infer_request()
        try:
            padded = request.get_input_tensor().data[0]
            padded[: len(ids)] = ids
            padded[len(ids) :] = _PADDING
            request.infer()
            vector: NDArray[np.float32] = request.get_output_tensor().data[0].copy()
            return vector
        finally:
            idle.append(request)


def prepared_lengths(max_length: int) -> list[int]:
    """The lengths that sentences are padded to: `LENGTHS`, then 384, 512, 768 and so on, up to the longest."""
    lengths = list(LENGTHS)
    while lengths[-1] < max_length:
        lengths.append(lengths[-2] * 2)
    return [*(length for length in lengths if length < max_length), max_length]


def import_openvino(extra: str = "openvino") -> Any:  # noqa: ANN401  it has no types
    """The openvino package. Raises MissingExtraError with the extra that installs it."""
    try:
        with without_telemetry():
            import openvino
    except ImportError as error:
        raise MissingExtraError(
            f"openvino cannot be imported ({in_one_line(error)}); {install_advice(extra)}"
        ) from error
    return openvino


def open_core() -> Any:  # noqa: ANN401
    """Open OpenVINO once per process, and keep it open. Raises MissingExtraError if openvino is not installed.

    The CPU plugin gives the thread that loads it a stack for signals. If another thread is the last to use the core, it
    frees that stack while it is in use, and the next Ctrl-C ends the process with a segmentation fault.
    """
    return _core_of(os.getpid())  # a forked process needs a core of its own


@cache
def _core_of(_process: int) -> Any:  # noqa: ANN401
    return import_openvino().Core()


@contextmanager
def without_telemetry() -> Iterator[None]:
    """Hide openvino_telemetry, with which openvino and nncf report each import to their vendor."""
    name = "openvino_telemetry"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the import system takes it as not installed
    try:
        yield
    finally:
        del sys.modules[name]


def _compile(core: Any, model: Any, length: int) -> Any:  # noqa: ANN401
    streams = min(available_cpus(), _MOST_STREAMS)
    model.reshape([1, length])
    return core.compile_model(
        model,
        "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": streams,  # of all streams together
            "ENABLE_CPU_PINNING": False,  # the caller owns the threads
            # Not bfloat16 where the CPU supports it: vectors would depend on the CPU.
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
