"""A measured task of training in a process of its own: `write` a corpus, `prepare` it, or `train` on it.

It says its figures, and those of a training's steps at each pause. python -m xsent.bench.training.work TASK SPEC
"""

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import sentencepiece as spm
import torch

from xsent.bench.processes import AnonymousPeak, end_with_parent, peak_memory, say
from xsent.bench.training.plain import PlainSystem, adam
from xsent.bench.training.spec import Spec
from xsent.terminal import one_line_errors
from xsent.train.data.batching import Batch, Batches
from xsent.train.data.preparation import prepare
from xsent.train.data.vocabulary import maskable_pieces
from xsent.train.feed import Feed
from xsent.train.model import ModelConfig
from xsent.train.trainer import Trainer


@dataclass
class Clock:
    """What the steps of a training cost; a step begins when it asks for its batch.

    The last step is left out: validation follows it.
    """

    before: Callable[[int], object] = id  # called with the number of each step before it begins
    steps: list[float] = field(default_factory=list)  # seconds of each step on the wall
    processor: list[float] = field(default_factory=list)  # the same in processor time, of all threads
    waits: list[float] = field(default_factory=list)  # seconds of each of them spent waiting for the batch

    def measured(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches, with the clock running."""
        while True:
            self.before(len(self.steps))
            asked, busy = time.perf_counter(), time.process_time()
            batch = next(batches, None)
            waited = time.perf_counter() - asked
            if batch is None:
                for measured in (self.steps, self.processor, self.waits):
                    del measured[-1:]
                return
            yield batch
            self.steps.append(time.perf_counter() - asked)
            self.processor.append(time.process_time() - busy)
            self.waits.append(waited)

    @property
    def step(self) -> float:
        """Median seconds of a step."""
        return median(self.steps)

    @property
    def waiting(self) -> float:
        """Share of the time spent waiting for data."""
        return sum(self.waits) / sum(self.steps)

    def attach(self, trainer: Trainer) -> Trainer:
        """The same training, with the clock running."""
        trainer.feed = _ClockedFeed(trainer.feed, self)
        return trainer


class _ClockedFeed(Feed):
    def __init__(self, feed: Feed, clock: Clock) -> None:
        vars(self).update(vars(feed))
        self._clock = clock

    def batches(self, *of_stage: Any, **settings: Any) -> Batches:  # noqa: ANN401  whatever it takes
        return _ClockedBatches(super().batches(*of_stage, **settings), self._clock)


class _ClockedBatches(Batches):
    def __init__(self, batches: Batches, clock: Clock) -> None:
        self._batches, self._clock = batches, clock

    def since(self, step: int) -> Iterator[Batch]:
        return self._clock.measured(self._batches.since(step))


def measure(task: str, spec: Spec) -> dict[str, float | str]:
    """Do a task and say what it cost."""
    corpus, clock = spec.corpus, Clock(before=lambda step: pause(clock, step, spec.round))
    if task == "write":
        return {"path": str(corpus)}
    with AnonymousPeak() as anonymous:
        if task == "prepare":
            prepare(spec.recipe, [corpus], spec.prepared, threads=spec.threads)
        elif spec.system == "plain":
            train_plain(spec, clock)
        else:
            train_ours(spec, clock)
    result: dict[str, float | str] = {"anonymous": anonymous.mib, "peak": peak_memory(), "device": "cpu"}
    if task == "train":
        result |= {"step": clock.step, "processor": median(clock.processor), "waiting": clock.waiting}
    if torch.cuda.is_available():
        result |= {"device": torch.cuda.get_device_name(), "peak": torch.cuda.max_memory_allocated() / 2**20}
    return result


def train_ours(spec: Spec, clock: Clock) -> None:
    """The trainer, as `xsent-train` runs it."""
    run = Path(spec.folder) / f"run-{os.getpid()}"
    run.mkdir()
    try:
        trainer = Trainer(spec.recipe, [spec.corpus], run, threads=spec.threads, prepared=spec.prepared)
        clock.attach(trainer).train()
    finally:
        shutil.rmtree(run, ignore_errors=True)


def train_plain(spec: Spec, clock: Clock) -> None:
    """The plain system, on the same batches."""
    torch.set_num_threads(spec.threads)
    torch.manual_seed(1)
    recipe = spec.recipe
    data = prepare(recipe, [spec.corpus], spec.prepared, threads=spec.threads)
    processor = spm.SentencePieceProcessor(model_file=str(data.tokenizer))
    maskable = torch.from_numpy(maskable_pieces(processor))
    batches = Batches(
        data.store, np.ones(1), spec.stage, seed=recipe.seed, maskable=maskable, max_length=recipe.max_length
    )
    config = ModelConfig(
        vocab_size=processor.vocab_size(),
        dim=recipe.dim,
        num_layers=spec.num_layers,
        num_heads=recipe.num_heads,
        ffn_dim=recipe.ffn_dim,
        max_length=recipe.max_length,
        dropout=spec.stage.dropout,
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    system = PlainSystem(config).to(device)
    optimizer = adam(system)
    for batch in clock.measured(batches.since(0)):
        optimizer.zero_grad()
        loss = system(batch.to(device).hiding)
        loss.backward()
        optimizer.step()
        loss.item()  # waits for the device


def pause(clock: Clock, step: int, every: int) -> None:
    """Say what the steps since the last pause cost, and wait until it is our turn again; never with 0."""
    if every and step % every == 0:
        say({"steps": clock.steps[-every:], "processor": clock.processor[-every:]})
        if not sys.stdin.readline():
            os._exit(1)  # the parent is gone


@one_line_errors()
def main(task: str, spec: Spec) -> None:
    """Say the figures of a task."""
    if not spec.round:
        end_with_parent()
    say(measure(task, spec))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    main(sys.argv[1], Spec(**json.loads(sys.argv[2])))
