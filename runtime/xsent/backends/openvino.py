"""OpenVINO on the CPU: a graph for each of a few lengths, so that no sentence waits for one to be compiled.

OpenVINO is fast at lengths that it knows and compiles anew for every other. A sentence is padded with ids below zero to
the next length that was prepared; the graph leaves padding out of attention and mean, so its vector stays its own.
"""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle
from xsent.errors import BackendError, BundleError, MissingExtraError, in_one_line

FOLDER = "openvino"
FILES = ("model.xml", "model.bin")

# Each costs some 15 MiB and, at the start, up to a fifth of a second. Powers of two alone cost long sentences a seventh
# of their speed, and one graph for any length costs all of them a third.
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_PADDING = -1
# Sentences at once of one prepared length. Each costs every length 6 MiB.
_MOST_STREAMS = 4


class OpenVinoBackend:
    """OpenVINO on the CPU, one thread a sentence; a BundleError says that its files are missing or damaged."""

    def __init__(self, bundle: Bundle) -> None:
        path = bundle.path / FOLDER / FILES[0]
        if bundle.layers != bundle.num_layers:
            raise BackendError(
                f"the openvino backend has all {bundle.num_layers} layers alone; leave layers={bundle.layers} out, or "
                "take the onnx or numpy backend"
            )
        for name in FILES:
            if f"{FOLDER}/{name}" not in bundle.files:
                raise BundleError(
                    f"{bundle.path}: has no {FOLDER}/{name}; make a bundle that has it with "
                    "xsent-export CHECKPOINT OUT --format openvino"
                )
        openvino = import_openvino()
        self._lengths, self._process = prepared_lengths(bundle.max_length), os.getpid()
        try:
            core = openvino.Core()
            model = core.read_model(path)
            if not model.output("sentence_embedding").partial_shape.compatible(openvino.PartialShape([1, bundle.dim])):
                raise ValueError(f"its vectors do not have {bundle.dim} numbers")
            self._graphs = [_compile(core, model, length) for length in self._lengths]
            # Requests that no thread uses; a list is safe to share.
            self._idle = [[graph.create_infer_request()] for graph in self._graphs]
            for length in self._lengths:  # the first run allocates
                self.embed(np.zeros(length, np.int64))
        except (RuntimeError, ValueError) as error:
            reason = in_one_line(error)
            raise BundleError(f"{path}: cannot be loaded ({reason}); copy the whole bundle again") from error

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `Backend.embed`."""
        if os.getpid() != self._process:  # its threads did not come along, it would wait for them for ever
            raise BackendError(
                "an encoder with the openvino backend cannot be used in a process forked from the one that opened it; "
                "open it there, or start processes by spawn"
            )
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
    """The lengths that sentences are padded to: those of `LENGTHS`, half as many more each time, up to the longest."""
    lengths = list(LENGTHS)
    while lengths[-1] < max_length:
        lengths.append(lengths[-2] * 2)
    return [*(length for length in lengths if length < max_length), max_length]


def import_openvino(extra: str = "openvino") -> Any:  # noqa: ANN401  it has no types
    """The openvino package; if it cannot be imported, the message names the extra of ours that brings it."""
    try:
        with without_telemetry():
            import openvino
    except ImportError as error:
        raise MissingExtraError(f"openvino cannot be imported ({error}); pip install 'xsent[{extra}]'") from error
    return openvino


@contextmanager
def without_telemetry() -> Iterator[None]:
    """Import openvino or nncf without a report to their makers: they send one wherever this package can be imported."""
    name = "openvino_telemetry"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the import system reads this as: there is none
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
            "ENABLE_CPU_PINNING": False,  # the threads are ours
            # Not bfloat16 where the processor has it: vectors must not depend on the processor more than they need.
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
