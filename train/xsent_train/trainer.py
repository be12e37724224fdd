"""Training: the stages of a recipe, and the steps of a stage."""

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from threading import Event
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from tqdm import tqdm

from xsent.bundle import file_digest
from xsent.errors import DataError, XsentError
from xsent.files.atomic import remove_folder
from xsent_train.checkpoint import MODEL, TABLE, Checkpoint, load_checkpoint, load_optimizer, save_checkpoint, to_tokens
from xsent_train.data.batches import Batch, Batches, TrainingData
from xsent_train.data.corpus import Pair
from xsent_train.data.sampling import evenly
from xsent_train.devices import average, gather, keep_freed_memory, launch, precision
from xsent_train.losses.distillation import Whitening
from xsent_train.losses.stage_model import Losses, TrainingModel
from xsent_train.readouts import fit_readouts, fit_space
from xsent_train.recipe import Recipe, StageConfig, differences
from xsent_train.start import (
    average_checkpoints,
    in_common,
    keep_layers,
    model_config,
    open_start,
    require_fit,
    stage_folders,
)
from xsent_train.teacher.joined import JoinedTeacher
from xsent_train.teacher.setup import ONLY, Teachers, open_teachers
from xsent_train.validation import Scores, Validation

logger = logging.getLogger(__name__)

WHITENED = 50_000  # vectors of the teacher's input that their whitening is fitted on
AXES = 30_000  # pairs that the axes of several teachers are fitted on
READ_OUT = 20_000  # pairs that readouts are fitted on, and the matrix into the space of one of the teachers
EXTRAS = ("teachers.", "spaces.")  # before the names of matrices in a checkpoint that belong to no network


class Trainer:
    """Trains a recipe in a run folder; called again, it goes on where it stopped."""

    def __init__(
        self,
        recipe: Recipe,
        files: Sequence[Path],
        run: Path,
        *,
        threads: int,
        devices: int = 1,
        prepared: Path | None = None,
        teacher: Path | Mapping[str, Path] | Teachers | None = None,
        fast_teacher: Path | None = None,
        start: Path | None = None,
    ) -> None:
        """Prepare the data of files of pairs and the devices for a training in the folder `run`.

        The recipe may distil from the teacher and take over its layers; `fast_teacher` is its 8-bit form. Several
        teachers go by their names in the recipe; what is learnt from may also be open already. The training starts from
        vocabulary and weights of `start`, a checkpoint or a bundle. A DataError where one cannot be used.
        """
        self.run_folder = run
        paths = {ONLY: teacher} if isinstance(teacher, Path) else teacher or {}
        self.teachers = paths if isinstance(paths, Teachers) else open_teachers(recipe, paths, fast_teacher)
        self.recipe = recipe = self.teachers.bert.shape(recipe) if self.teachers.bert is not None else recipe
        torch.set_num_threads(threads)
        keep_freed_memory()
        self.precision = precision(recipe.precision)
        self.fabric = launch(devices)
        with self.fabric.rank_zero_first():
            self.start = open_start(recipe, start, run) if start else None
        self._start_digest = file_digest(self.start.path / MODEL)[:16] if self.start else None
        require_fit(recipe, self.fabric.world_size, self.teachers.dim, started=self.start is not None)
        vocabulary = self.start.tokenizer if self.start else None
        self.feed = TrainingData(
            recipe, files, run, self.fabric, threads=threads, prepared=prepared, vocabulary=vocabulary
        )
        self.validation = Validation(self.feed.data.validation, self.feed.data.tokenizer)
        vectors = self.teachers.vectors
        self.joined = vectors if isinstance(vectors, JoinedTeacher) else None
        if self.joined is not None:
            with self.fabric.rank_zero_first():
                key = f"{self.feed.data.store.key} {sorted(recipe.corpus.most.items())}"
                self.joined.prepare(self.feed.teacher_folder, key, lambda: list(self.feed.text(self.feed.sample(AXES))))

    def train(self) -> Path:
        """Train all stages that are not finished; returns the last one's checkpoint.

        Ctrl-C saves the state, and is raised. A DataError where the run's folder belongs to another recipe or corpus,
        an XsentError where the loss is no longer a number.
        """
        before = self.start
        for number, stage in enumerate(self.recipe.stages):
            latest = self._latest(number, stage)
            if latest is None or latest.step < stage.steps:
                logger.info("stage %s: %d layers, %d steps", stage.name, stage.num_layers, stage.steps)
                start = self._mean(stage.starts_from) if stage.starts_from else before
                if start is not None and stage.keep_layers:
                    start = keep_layers(start, stage.keep_layers)
                latest = self._train_stage(number, stage, start, latest)
            before = latest
        assert before is not None
        return before.path

    def _mean(self, shares: Mapping[str, float]) -> Checkpoint:
        """Of the ends of finished stages."""
        stages = list(enumerate(self.recipe.stages))
        ends = {stage.name: self._latest(number, stage) for number, stage in stages if stage.name in shares}
        return average_checkpoints([end for end in ends.values() if end is not None], [shares[name] for name in ends])

    def _latest(self, number: int, stage: StageConfig) -> Checkpoint | None:
        folders = stage_folders(self.run_folder, stage)
        if not folders:
            return None
        checkpoint = load_checkpoint(folders[-1])
        changed = differences(checkpoint.about["recipe"], self._recipe_until(number))
        for name, now in self._sources(number).items():
            if (saved := checkpoint.about.get(name, 1 if name == "world_size" else None)) != now:
                changed += f"{', ' if changed else ''}{name}: {saved!r} became {now!r}"
        if changed:
            raise DataError(f"{checkpoint.path} was trained with other settings ({changed}); name another --out")
        self._remove_older(stage, checkpoint.path)  # a kill may have come before that
        return checkpoint

    def _remove_older(self, stage: StageConfig, latest: Path) -> None:
        if self.fabric.is_global_zero:
            for other in stage_folders(self.run_folder, stage):
                if other != latest:
                    remove_folder(other)

    def _recipe_until(self, number: int) -> Recipe:
        """The settings that a checkpoint of a stage depends on."""
        stages = self.recipe.stages[: number + 1]
        # What `auto` came to: another device may choose otherwise.
        return self.recipe.model_copy(update={"stages": stages, "precision": self.precision})

    def _sources(self, number: int) -> dict[str, str | int | None]:
        """What a checkpoint of a stage depends on beside recipe and data."""
        return {
            "start": self._start_digest,
            **self.teachers.identities(self.recipe.stages[: number + 1]),
            "world_size": self.fabric.world_size,
        }

    def _train_stage(
        self, number: int, stage: StageConfig, before: Checkpoint | None, latest: Checkpoint | None
    ) -> Checkpoint:
        recipe, fabric = self.recipe, self.fabric
        torch.manual_seed(recipe.seed + number)
        teacher = self.teachers.of(stage) if stage.steps else None
        vectors = self.feed.teacher_vectors(number, stage, teacher) if teacher is not None else None
        model = self._model(stage, before, latest)
        if latest is None:
            self._fit_readouts(model, before)
        if stage.objectives.embedding_match and vectors is not None:
            drawn = self.feed.drawn(number, stage)
            sample = torch.from_numpy(vectors.rows(drawn[evenly(len(drawn), WHITENED)]))
            model.whitening = fabric.to_device(Whitening.fit(sample))
        table = before.weights[TABLE] if before is not None else None
        batches = self.feed.batches(number, stage, model.encoder, vectors, before=table, resumed=latest is not None)
        optimizer = torch.optim.AdamW(parameter_groups(model), fused=True)
        if latest is not None:
            model.to(fabric.device)
            restore_optimizer(model, optimizer, load_optimizer(latest.path))
        log, seed = self.run_folder / "log.jsonl", (recipe.seed + number) * 1_000_003
        loop = StageLoop(stage, model, optimizer, fabric=fabric, validation=self.validation, log=log, seed=seed)

        def save(step: int, scores: Scores) -> Path:
            return self._save(number, model, optimizer, step, scores)

        start = latest.step if latest else 0
        return load_checkpoint(loop.run(batches, start, save=save, minutes=recipe.checkpoint_minutes))

    def _model(self, stage: StageConfig, before: Checkpoint | None, latest: Checkpoint | None) -> TrainingModel:
        """The encoder of a stage with its objectives, as it starts or as it was left."""
        recipe, teachers, feed = self.recipe, self.teachers, self.feed
        config = model_config(recipe, stage, feed.processor.vocab_size(), before)
        model = TrainingModel(config, stage, feed.maskable, teachers.dim)
        model.mixed = self.precision == "bf16-mixed"
        model.gather, model.average = partial(gather, self.fabric), partial(average, self.fabric)
        if latest is not None:
            kept = {name: weight for name, weight in latest.weights.items() if not name.startswith(EXTRAS)}
            model.load_state_dict(kept)
        else:
            teachers.start_layers(model.encoder, recipe.teacher_layers)
            if before is None:
                teachers.start_table(model.encoder, feed.processor, feed.data.store)
            else:  # over the teacher's: a stage may have layers that the one before has not
                model.load_state_dict(in_common(before, config, teachers.dim), strict=False)
        if recipe.compile:
            for layer in model.encoder.layers:
                layer.compile(dynamic=True)
        return model

    @cached_property
    def _sampled(self) -> list[Pair]:
        """The text of the pairs that matrices are fitted on; the whole corpus is read for it, once."""
        return list(self.feed.text(self.feed.sample(READ_OUT)))

    def _fit_readouts(self, model: TrainingModel, before: Checkpoint | None) -> None:
        """Fit the readouts that the encoder before had not, to what the teachers say; nothing else moves.

        All of them where its axes were others, or are not known, as those of a bundle: other axes are another space.
        """
        depths = list(model.encoder.config.depths)
        if self.joined is None or not depths:
            return
        axes = torch.from_numpy(self.joined.matrices["axes"])
        if before is not None and (known := before.weights.get("teachers.axes")) is not None:
            if known.shape == axes.shape and torch.allclose(known, axes, atol=1e-4):
                depths = [depth for depth in depths if depth not in before.config.depths]
        if not depths:
            return
        logger.info("fitting readouts of %s layers", ", ".join(map(str, depths)))
        numbers, store = self.feed.sample(READ_OUT), self.feed.data.store
        targets = torch.from_numpy(self.joined.targets(self._sampled))
        sides = [store.tokens(numbers, side, model.stage.max_tokens) for side in (0, 1)]
        encoder = model.encoder.to(self.fabric.device).eval()
        fit_readouts(encoder, depths, sides, targets)
        encoder.train()

    def _matrices(self, model: TrainingModel, ended: bool) -> dict[str, Tensor]:
        """What several teachers' vectors become targets by; at the end of a stage also the way into their spaces."""
        if self.joined is None:
            return {}
        matrices = {f"teachers.{name}": torch.from_numpy(array) for name, array in self.joined.matrices.items()}
        for member in self.joined.members if ended else ():
            if space := member.settings.space:
                texts = [text for pair in self._sampled for text in member.sides(pair)[:1]]
                vectors = torch.from_numpy(self.joined.vectors(member.name, texts))
                tokens = to_tokens(self.feed.processor.encode(texts), model.encoder)
                encoder = model.encoder.eval()
                matrices[f"spaces.{space}"] = fit_space(encoder, tokens, vectors)
                encoder.train()
        return matrices

    def _save(
        self, number: int, model: TrainingModel, optimizer: torch.optim.Optimizer, step: int, scores: Scores
    ) -> Path:
        stage = model.stage
        path, data = self.run_folder / "checkpoints" / f"{stage.name}-{step:07d}", self.feed.data
        if not self.fabric.is_global_zero:
            self.fabric.barrier()  # until the first rank has written it
            return path
        if not all(bool(torch.isfinite(weight).all()) for weight in model.state_dict().values()):
            raise diverged(stage, step, "weights are no longer numbers")
        about = {
            "name": self.recipe.name,
            "languages": ["en", *self.recipe.languages],
            "licence": self.recipe.licence,
            "attribution": list(self.recipe.attribution),
            "space": self.recipe.space,
            "started_from": self.start.name if self.start else None,
            "model": asdict(model.encoder.config),
            "stage": stage.name,
            "step": step,
            "seed": self.recipe.seed,
            "preparation_key": data.store.key,
            "validation": scores,
            "recipe": self._recipe_until(number).model_dump(mode="json"),
            **self._sources(number),
        }
        ended = step == stage.steps
        weights = {**model.state_dict(), **self._matrices(model, ended)}
        state = None if ended else optimizer_state(model, optimizer)
        save_checkpoint(path, about, weights, state, [data.tokenizer, data.validation])
        self._remove_older(stage, path)
        self.fabric.barrier()
        return path


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
