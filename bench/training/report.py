"""The report of the training benchmarks."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xsent.bench.machine import processor
from xsent.bench.papers import TABLE_5
from xsent.bench.training.spec import Spec
from xsent.bench.training.speed import layers_table, race, run, throughput_table
from xsent.errors import DataError
from xsent.files import atomic_file

logger = logging.getLogger(__name__)

REPORT = "training.md"
PARTS = ("plain", "layers", "throughput")
TABLE_STEPS = 10  # a step of the table alone is that much shorter


def run_training_benchmarks(
    spec: Spec, *, only: Sequence[str], batches: Sequence[int], device: str, turns: int, command: str
) -> Path:
    """Run the benchmarks and write `training.md` into the folder of the made-up corpus.

    Args:
        spec: Sizes, threads and steps.
        only: Parts of the report: plain, layers, throughput; empty is all.
        batches: Batch sizes of the throughput.
        device: auto, or cpu to leave a GPU alone.
        turns: Turns that ours and the plain system take.
        command: The command line, for the report.

    Returns:
        The report.

    Raises:
        DataError: A part is unknown.
        XsentError: A measured training failed.
    """
    unknown = sorted(set(only) - set(PARTS))
    if unknown:
        raise DataError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    environment = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    logger.info("making the corpus and its vocabulary, if they are not there")
    first = run(replace(spec, system="table", steps=3, batch_size=64), environment)
    where = first["device"] if first["device"] != "cpu" else processor()
    parts = [
        "# What training costs",
        f"`{command}` on {where}, {spec.threads} thread{'s' * (spec.threads > 1)}. Made-up sentences of about "
        f"{spec.length:g} words and 25 tokens a side, lengths log-normal; {spec.vocabulary:,} pieces, {spec.dim} "
        "dimensions, 8 heads; UGT + 2 align + 2 sim (literal), dropout 0.1, as in mao2021.",
    ]
    for name, part in (("plain", against_plain), ("layers", by_layers)):
        if not only or name in only:
            parts += part(spec, environment, turns)
    if not only or "throughput" in only:
        parts += throughput(spec, environment, batches)
    path = Path(spec.folder) / REPORT
    with atomic_file(path) as file:
        file.write("\n\n".join(parts).encode() + b"\n")
    return path


def against_plain(spec: Spec, environment: dict[str, str], turns: int) -> list[str]:
    """Ours against the plain system."""
    logger.info("ours against the plain system, %d turns", turns)
    result = race(replace(spec, steps=(turns + 1) * max(1, spec.steps // turns)), environment, turns=turns)
    about = (
        "The same batches, in turns. Plain: stock post-norm transformer on padded batches, dense B × V targets, "
        f"float32, Adam with AMSGrad; N = {spec.num_layers}, batch {spec.batch_size}."
    )
    return ["## Against a plain implementation of the paper's system", about, result.markdown()]


def by_layers(spec: Spec, environment: dict[str, str], turns: int) -> list[str]:
    """Time and memory by number of layers."""
    results: dict[int, dict[str, Any]] = {}
    for layers in TABLE_5:
        logger.info("%d layers", layers)
        results[layers] = run(replace(spec, num_layers=layers), environment)
    about = (
        "Minutes are the median step times 10,000. Peak memory: on a processor, all that the process ever held, "
        "interpreter and libraries included (about 440 MiB); on a GPU, what tensors took at most."
    )
    return ["## By layers (mao2021, table 5)", about, layers_table(results, spec.batch_size)]


def throughput(spec: Spec, environment: dict[str, str], batches: Sequence[int]) -> list[str]:
    """Pairs a second with the data path, and its share."""
    results = {}
    for batch in batches:
        logger.info("throughput, batch %d", batch)
        one = replace(spec, batch_size=batch)
        results[f"{spec.num_layers} layers, batch {batch}"] = one, run(one, environment)
    table = replace(spec, system="table", batch_size=2048, steps=TABLE_STEPS * spec.steps)
    results["table alone, cosine"] = table, run(table, environment)
    about = "Reading, masking and batching included; the median step."
    return ["## Throughput and the data path", about, throughput_table(results)]
