"""The steps of a stage: loss, gradient, AdamW, validation, checkpoints."""

import json
import logging
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from threading import Event
from typing import Any

import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor, nn

from xsent.errors import XsentError
from xsent.evaluation.translation import finds_gold
from xsent.files.atomic import as_write_error, open_to_write
from xsent.progress import Progress
from xsent_train.data.batches import Batch, Batches
from xsent_train.data.corpus import Corpus, chunks
from xsent_train.devices import average, on_first_rank, return_freed_memory, seed_device
from xsent_train.model import CHUNK, Encoder
from xsent_train.recipe import StageConfig
from xsent_train.stage_model import Losses, TrainingModel
from xsent_train.tokens import open_tokenizer

logger = logging.getLogger(__name__)

TEMPERATURE = 0.05
LOOK = 20  # steps between two looks at the losses: to read them, a GPU first has to finish all that it was given

Scores = dict[str, dict[str, float]]  # of a validation, by measure, then by language


class Validation:
    """Held-out pairs. Each translation searches its English sentence among those of all languages."""

    def __init__(self, path: Path, tokenizer: Path) -> None:
        processor = open_tokenizer(tokenizer)
        pairs = list(Corpus([path]))
        english = {text: i for i, text in enumerate(dict.fromkeys(pair.english for pair in pairs))}
        self._languages = list(dict.fromkeys(pair.language for pair in pairs))
        self._language = torch.tensor([self._languages.index(pair.language) for pair in pairs])
        self._gold = torch.tensor([english[pair.english] for pair in pairs])
        self._english: list[list[int]] = processor.encode(list(english))
        self._translations: list[list[int]] = processor.encode([pair.translation for pair in pairs])

    @torch.inference_mode()
    def measure(self, encoder: Encoder) -> Scores:
        """Search with every translation, by cosine and without dropout.

        Returns `p1`, in per cent, and `loss`, the cross-entropy of cosine / 0.05 against the right sentence, which
        still distinguishes encoders with the same P@1.
        """
        was_training = encoder.training
        encoder.eval()
        candidates = F.normalize(encoder.encode_pieces(self._english), dim=1)
        searched = candidates.cpu().numpy()
        hits, losses = [], []
        for part, right in zip(chunks(self._translations, CHUNK), torch.split(self._gold, CHUNK), strict=True):
            queries = F.normalize(encoder.encode_pieces(part), dim=1)
            scores, gold = queries @ candidates.T, right.to(queries.device)
            hits.append(100.0 * torch.from_numpy(finds_gold(queries.cpu().numpy(), searched, right.tolist())))
            losses.append(F.cross_entropy(scores / TEMPERATURE, gold, reduction="none"))
        encoder.train(was_training)
        return {"p1": self._by_language(hits), "loss": self._by_language(losses)}

    def _by_language(self, parts: list[Tensor]) -> dict[str, float]:
        values = torch.cat(parts).cpu()
        return {name: float(values[self._language == i].mean()) for i, name in enumerate(self._languages)}


@dataclass
class StageLoop:
    """The steps of a stage, over its model and its optimiser."""

    model: TrainingModel
    optimizer: torch.optim.Optimizer
    fabric: Fabric
    validation: Validation
    log: Path  # receives a line of JSON at every validation
    seed: int
    save: Callable[[int, Scores], Path]  # writes a checkpoint of a step with the scores of the last validation
    save_minutes: float
    on_step: Callable[[], None]

    def __post_init__(self) -> None:
        """Put model and optimiser on the device."""
        self.stage = self.model.stage
        self._module, self._optimizer = self.fabric.setup(self.model, self.optimizer)
        self._latest: Losses = {}  # on the device
        self._losses: dict[str, float] = {}
        self._scores: Scores = {}

    def run(self, batches: Batches, steps_before: int) -> Path:
        """Train the steps after the first `steps_before`; returns the last checkpoint.

        Ctrl-C writes a checkpoint and raises KeyboardInterrupt. Raises XsentError if the loss is no longer finite.
        """
        steps = self.stage.steps
        began = saved = time.monotonic()
        shown = None if steps and self.fabric.is_global_zero else False  # one progress bar for all processes
        with interruption() as interrupted, Progress(f"steps of {self.stage.name}", steps, enabled=shown) as progress:
            progress.start_at(steps_before)
            if steps and not steps_before:
                self._validate(0, 0.0)
            for done, batch in enumerate(batches.since(steps_before), steps_before + 1):
                self._step(done - 1, batch)
                if done % LOOK == 0:
                    self._look(done)
                self.on_step()
                progress.advance()
                if done == steps:
                    continue
                if done % self.stage.validate_every == 0:
                    self._validate(done, (time.monotonic() - began) / (done - steps_before))
                stop, late = self._agree(interrupted.is_set(), time.monotonic() - saved > 60 * self.save_minutes)
                if stop or late:
                    self._look(done)
                    path, saved = self.save(done, self._scores), time.monotonic()
                if stop:
                    logger.info("saved %s; the same command resumes from there", path)
                    raise KeyboardInterrupt
            self._validate(steps, (time.monotonic() - began) / max(steps - steps_before, 1))
            on_first_rank(self.fabric, self._warn_if_worse)
            path = self.save(steps, self._scores)
            if interrupted.is_set():  # during the last step or the last validation
                raise KeyboardInterrupt
            return path

    def _agree(self, stop: bool, late: bool) -> tuple[bool, bool]:
        """Agree across ranks: whether any was interrupted, and whether the first one wants a checkpoint."""
        if self.fabric.world_size == 1:
            return stop, late
        flags = torch.tensor([stop, late and self.fabric.is_global_zero], device=self.fabric.device).float()
        agreed = self.fabric.all_reduce(flags, reduce_op="sum")
        assert isinstance(agreed, torch.Tensor)
        return bool(agreed[0] > 0), bool(agreed[1] > 0)

    def _step(self, step: int, batch: Batch) -> None:
        # Dropout as a function of step and rank, so that a resume needs no generator state.
        seed_device(self.fabric.device, self.seed + step * self.fabric.world_size + self.fabric.global_rank)
        for parameters in self._optimizer.param_groups:
            parameters["lr"] = parameters["peak"] * schedule(step, self.stage.steps, self.stage.warmup)
        losses: Losses = self._module(batch)
        weights = self.stage.objectives.weights
        total = torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()
        self._latest = {name: loss.detach() for name, loss in losses.items()}
        self._optimizer.zero_grad()
        self.fabric.backward(total)
        gradient = self.model.encoder.table.weight.grad
        if self.stage.frozen_rows and gradient is not None:
            gradient[: self.stage.frozen_rows] = 0
        if clip := self.stage.clip:
            self.fabric.clip_gradients(self._module, self._optimizer, max_norm=clip, error_if_nonfinite=False)
        self._optimizer.step()

    def _look(self, done: int) -> None:
        """Read the latest losses. Raises XsentError if one is not finite; gradients that are not make the next so."""
        if not self._latest:
            return
        # Over all ranks, so that they also stop together.
        values = average(self.fabric, torch.stack(list(self._latest.values()))).tolist()
        self._losses = dict(zip(self._latest, values, strict=True))
        bad = [name for name, loss in self._losses.items() if not math.isfinite(loss)]
        if bad:
            raise diverged(self.stage, done, f"the loss of {' and of '.join(bad)} is no longer finite")

    def _validate(self, done: int, seconds: float) -> None:
        """Measure on the first rank after `done` steps, of `seconds` each, and log the scores."""
        self._look(done)
        on_first_rank(self.fabric, partial(self._measure, done, seconds))

    def _measure(self, done: int, seconds: float) -> None:
        stage = self.stage
        scores = self._scores = self.validation.measure(self.model.encoder)
        return_freed_memory()  # 200 MB, for the checkpoint, which takes 100
        line = json.dumps({"stage": stage.name, "step": done, **self._losses, **scores}) + "\n"
        with (
            as_write_error(self.log, "make room and run the same command again; it resumes from the last checkpoint"),
            open_to_write(self.log, flags=os.O_APPEND) as log,
        ):
            log.write(line.encode())
        losses = "  ".join(f"{name} {loss:.4f}" for name, loss in self._losses.items())
        found = f"P@1 {fmean(scores['p1'].values()):.2f}  loss {fmean(scores['loss'].values()):.4f}"
        left = (stage.steps - done) * seconds / 60
        speed = "before the first step" if stage.steps else ""
        if done:
            speed = f"{stage.batch_size / seconds:.0f} pairs/s, {left:.0f} min left"
        logger.info("%s %d/%d  %s", stage.name, done, stage.steps, "  ".join(filter(None, (losses, found, speed))))

    def _warn_if_worse(self) -> None:
        """Warn if the stage found fewer translations at its end than at its start, which a resumed run reads back."""
        name, end, start = self.stage.name, fmean(self._scores["p1"].values()), 0.0
        with suppress(OSError, ValueError, KeyError):  # a disk that was full may have damaged the log
            for line in self.log.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if (row["stage"], row["step"]) == (name, 0):
                    start = fmean(row["p1"].values())
        if end < start:
            advice = "unless a mean follows, try fewer steps or lower learning rates"
            logger.warning("stage %s made it worse: P@1 was %.2f at its start, now %.2f; %s", name, start, end, advice)


@contextmanager
def interruption() -> Iterator[Event]:
    """The event that the first Ctrl-C sets, so that the step is finished and saved; the second stops at once."""
    event = Event()

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, old)  # first: another Ctrl-C must not come while the event is set
        event.set()
        logger.warning("interrupted: saving after this step; press Ctrl-C again to stop at once")

    old = signal.signal(signal.SIGINT, interrupt)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, old)


def diverged(stage: StageConfig, step: int, what: str) -> XsentError:
    """The error of a training whose numbers are no longer finite."""
    return XsentError(
        f"stage {stage.name}, step {step}: {what}; the last checkpoint is kept; lower the stage's learning rate and "
        f"delete its {stage.name}-* checkpoints"
    )


def parameter_groups(model: TrainingModel) -> list[dict[str, Any]]:
    """Parameters by peak learning rate (the table's or the layers') and weight decay (only matrices decay)."""
    stage = model.stage
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        table = parameter is model.encoder.table.weight
        rate = stage.table_learning_rate if table else stage.learning_rate
        decays = parameter.ndim > 1 and not table
        if parameter.requires_grad:
            groups.setdefault((rate, stage.weight_decay if decays else 0.0), []).append(parameter)
    return [{"params": params, "peak": peak, "weight_decay": decay} for (peak, decay), params in groups.items()]


def schedule(step: int, steps: int, warmup: int) -> float:
    """The share of the peak learning rate at a step: linear warm-up, then a cosine to zero."""
    risen = min(1.0, (step + 1) / max(warmup, 1))
    return risen * 0.5 * (1 + math.cos(math.pi * step / steps))
