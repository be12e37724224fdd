"""What a training step costs: against the plain system, by layers, by batch size, and how much of it is data.

Also the memory of preparation and training by the size of the corpus: it should not depend on it.
"""

import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from xsent.bench.machine import processor
from xsent.bench.processes import Child, answers
from xsent.bench.report.pages import Section, markdown
from xsent.bench.report.tables import TABLE_5, Table, beside_table_5
from xsent.bench.training.spec import Spec
from xsent.errors import DataError
from xsent.files import atomic_file

logger = logging.getLogger(__name__)

WORK = "xsent.bench.training.work"
PARTS = ("plain", "layers", "throughput")
TABLE_STEPS = 10  # a step of the table alone is that much shorter
BAR = 1.10  # the memory of the largest corpus against that of the smallest

Cost = Mapping[str, Any]  # what a measured training said
Steps = list[tuple[float, float]]  # medians of the seconds of a step in each turn, on the wall and of the processor
Environment = Mapping[str, str]


def run_training_benchmarks(
    spec: Spec, only: Sequence[str], batches: Sequence[int], device: str, turns: int, command: str
) -> Path:
    """Run some of `PARTS`, or all, and write `training.md` into the folder of the made-up corpus.

    The batch sizes are those of the throughput; the turns are those of ours and the plain system. Device "cpu" leaves a
    GPU alone.
    """
    if unknown := sorted(set(only) - set(PARTS)):
        raise DataError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    environment = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    logger.info("making the corpus and its vocabulary, if they are not there")
    first = run(replace(spec, system="table", steps=3, batch_size=64), environment)
    where = first["device"] if first["device"] != "cpu" else processor()
    about = (
        f"`{command}` on {where}, {_threads(spec)}. Made-up sentences of about {spec.length:g} words and 25 tokens a "
        f"side, lengths log-normal; {spec.vocabulary:,} pieces, {spec.dim} dimensions, 8 heads; UGT + 2 align + 2 sim "
        "(literal), dropout 0.1, as in mao2021."
    )
    parts = []
    if not only or "plain" in only:
        logger.info("ours against the plain system, %d turns", turns)
        whole = replace(spec, steps=(turns + 1) * max(1, spec.steps // turns))
        parts.append(against_plain(spec, *race(whole, environment, turns)))
    if not only or "layers" in only:
        parts.append(by_layers(spec, {n: run(replace(spec, num_layers=n), environment) for n in TABLE_5}))
    if not only or "throughput" in only:
        specs = {f"{spec.num_layers} layers, batch {batch}": replace(spec, batch_size=batch) for batch in batches}
        specs["table alone, cosine"] = replace(spec, system="table", batch_size=2048, steps=TABLE_STEPS * spec.steps)
        parts.append(throughput({name: (one.batch_size, run(one, environment)) for name, one in specs.items()}))
    return _write(Path(spec.folder) / "training.md", markdown("What training costs", about, parts))


def run_corpus_memory(spec: Spec, sizes: Sequence[int], *, keep: bool, command: str) -> Path:
    """Write, prepare and train on made-up corpora of several sizes, each task in its own process: `corpus-memory.md`.

    Each corpus has a folder in that of `spec`, which goes unless it is to be kept.
    """
    results: dict[int, dict[str, Cost]] = {}
    for pairs in sizes:
        folder = Path(spec.folder) / f"corpus-{pairs}"
        folder.mkdir(parents=True, exist_ok=True)
        one = replace(spec, folder=str(folder), pairs=pairs)
        results[pairs] = {task: run(one, {}, task) for task in ("write", "prepare", "train")}
        if not keep:
            shutil.rmtree(folder)
    about = (
        f"`{command}` on {processor()}, {_threads(spec)}. Training: {spec.steps} steps of {spec.batch_size:,} pairs."
    )
    text = markdown("Memory by size of the corpus", about, [by_corpus(results)])
    return _write(Path(spec.folder) / "corpus-memory.md", text)


def run(spec: Spec, environment: Environment, task: str = "train") -> Cost:
    """Run a training, or another task on a corpus, to its end in a process of its own."""
    logger.info("%s: %s, %d layers, batch %d", task, spec.system, spec.num_layers, spec.batch_size)
    (said,) = answers(WORK, [task, spec.to_json()], threads=spec.threads, environment=environment)
    return said


def race(spec: Spec, environment: Environment, turns: int) -> tuple[Steps, Steps]:
    """Let ours and the plain system train in turns, each in its own process; the first turn does not count."""
    found: tuple[Steps, Steps] = ([], [])
    specs = [replace(spec, system=name, round=spec.steps // (turns + 1)) for name in ("ours", "plain")]
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child(WORK, ["train", one.to_json()], threads=one.threads, environment=environment))
            for one in specs
        ]
        for child in children:
            child.answer()  # ready
        for _ in range(turns):
            for child, steps in zip(children, found, strict=True):
                child.go_on()
                said = child.answer() or {}
                steps.append((median(said["steps"]), median(said["processor"])))
    for left in Path(spec.folder).glob("run-*"):  # a training that was ended after its turns
        shutil.rmtree(left)
    return found[0][1:], found[1][1:]


def against_plain(spec: Spec, ours: Steps, plain: Steps) -> Section:
    """Ours against the plain system."""
    rows = []
    for name, turns in (("ours", ours), ("plain", plain)):
        step, busy = (median(column) for column in zip(*turns, strict=True))
        rows.append([name, f"{step:.3f}", f"{spec.batch_size / step:.1f}", f"{busy:.3f}"])
    ratios = [theirs / own for (own, _), (theirs, _) in zip(ours, plain, strict=True)]
    about = (
        "The same batches, in turns. Plain: stock post-norm transformer on padded batches, dense B × V targets, "
        f"float32, Adam with AMSGrad; N = {spec.num_layers}, batch {spec.batch_size}. Ours is "
        f"**{median(ratios):.2f} times** faster (turns: {', '.join(f'{ratio:.2f}' for ratio in ratios)}; bar: 4)."
    )
    table = Table(["system", "s/step, median", "pairs/s", "processor s/step"], rows)
    return Section("Against a plain implementation of the paper's system", about, tables=[table])


def by_layers(spec: Spec, results: Mapping[int, Cost]) -> Section:
    """Time and memory beside the paper's; on a processor its own time: the wall's also counts other processes'."""
    on_processor = next(iter(results.values()))["device"] == "cpu"
    kind, heading = ("processor", "processor min/10,000 steps") if on_processor else ("step", "min/10,000 steps")
    costs = {layers: (result[kind] * 10_000 / 60, result["peak"]) for layers, result in results.items()}
    about = (
        f"Batch {spec.batch_size}. Minutes are the median step times 10,000. Peak memory: on a processor, all that the "
        "process ever held, interpreter and libraries included (about 440 MiB); on a GPU, what tensors took at most."
    )
    return Section("By layers (mao2021, table 5)", about, tables=[beside_table_5(costs, (heading, "peak MiB"))])


def throughput(results: Mapping[str, tuple[int, Cost]]) -> Section:
    """Pairs a second with the data path, its share of the time, and peak memory."""
    rows = [
        [name, f"{batch:,}", f"{batch / cost['step']:,.0f}", f"{100 * cost['waiting']:.2f}", f"{cost['peak']:,.0f}"]
        for name, (batch, cost) in results.items()
    ]
    about = "Reading, masking and batching included; the median step."
    headings = ["training", "batch", "pairs/s", "waiting for data, %", "peak MiB"]
    return Section("Throughput and the data path", about, tables=[Table(headings, rows)])


def by_corpus(results: Mapping[int, Mapping[str, Cost]]) -> Section:
    """Memory by the size of the corpus, and whether the bar is met."""
    rows = [
        [f"{pairs:,}", task, f"{done[task]['anonymous']:,.0f}", f"{done[task]['peak']:,.0f}"]
        for pairs, done in results.items()
        for task in ("prepare", "train")
    ]
    small, large = min(results), max(results)
    points = []
    for task in ("prepare", "train"):
        ratio = results[large][task]["anonymous"] / results[small][task]["anonymous"]
        points.append(f"{task}: {large:,} pairs take {ratio:.3f} times what {small:,} take (bar: {BAR:.2f})")
    about = (
        "Not backed by files: the peak of what the process alone holds (RssAnon, looked at every 50 ms). All: VmHWM, "
        "with the pages of the store that the system keeps in memory while there is room."
    )
    table = Table(["pairs", "task", "not backed by files, MiB", "all, MiB"], rows)
    return Section("Preparation and training", about, points, [table])


def _threads(spec: Spec) -> str:
    return f"{spec.threads} thread{'s' * (spec.threads > 1)}"


def _write(path: Path, text: str) -> Path:
    with atomic_file(path) as file:
        file.write(text.encode() + b"\n")
    return path
