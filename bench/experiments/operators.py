"""Where the time of a sentence goes: ONNX Runtime's own profile by operator, on one thread.

Of the bundle at each depth, of multilingual-MiniLM-L12 in 8 bits by ONNX Runtime's tools (random weights), and of a
large 8-bit product alone, whose speed is the limit of all products.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import onnxruntime
import typer
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from xsent.backends.onnx import SETTINGS, session_options
from xsent.bundle import builtin_path
from xsent.cli.options import BundleArgument
from xsent.cli.terminal import one_line_errors
from xsent.cpu import time_each
from xsent_bench.bundles import at_each_depth
from xsent_bench.report import Table
from xsent_bench.shapes import INPUTS, write_model
from xsent_bench.systems import MINILM
from xsent_export.graph import CONTRIB, INPUT, IR_VERSION, OPSET
from xsent_train.tokens import FRAME

ROUNDS = 200
PRODUCTS = ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")  # in 8 bits
ROWS, INNER, COLUMNS = 512, 1024, 1024  # of the large product

Feed = Mapping[str, NDArray[np.int64]]


@one_line_errors()
def operators(
    bundle: BundleArgument = None,
    tokens: Annotated[int, typer.Option(min=FRAME + 1, help="Tokens of the sentence, the frame included.")] = 32,
    work: Annotated[Path, typer.Option(help="Folder of the model with random weights.")] = Path("operators-work"),
) -> None:
    """Print microseconds by operator for each depth of a bundle and for multilingual-MiniLM-L12."""
    ids = np.random.default_rng(0).integers(10_000, 40_000, (1, tokens))
    depths = at_each_depth(bundle or builtin_path())
    columns = {f"{one.layers} layers": profile(one.graph, {INPUT: ids[:, FRAME:]}) for one in depths}
    work.mkdir(parents=True, exist_ok=True)
    other = write_model(MINILM, depths[0].tokenizer_path, work) / "onnx" / "model.onnx"
    mask = np.ones_like(ids)
    columns[MINILM] = profile(other, dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True)))
    total: dict[str, float] = defaultdict(float)
    for name, microseconds in chain.from_iterable(column.items() for column in columns.values()):
        total[name] += microseconds
    names = sorted(total, key=total.__getitem__, reverse=True)
    rows = [[name, *(f"{column.get(name, 0):.0f}" for column in columns.values())] for name in names]
    rows.append(["all", *(f"{sum(column.values()):.0f}" for column in columns.values())])
    typer.echo(Table(["microseconds", *columns], rows).markdown())
    typer.echo(f"\nA large product in 8 bits: {large_product() / 1e9:.0f} billion operations a second.")


def profile(graph: Path, feed: Feed) -> dict[str, float]:
    """Microseconds by operator: sums over the nodes of their medians over `ROUNDS`."""
    with TemporaryDirectory() as folder:
        options = session_options(onnxruntime)
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/profile"
        session = onnxruntime.InferenceSession(str(graph), options, **SETTINGS)
        for _ in range(ROUNDS):
            session.run(None, feed)
        events = json.loads(Path(session.end_profiling()).read_text())
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event["name"].endswith("_kernel_time"):
            times[event["args"]["op_name"], event["name"]].append(event["dur"])
    sums: dict[str, float] = defaultdict(float)
    for (operator, _), durations in times.items():
        sums["products in 8 bits" if operator in PRODUCTS else operator] += median(durations)
    return sums


def large_product() -> float:
    """Operations a second of a large 8-bit product with its quantisation, the best of all rounds."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, INNER)).astype(np.float32)
    weight = rng.integers(-64, 65, (INNER, COLUMNS)).astype(np.int8)
    scales = np.full(COLUMNS, 0.01, np.float32)
    source, target = (
        helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", x.shape), ("y", (ROWS, COLUMNS)))
    )
    node = helper.make_node("DynamicQuantizeMatMul", ["x", "weight", "scales"], ["y"], domain=CONTRIB)
    constants = [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(scales, "scales")]
    graph = helper.make_graph([node], "product", [source], [target], constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    session = onnxruntime.InferenceSession(model.SerializeToString(), session_options(onnxruntime), **SETTINGS)
    return 2 * ROWS * INNER * COLUMNS / min(time_each(lambda x: session.run(None, {"x": x}), [x], least=20))


if __name__ == "__main__":
    typer.run(operators)
