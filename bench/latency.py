"""What a sentence takes in several bundles, side by side: they take turns in one process, one thread each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic

from xsent.backends import open_backend
from xsent.bench.machine import processor
from xsent.bench.processes import silent
from xsent.bench.report.tables import Table
from xsent.bundle import Bundle
from xsent.errors import DataError
from xsent.export.batch_graph import write_batch_graph
from xsent.export.form import Form
from xsent.probe import time_each
from xsent.train.bundles import checkpoint_from_bundle
from xsent.train.checkpoint import load_checkpoint

Ids = NDArray[np.int64]
Embed = Callable[[Ids], NDArray[np.float32]]

DEFAULT = "ONNX Runtime's defaults"
MIXED = (4, 48)  # fewest and most tokens of the mixed lengths
REPEATED = 3  # times in a row that a sentence is encoded
HEADINGS = ["bundle, backend", "tokens", "ms, median", "ms, 95th percentile", "times faster than the first"]


def measure_latency(
    bundles: Sequence[Path], lengths: Sequence[int], backends: Sequence[str], default: bool, rounds: int, command: str
) -> str:
    """Compare bundles in every backend, and say in Markdown how many times faster each is than the first.

    By default, the first bundle's weights are also run as ONNX Runtime's own tools make them: a padded-batch graph
    through `quantize_dynamic` with default settings, in a session with default optimisation.
    """
    runners: dict[str, Embed] = {}
    opened = [Bundle.open(path) for path in bundles]
    shortest, longest = min(bundle.max_length for bundle in opened), max([*lengths, MIXED[1]])
    if longest > shortest:
        raise DataError(f"a bundle takes at most {shortest} tokens; sentences of {longest} do not fit")
    for number, bundle in enumerate(opened, 1):
        for backend in backends:
            runners[f"{number}: {bundle.path.name}, {backend}"] = open_backend(backend, bundle).embed
    with TemporaryDirectory() as folder:
        if default:
            runners[f"1: {bundles[0].name}, {DEFAULT}"] = default_session(bundles[0], Path(folder))
        pieces = min(bundle.vocab_size for bundle in opened)
        rows = []
        for length in lengths:
            rows += compare(runners, [some_ids(pieces, length, seed) for seed in range(8)], str(length), rounds)
        mixed = [some_ids(pieces, MIXED[0] + i % (MIXED[1] - MIXED[0] + 1), i) for i in range(180)]
        rows += compare(runners, mixed, f"{MIXED[0]} to {MIXED[1]}", rounds)
    return f"`{command}` on {processor()}, one thread.\n\n{Table(HEADINGS, rows).markdown()}"


def compare(runners: Mapping[str, Embed], sentences: Sequence[Ids], tokens: str, rounds: int) -> list[list[str]]:
    """One row for each runner; in every round each encodes the same sentences in turn."""
    times: dict[str, list[list[float]]] = {name: [] for name in runners}
    repeated = [sentence for sentence in sentences for _ in range(REPEATED)]
    for number in range(rounds + 1):
        for name, embed in runners.items():
            found = time_each(embed, repeated, least=len(repeated))
            if number:  # the first warms up
                times[name].append(found)
    first = next(iter(times.values()))
    rows = []
    for name, turns in times.items():
        every = [seconds for turn in turns for seconds in turn]
        ratio = median(median(a) / median(b) for a, b in zip(first, turns, strict=True))
        cells = [f"{1000 * median(every):.3f}", f"{1000 * quantiles(every, n=20)[-1]:.3f}", f"{ratio:.2f}"]
        rows.append([name, tokens, *cells])
    return rows


def some_ids(pieces: int, length: int, seed: int) -> Ids:
    """A made-up sentence of so many tokens; what they are makes no difference to the time."""
    return np.random.default_rng((length, seed)).integers(pieces // 2, pieces, length)


def default_session(bundle: Path, folder: Path) -> Embed:
    """The weights of a bundle as the usual way to int8 runs them."""
    checkpoint = load_checkpoint(checkpoint_from_bundle(bundle, folder / "checkpoint"))
    whole, small = folder / "whole.onnx", folder / "small.onnx"
    config = checkpoint.config
    write_batch_graph(checkpoint.encoder, Form.whole(config, "float32"), whole)
    first, last = ([config.first], [config.last]) if config.num_layers else ([], [])
    with silent():
        quantize_dynamic(whole, small, weight_type=QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(small), options, providers=["CPUExecutionProvider"])

    def embed(ids: Ids) -> NDArray[np.float32]:
        framed = np.array([[*first, *ids, *last]])
        (vectors,) = session.run(None, {"input_ids": framed, "attention_mask": np.ones_like(framed)})
        vector: NDArray[np.float32] = vectors[0]
        return vector

    return embed
