"""How near the arithmetic of a sentence comes to what the processor can do in 8 bits."""

import time
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from xsent.backends import open_backend
from xsent.bench.latency import some_ids
from xsent.bundle import Bundle
from xsent.export.nodes import CONTRIB, IR_VERSION, OPSET
from xsent.train.bundles import read_graph

ROWS, INNER, COLUMNS = 512, 1024, 1024  # of the product that the peak is taken from


def matrix_peak(rounds: int = 15) -> float:
    """Operations a second of a large 8-bit matrix product in ONNX Runtime on one thread, the best of all rounds."""
    rng = np.random.default_rng(0)
    weight = rng.integers(-64, 65, (INNER, COLUMNS), np.int8)
    nodes = [helper.make_node("MatMulInteger", ["x", "weight"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [ROWS, INNER])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [ROWS, COLUMNS])
    graph = helper.make_graph(nodes, "peak", [x], [y], [numpy_helper.from_array(weight, "weight")])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = {"x": rng.integers(0, 256, (ROWS, INNER), np.uint8)}
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        session.run(None, values)
        times.append(time.perf_counter() - began)
    return 2 * ROWS * INNER * COLUMNS / min(times)


def operations(bundle: Path, tokens: int) -> int:
    """Multiplications and additions of the linear layers and of attention for one sentence.

    Counted for an encoder that runs every layer on every token, whatever the graph saves.
    """
    opened = Bundle.open(bundle)
    weights = [w for name, w in read_graph(opened).items() if name.endswith(".weight") and w.ndim == 2]
    linear = sum(w.size for w in weights if w.shape[0] != opened.vocab_size)
    width = opened.dim
    return 2 * tokens * linear + opened.num_layers * 4 * tokens * tokens * width


def share_of_peak(bundle: Path, tokens: int = 32, rounds: int = 200) -> tuple[float, float]:
    """The share of the peak that a sentence reaches, and the peak in operations a second; measured in turns."""
    backend = open_backend("onnx", Bundle.open(bundle))
    ids = some_ids(Bundle.open(bundle).vocab_size, tokens, 0)
    peaks, times = [], []
    for _ in range(5):
        peaks.append(matrix_peak())
        for _ in range(rounds // 5):
            began = time.perf_counter()
            backend.embed(ids)
            times.append(time.perf_counter() - began)
    peak = max(peaks)
    return operations(bundle, tokens) / median(times) / peak, peak
