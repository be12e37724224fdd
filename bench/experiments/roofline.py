"""Where the time of a sentence goes, and how near it comes to the limits of the machine, on one thread.

The peaks are those of large matrix products on one thread; the arithmetic is counted for every layer on every token.
Sentences have 32 tokens, and 20 in the mean for the share of tokenisation. Memory: what one thread reads from arrays
that are larger than the caches.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import onnxruntime
import typer
from onnx import helper, numpy_helper

from xsent.backends.base import open_backend
from xsent.bundle import Bundle, builtin_path
from xsent.cli.options import BundleArgument
from xsent.cli.terminal import one_line_errors
from xsent.cpu import time_each
from xsent.encoder import SentenceEncoder
from xsent.tokenizer import Tokenizer
from xsent_bench.bundles import at_each_depth
from xsent_bench.report import listing
from xsent_bench.results import Measurement
from xsent_bench.texts import sentences
from xsent_export.graph import IR_VERSION, OPSET
from xsent_train.tokens import FRAME

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

ROWS, INNER, COLUMNS = 512, 1024, 1024  # of the product that the peak is taken from
ROUNDS, TURNS = 15, 5
ARRAY = 2**24  # numbers in each of two arrays: 128 MiB in all, more than any cache


@app.command()
@one_line_errors()
def roofline(
    bundle: BundleArgument = None,
    float32: Annotated[Path | None, typer.Option(help="The same in float32, for the float peak.")] = None,
) -> None:
    """Measure the shares of tokenisation and of the processor's peaks, at each depth of a bundle."""
    found = []
    for one in at_each_depth(bundle or builtin_path()):
        other = Bundle.open(float32, one.layers) if float32 else None
        found.append(Measurement("share", {"layers": one.layers}, shares(one, other)))
    typer.echo(listing(found).markdown())


def shares(int8: Bundle, float32: Bundle | None) -> dict[str, float]:
    """The shares of one depth in 8 bits, and in float32."""
    figures = {"tokenisation, %": 100 * tokenisation_share(int8), "int8 peak, %": 100 * share_of_peak(int8, int8_peak)}
    if float32 is not None:
        figures["float peak, %"] = 100 * share_of_peak(float32, float_peak)
    return {**figures, "memory, GiB/s": bandwidth()}


def tokenisation_share(bundle: Bundle) -> float:
    """The share of tokenisation in the time of sentences that are as long as real ones."""
    encoder = SentenceEncoder(bundle.path, layers=bundle.layers, threads=1)
    tokenizer = Tokenizer(bundle.tokenizer_path)
    texts = sentences(100)
    ratios = []
    for _ in range(TURNS + 1):
        tokenised = sum(time_each(tokenizer.encode, texts, least=len(texts)))
        ratios.append(tokenised / sum(time_each(encoder.encode, texts, least=len(texts))))
    return median(ratios[1:])  # the first warms up


def share_of_peak(bundle: Bundle, peak: Callable[[], float], tokens: int = 32) -> float:
    """The share of a peak that the arithmetic of a sentence reaches; the two are measured in turns."""
    backend = open_backend("onnx", bundle)
    pieces = bundle.vocab_size
    ids = np.random.default_rng(tokens).integers(pieces // 2, pieces, tokens)  # which ones makes no difference
    peaks = list[float]()
    times = list[float]()
    for _ in range(TURNS):
        peaks.append(peak())
        times += time_each(backend.embed, [ids], least=40)
    return operations(bundle, tokens) / median(times) / max(peaks)


def operations(bundle: Bundle, tokens: int) -> int:
    """Multiplications and additions of the linear layers and of attention for one sentence, its frame included."""
    names = (name for name in bundle.graph_weights if re.fullmatch(r"layer\d.*(qkv|_out|_in)\.weight", name))
    linear = sum(math.prod(bundle.network.tensors[name].shape) for name in names)
    length = tokens + FRAME
    return 2 * length * linear + bundle.layers * 4 * length * length * bundle.dim


def int8_peak(rounds: int = ROUNDS) -> float:
    """Operations a second of a large 8-bit matrix product in ONNX Runtime on one thread, the best of all rounds."""
    return product_peak("MatMulInteger", rounds, "uint8", "int8", "int32")


def float_peak(rounds: int = ROUNDS) -> float:
    """The same of a float32 matrix product."""
    return product_peak("MatMul", rounds, "float32", "float32", "float32")


def product_peak(operator: str, rounds: int, left: str, right: str, product: str) -> float:
    """Operations a second of a matrix product of ONNX Runtime; the last three are the types of its numbers."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (ROWS, INNER)).astype(left)
    weight = rng.integers(-64, 65, (INNER, COLUMNS)).astype(right)
    source = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    target = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(product)), [ROWS, COLUMNS])
    node = helper.make_node(operator, ["x", "weight"], ["y"])
    graph = helper.make_graph([node], "peak", [source], [target], [numpy_helper.from_array(weight, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    times = time_each(lambda x: session.run(None, {"x": x}), [x], least=rounds)
    return 2 * ROWS * INNER * COLUMNS / min(times)


def bandwidth(numbers: int = ARRAY, rounds: int = TURNS) -> float:
    """GiB that one thread reads from memory in a second, the best of all rounds."""
    left = np.ones(numbers, np.float32)
    right = np.ones(numbers, np.float32)
    times = time_each(lambda other: np.dot(left, other), [right], least=rounds)
    return (left.nbytes + right.nbytes) / 2**30 / min(times)


if __name__ == "__main__":
    app()
