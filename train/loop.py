"""The steps of one stage: loss, learning rates, optimiser, progress, validation, checkpoints."""

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from threading import Event
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from tqdm import tqdm

from xsent.errors import XsentError
from xsent.train.config import StageConfig
from xsent.train.data.batching import Batch, Batches
from xsent.train.devices import average
from xsent.train.stage import Losses, TrainingModel
from xsent.train.validation import Scores, Validation

logger = logging.getLogger(__name__)

Save = Callable[[int, Scores], Path]  # writes a checkpoint after so many steps, with the last validation


@contextmanager
def interruption() -> Iterator[Event]:
    """What the first Ctrl-C sets, so that a step is finished and saved; the second one acts at once."""
    asked = Event()

    def ask(*_: object) -> None:
        signal.signal(signal.SIGINT, old)  # first: another Ctrl-C must not come while the event is set
        asked.set()
        logger.warning("interrupted: saving after this step; once more stops at once")

    old = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, old)


def diverged(stage: StageConfig, step: int, what: str) -> XsentError:
    """The error of a training whose numbers have run away."""
    return XsentError(
        f"stage {stage.name}, step {step}: {what}; the checkpoint before stands; lower the stage's learning rate and "
        f"delete its {stage.name}-* checkpoints"
    )


class StageLoop:
    """Runs the steps of a stage over a model and its optimiser."""

    def __init__(
        self,
        stage: StageConfig,
        model: TrainingModel,
        optimizer: torch.optim.Optimizer,
        *,
        fabric: Fabric,
        validation: Validation,
        log: Path,
        seed: int,
    ) -> None:
        """Put model and optimiser on the device; `log` gets a JSON line at every validation."""
        self._stage, self._model, self._fabric = stage, model, fabric
        self._validation, self._log, self._seed = validation, log, seed
        self._module, self._optimizer = fabric.setup(model, optimizer)
        self._weights = stage.objectives.weights
        self._losses: dict[str, float] = {}
        self._scores: Scores = {}

    def run(self, batches: Batches, start: int, *, save: Save, minutes: float) -> Path:
        """Train from step `start` to the end, with a checkpoint every so many minutes; returns the last one.

        Ctrl-C writes one, and is raised. An XsentError where the loss is no longer a number.
        """
        steps = self._stage.steps
        began = saved = time.monotonic()
        first = self._fabric.is_global_zero
        hidden = None if first else True  # one progress bar is enough; none where nobody watches
        bar = tqdm(total=steps, initial=start, desc=self._stage.name, unit="step", disable=hidden)
        with interruption() as interrupted, bar:
            for done, batch in enumerate(batches.since(start), start + 1):
                self._step(done - 1, batch)
                bar.update()
                if first and done % self._stage.validate_every == 0 and done < steps:
                    self._validate(done, (time.monotonic() - began) / (done - start))
                asked, late = self._agree(interrupted.is_set(), time.monotonic() - saved > 60 * minutes)
                if asked and done < steps:
                    logger.info("saved %s; the same command goes on from there", save(done, self._scores))
                    raise KeyboardInterrupt
                if late and done < steps:
                    save(done, self._scores)
                    saved = time.monotonic()
            if first:
                self._validate(steps, (time.monotonic() - began) / max(steps - start, 1))
            path = save(steps, self._scores)
            if interrupted.is_set():  # during the last step or the last validation
                raise KeyboardInterrupt
            return path

    def _agree(self, asked: bool, late: bool) -> tuple[bool, bool]:
        """The same answer on all ranks: whether one was interrupted, whether the first wants a checkpoint."""
        if self._fabric.world_size == 1:
            return asked, late
        flags = torch.tensor([asked, late and self._fabric.is_global_zero], device=self._fabric.device).float()
        agreed = self._fabric.all_reduce(flags, reduce_op="sum")
        assert isinstance(agreed, torch.Tensor)
        return bool(agreed[0] > 0), bool(agreed[1] > 0)

    def _step(self, step: int, batch: Batch) -> None:
        # Dropout as a function of step and rank, so that a resume needs no generator state.
        torch.manual_seed(self._seed + step * self._fabric.world_size + self._fabric.global_rank)
        for parameters in self._optimizer.param_groups:
            parameters["lr"] = parameters["peak"] * schedule(step, self._stage)
        losses: Losses = self._module(batch)
        total = torch.stack([self._weights[name] * loss for name, loss in losses.items()]).sum()
        # Over all ranks, so that they also stop together.
        values = average(self._fabric, torch.stack(list(losses.values())).detach()).tolist()
        self._losses = dict(zip(losses, values, strict=True))
        bad = [name for name, loss in self._losses.items() if not math.isfinite(loss)]
        if bad:
            raise diverged(self._stage, step, f"the loss of {' and of '.join(bad)} is no longer a number")
        self._optimizer.zero_grad()
        self._fabric.backward(total)
        gradient = self._model.encoder.table.weight.grad
        if self._stage.frozen_rows and gradient is not None:
            gradient[: self._stage.frozen_rows] = 0
        if most := self._stage.clip:
            module, optimizer = self._module, self._optimizer
            norm = self._fabric.clip_gradients(module, optimizer, max_norm=most, error_if_nonfinite=False)
            if norm is not None and not torch.isfinite(norm):
                raise diverged(self._stage, step, "the gradients are no longer numbers")
        self._optimizer.step()

    def _validate(self, done: int, seconds: float) -> None:
        """Measure after so many steps of so many seconds each, and say so."""
        scores = self._scores = self._validation.measure(self._model.encoder)
        with open(self._log, "a") as log:
            log.write(json.dumps({"stage": self._stage.name, "step": done, **self._losses, **scores}) + "\n")
        stage, losses = self._stage, "  ".join(f"{name} {loss:.4f}" for name, loss in self._losses.items())
        found = f"P@1 {fmean(scores['p1'].values()):.2f}  loss {fmean(scores['loss'].values()):.4f}"
        left = (stage.steps - done) * seconds / 60
        speed = f"{stage.batch_size / seconds:.0f} pairs/s, {left:.0f} min left" if done else "no steps"
        logger.info("%s %d/%d  %s  %s  %s", stage.name, done, stage.steps, losses, found, speed)


def parameter_groups(model: TrainingModel) -> list[dict[str, Any]]:
    """Parameters by peak learning rate, the table's or the layers', and by weight decay: only matrices have one."""
    stage = model.stage
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        table = parameter is model.encoder.table.weight
        rate = stage.table_learning_rate if table else stage.learning_rate
        decays = parameter.ndim > 1 and not table
        if parameter.requires_grad:
            groups.setdefault((rate, stage.weight_decay if decays else 0.0), []).append(parameter)
    return [{"params": params, "peak": peak, "weight_decay": decay} for (peak, decay), params in groups.items()]


def schedule(step: int, stage: StageConfig) -> float:
    """The share of the peak learning rate at a step: linear warm-up, then a cosine to zero."""
    warmup = min(1.0, (step + 1) / max(stage.warmup, 1))
    return warmup * 0.5 * (1 + math.cos(math.pi * step / stage.steps))


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by parameter name, ready for safetensors."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    return {f"{names[p]}|{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_state` gave."""
    parameters = dict(model.named_parameters())
    for entry, value in saved.items():
        name, key = entry.rsplit("|", 1)
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.to(parameter.device)  # where fused AdamW wants all of it
