"""Where the time of a sentence goes, and how near it comes to what the machine can do, on one thread.

python -m xsent.bench.grid.share INT8-BUNDLE [FLOAT32-BUNDLE]
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from xsent.backends import open_backend
from xsent.bench.latency import some_ids, timed
from xsent.bench.peers.peak import COLUMNS, INNER, ROWS, matrix_peak, operations
from xsent.bench.peers.texts import sentences
from xsent.bench.processes import end_with_parent
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.export.nodes import IR_VERSION, OPSET
from xsent.tokenizer import Tokenizer

TURNS = 5
TOKENS = 32  # of the sentence that stands beside the peak
ARRAY = 2**24  # numbers in each of two arrays: 128 MiB in all, more than any cache


def tokenisation_share(bundle: Path) -> float:
    """The share of the time of sentences, as long as real ones, that cutting them into tokens takes."""
    encoder, texts = SentenceEncoder(bundle, threads=1), sentences(100)
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    ratios = [seconds(tokenizer.encode, texts) / seconds(encoder.encode, texts) for _ in range(TURNS + 1)]
    return median(ratios[1:])  # the first warms up


def seconds(encode: Callable[[str], object], texts: list[str]) -> float:
    """Seconds of all texts, one by one."""
    began = time.perf_counter()
    for text in texts:
        encode(text)
    return time.perf_counter() - began


def peak_share(bundle: Path, peak: Callable[[], float]) -> float:
    """The share of a peak that the arithmetic of a sentence reaches; they take turns.

    Args:
        bundle: The bundle.
        peak: Measures the peak, in operations a second.
    """
    opened = Bundle.open(bundle)
    backend, ids = open_backend("onnx", opened), some_ids(opened.vocab_size, TOKENS, 0)
    peaks, times = [], []
    for _ in range(TURNS):
        peaks.append(peak())
        times += [timed(backend.embed, ids) for _ in range(40)]
    return operations(bundle, TOKENS) / median(times) / max(peaks)


def float_peak(rounds: int = 15) -> float:
    """Operations a second of a large float32 matrix product in ONNX Runtime on one thread, the best of all rounds."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.random((INNER, COLUMNS), np.float32), "weight")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, INNER])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, COLUMNS])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "weight"], ["y"])], "peak", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = {"x": rng.random((ROWS, INNER), np.float32)}
    return 2 * ROWS * INNER * COLUMNS / fastest(lambda: session.run(None, values), rounds)


def bandwidth(numbers: int = ARRAY, rounds: int = 5) -> float:
    """GiB that one thread reads from memory in a second, the best of all rounds."""
    left, right = np.ones(numbers, np.float32), np.ones(numbers, np.float32)
    return (left.nbytes + right.nbytes) / 2**30 / fastest(lambda: np.dot(left, right), rounds)


def fastest(run: Callable[[], object], rounds: int) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def shares(int8: Path, float32: Path | None) -> dict[str, float]:
    """The figures of an encoder.

    Args:
        int8: Its bundle in 8 bits.
        float32: That in float32, for the distance to the float peak; left out without.
    """
    figures = {"tokenisation": tokenisation_share(int8), "int8_peak": peak_share(int8, matrix_peak)}
    if float32 is not None:
        figures["float_peak"] = peak_share(float32, float_peak)
    return {**figures, "gib_per_second": bandwidth()}


def main() -> None:
    """Say the figures of the bundles on the command line as a line of JSON."""
    end_with_parent()
    int8, *others = (Path(name) for name in sys.argv[1:])
    sys.stdout.write(json.dumps(shares(int8, others[0] if others else None)) + "\n")


if __name__ == "__main__":
    main()
