"""How near the arithmetic of a sentence comes to what the processor can do, in 8 bits and in floats."""

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from xsent.backends import open_backend
from xsent.bench.latency import some_ids, timed
from xsent.bundle import Bundle
from xsent.export.nodes import IR_VERSION, OPSET
from xsent.train.tokens import FRAME

ROWS, INNER, COLUMNS = 512, 1024, 1024  # of the product that the peak is taken from
TURNS = 5


def matrix_peak(rounds: int = 15) -> float:
    """Operations a second of a large 8-bit matrix product in ONNX Runtime on one thread, the best of all rounds."""
    rng = np.random.default_rng(0)
    weight = rng.integers(-64, 65, (INNER, COLUMNS), np.int8)
    return _product_peak("MatMulInteger", rng.integers(0, 256, (ROWS, INNER), np.uint8), weight, np.int32, rounds)


def float_peak(rounds: int = 15) -> float:
    """The same of a float32 matrix product."""
    rng = np.random.default_rng(0)
    weight = rng.random((INNER, COLUMNS), np.float32)
    return _product_peak("MatMul", rng.random((ROWS, INNER), np.float32), weight, np.float32, rounds)


def fastest(run: Callable[[], object], rounds: int) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def operations(bundle: Path, tokens: int) -> int:
    """Multiplications and additions of the linear layers and of attention for one sentence, its frame among it."""
    opened = Bundle.open(bundle)
    tensors = opened.network.tensors.items()
    linear = sum(math.prod(t.shape) for name, t in tensors if re.fullmatch(r"layer\d.*(qkv|_out|_in)\.weight", name))
    length = tokens + FRAME
    return 2 * length * linear + opened.num_layers * 4 * length * length * opened.dim


def share_of_peak(bundle: Path, peak: Callable[[], float] = matrix_peak, tokens: int = 32) -> tuple[float, float]:
    """The share of a peak that the arithmetic of a sentence reaches, and that peak; they take turns.

    Args:
        bundle: The bundle.
        peak: Measures the peak, in operations a second.
        tokens: Tokens of the sentence.
    """
    opened = Bundle.open(bundle)
    backend, ids = open_backend("onnx", opened), some_ids(opened.vocab_size, tokens, 0)
    peaks, times = [], []
    for _ in range(TURNS):
        peaks.append(peak())
        times += [timed(backend.embed, ids) for _ in range(40)]
    return operations(bundle, tokens) / median(times) / max(peaks), max(peaks)


def _product_peak(operator: str, x: NDArray[Any], weight: NDArray[Any], kind: type, rounds: int) -> float:
    """Operations a second of one product of ONNX Runtime; `kind` is the type of what it gives."""
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    made = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [ROWS, COLUMNS])
    node = helper.make_node(operator, ["x", "weight"], ["y"])
    graph = helper.make_graph([node], "peak", [given], [made], [numpy_helper.from_array(weight, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return 2 * ROWS * INNER * COLUMNS / fastest(lambda: session.run(None, {"x": x}), rounds)
