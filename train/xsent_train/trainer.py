"""Training: the stages of a recipe, one after another."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from xsent.errors import DataError
from xsent_train.checkpoint import (
    AXES,
    SPACES,
    TABLE,
    TEACHERS,
    Checkpoint,
    load_checkpoint,
    load_optimizer,
    optimizer_state,
    remove_older,
    require_room,
    restore_optimizer,
    save_checkpoint,
    stage_folders,
)
from xsent_train.data.batches import Batches, TrainingData
from xsent_train.data.corpus import Pair
from xsent_train.data.sampling import evenly
from xsent_train.derive import average_checkpoints, identify, keep_layers, model_path, open_start
from xsent_train.devices import (
    average,
    first_rank_first,
    gather,
    keep_freed_memory,
    launch,
    limit_kernel_caches,
    on_first_rank,
    precision,
)
from xsent_train.fitting import fit_queries, fit_readouts, fit_space, project_languages
from xsent_train.losses import Whitening
from xsent_train.model import Encoder, ModelConfig
from xsent_train.recipe import LAYER_SHAPE, START, Recipe, StageConfig
from xsent_train.requirements import differences, require_fit
from xsent_train.stage_loop import Scores, StageLoop, Validation, diverged, parameter_groups
from xsent_train.stage_model import TrainingModel
from xsent_train.teacher.bert import english_rows, piece_counts
from xsent_train.teacher.joined import ONLY, JoinedTeacher, Member, Teachers, open_teachers
from xsent_train.tokens import Tokens

logger = logging.getLogger(__name__)

WHITENED = 50_000  # input vectors of the teacher that the whitening is fitted on
AXES_FROM = 30_000  # pairs that the axes of several teachers are fitted on
SAMPLED = 40_000  # pairs that the matrix into the space of one of the teachers is fitted on
PAIRS_PER_LANGUAGE = 500  # that the direction of language is estimated from
READ_OUT = slice(None, None, 2)  # which of these pairs readouts are fitted on
EXTRAS = (TEACHERS, SPACES)  # prefixes of matrices in a checkpoint that are not part of the network


class Trainer:
    """Trains a recipe in a run folder, or resumes its training."""

    def __init__(
        self,
        recipe: Recipe,
        data: Path,
        run: Path,
        *,
        threads: int,
        devices: int = 1,
        prepared: Path | None = None,
        teacher: Path | Mapping[str, Path] | Teachers | None = None,
        start: Path | None = None,
    ) -> None:
        """Prepare the devices, and the data from the recipe's files in a folder, for a training in the folder `run`.

        The recipe may distil from the teacher and take over its layers. Several teachers are given by their names in
        the recipe; they may also be open already. The training starts from the vocabulary and the weights of `start`, a
        checkpoint or a bundle. Raises DataError if any of these is unusable.
        """
        self.run_folder = run
        limit_kernel_caches()  # first, because a teacher may compile some
        paths = {ONLY: teacher} if isinstance(teacher, Path) else teacher or {}
        start = model_path(start) if start else None
        paths = paths if isinstance(paths, Teachers) else {name: model_path(path) for name, path in paths.items()}
        self.teachers = paths if isinstance(paths, Teachers) else open_teachers(recipe, paths)
        self.recipe = recipe = self.teachers.bert.shaped_recipe(recipe) if self.teachers.bert is not None else recipe
        torch.set_num_threads(threads)
        if any(stage.table_learning_rate for stage in recipe.stages):  # whose gradient is large
            keep_freed_memory()
        self.precision = precision(recipe.precision)
        self.fabric = launch(devices)
        with first_rank_first(self.fabric):
            self.started_from = open_start(recipe, start) if start else None
        self._start = identify(start)[1] if start else None
        self._own_teacher = start is not None and paths == {ONLY: start}  # vectors then stay in the start's space
        require_fit(recipe, self.fabric.world_size, self.teachers.dim, started=self.started_from is not None)
        vocabulary = self.started_from.tokenizer if self.started_from else None
        files, tables = recipe.corpus.paths(data), {"scored": recipe.scored, "passages": recipe.passages}
        given: dict[str, Any] = {kind: table.paths(data) for kind, table in tables.items() if table}
        given |= {"prepared": prepared, "vocabulary": vocabulary}
        self.data = TrainingData(recipe, files, run, self.fabric, threads=threads, **given)
        self.validation = Validation(self.data.prepared.validation, self.data.prepared.tokenizer)
        if (joined := self.teachers.joined) is not None:
            with first_rank_first(self.fabric):
                key = f"{self.data.store.key} {sorted(recipe.corpus.most.items())}"
                joined.prepare(self.data.teacher_folder, key, lambda: self.data.text(AXES_FROM))

    def train(self, on_step: Callable[[], None] = lambda: None) -> Path:
        """Train all unfinished stages; returns the checkpoint of the last one. `on_step` is called after every step.

        Ctrl-C saves the state and raises KeyboardInterrupt. Raises DataError if the run's folder belongs to another
        recipe or corpus, XsentError if the loss is no longer finite.
        """
        previous = self.started_from
        for number, stage in enumerate(self.recipe.stages):
            saved = self._last_checkpoint(number)
            if saved is None or saved.step < stage.steps:
                steps = f"steps {stage.steps:,}" if stage.steps else "a mean"
                resumed = f", resumed at {saved.step:,}" if saved else ""
                logger.info("stage %s: layers %d, %s%s", stage.name, stage.num_layers, steps, resumed)
                saved = self._train_stage(number, previous, saved, on_step)
            previous = saved
        assert previous is not None
        return previous.path

    def _last_checkpoint(self, number: int) -> Checkpoint | None:
        """The last checkpoint of a stage; older ones, which a killed run did not remove, are removed now.

        Raises DataError if it was trained with other settings.
        """
        recipe, origin = self._recipe_until(number), self._origin(number)
        stage_name = recipe.stages[-1].name
        if not (folders := stage_folders(self.run_folder, stage_name)):
            return None
        checkpoint = load_checkpoint(folders[-1])
        changes = [differences(checkpoint.about["recipe"], recipe)]
        for name, now in origin.items():
            if (saved := checkpoint.about.get(name)) != now:
                changes.append(f"{name}: {saved!r} became {now!r}")
        if changed := ", ".join(filter(None, changes)):
            raise DataError(
                f"{checkpoint.path} was trained with other settings ({changed}); name another folder for the run"
            )
        if self.fabric.is_global_zero:
            remove_older(self.run_folder, stage_name)
        return checkpoint

    def _recipe_until(self, number: int) -> Recipe:
        """The settings that a checkpoint of a stage depends on."""
        stages = self.recipe.stages[: number + 1]
        # The precision in use instead of `auto`, because another device may choose another one.
        return self.recipe.model_copy(update={"stages": stages, "precision": self.precision})

    def _origin(self, number: int) -> dict[str, str | int | None]:
        """What a checkpoint depends on besides its recipe: start, teachers, other text than pairs, and processes."""
        stages = self.recipe.stages[: number + 1]
        read = {objective for stage in stages for objective in stage.objectives.weights}
        stores = {"scored": ("similarity", self.data.scored), "passages": ("retrieve", self.data.passages)}
        others = {kind: store.key if store and name in read else None for kind, (name, store) in stores.items()}
        teachers = self.teachers.identities(stages)
        return {"start": self._start, **teachers, **others, "world_size": self.fabric.world_size}

    def _train_stage(
        self, number: int, previous: Checkpoint | None, saved: Checkpoint | None, on_step: Callable[[], None]
    ) -> Checkpoint:
        """Train a stage from the checkpoint of the previous stage, or resume it from its own."""
        model, batches = self.prepare_stage(number, previous, saved)
        if saved is None:
            on_first_rank(self.fabric, partial(require_room, self.run_folder, model))
        optimizer = torch.optim.AdamW(parameter_groups(model), fused=True)
        if saved is not None:
            model.to(self.fabric.device)
            restore_optimizer(model, optimizer, load_optimizer(saved.path))
        loop = StageLoop(
            model,
            optimizer,
            self.fabric,
            self.validation,
            log=self.run_folder / "log.jsonl",
            seed=(self.recipe.seed + number) * 1_000_003,
            save=partial(self._save, number, model, optimizer),
            save_minutes=self.recipe.checkpoint_minutes,
            on_step=on_step,
        )
        return load_checkpoint(loop.run(batches, saved.step if saved else 0))

    def prepare_stage(
        self, number: int, previous: Checkpoint | None, saved: Checkpoint | None
    ) -> tuple[TrainingModel, Batches]:
        """The model of a stage, initial or saved, and the batches that it learns from, with targets."""
        stage = self.recipe.stages[number]
        torch.manual_seed(self.recipe.seed + number)
        initial = self._initial(stage, previous)
        config = model_config(self.recipe, stage, self.data.processor.vocab_size(), initial)
        model = TrainingModel(config, stage, self.data.maskable, self.teachers.dim)
        model.mixed = self.precision == "bf16-mixed"
        model.gather = partial(gather, self.fabric)
        model.average = partial(average, self.fabric)
        if saved is not None:
            model.load_state_dict({n: weight for n, weight in saved.weights.items() if not n.startswith(EXTRAS)})
        else:
            self._initialise(model, initial)
        teacher = self.teachers.of(stage) if stage.steps else None
        table = initial.weights[TABLE] if initial is not None else None
        passages, resumed = self.recipe.passages, saved is not None
        batches = self.data.batches(
            number, stage, model.encoder, teacher, table=table, passages=passages, resumed=resumed
        )
        if stage.objectives.embedding_match and batches.teacher is not None:
            drawn = batches.drawn()
            sample = torch.from_numpy(batches.teacher.rows(drawn[evenly(len(drawn), WHITENED)]))
            model.whitening = self.fabric.to_device(Whitening.fit(sample))
        return model, batches

    def _initial(self, stage: StageConfig, previous: Checkpoint | None) -> Checkpoint | None:
        """The checkpoint that a stage starts from: the mean of the stages that it names, or the previous stage.

        It is reduced to the layers that the stage keeps.
        """
        initial = previous
        if stage.starts_from:
            stages = [(number, other.name) for number, other in enumerate(self.recipe.stages)]
            found = {name: self._last_checkpoint(number) for number, name in stages if name in stage.starts_from}
            if START in stage.starts_from and self.started_from is not None:
                found[START] = self.started_from
            ends = {name: end for name, end in found.items() if end is not None}
            initial = average_checkpoints(list(ends.values()), [stage.starts_from[name] for name in ends])
        if initial is not None and stage.keep_layers:
            initial = keep_layers(initial, stage.keep_layers)
        return initial

    def _initialise(self, model: TrainingModel, initial: Checkpoint | None) -> None:
        """Give a new model the teacher's layers, then the weights of the checkpoint that it starts from.

        Without a checkpoint, its table starts at the teacher's rows. Readouts that the checkpoint lacks are fitted.
        """
        encoder = model.encoder
        bert = self.teachers.bert
        layers, max_length = encoder.config.num_layers, encoder.config.max_length
        if bert is not None and layers:
            encoder.load_state_dict(bert.layers(self.recipe.teacher_layers[:layers], max_length), strict=False)
        if initial is not None:  # on top of the teacher's layers: the stage may have more than the checkpoint
            weights = weights_in_common(initial, encoder.config, self.teachers.dim)
            model.load_state_dict(weights, strict=False)
            for name, parameter in model.named_parameters():
                if name in weights and not parameter.requires_grad:
                    parameter.data = weights[name]  # in memory once: it does not change
        elif bert is not None:
            counts = piece_counts(self.data.store, encoder.config.vocab_size)
            with torch.no_grad():
                encoder.table.weight.copy_(english_rows(bert, self.data.processor, counts))
        encoder.to(self.fabric.device).eval()
        self._fit_queries(encoder, model.stage)
        self._fit_readouts(encoder, initial, model.stage.max_tokens)
        self._project_languages(encoder, model.stage)
        encoder.train()

    def _fit_queries(self, encoder: Encoder, stage: StageConfig) -> None:
        """Fit the queries of the depths in the stage's `attention`; other weights do not change."""
        if not stage.attention:
            return
        logger.info("fitting queries of %s layers", ", ".join(stage.attention))
        wanted = {int(depth): (weights.half, weights.first) for depth, weights in stage.attention.items()}
        fit_queries(encoder, wanted, self._read_out_sides(stage.max_tokens))

    def _read_out_sides(self, max_tokens: int) -> list[Tokens]:
        numbers = self.data.sample(SAMPLED)[READ_OUT]
        return [self.data.store.tokens(numbers, side, max_tokens) for side in (0, 1)]

    def _fit_readouts(self, encoder: Encoder, initial: Checkpoint | None, max_tokens: int) -> None:
        """Fit the readouts that the checkpoint lacks to the teachers' vectors; other weights do not change.

        Fit all readouts if the checkpoint's axes differ or are unknown, because then the vector space differs. A
        checkpoint read from a bundle has no axes.
        """
        depths = list(encoder.config.depths)
        joined = self.teachers.joined
        if joined is None or not depths:
            return
        axes = torch.from_numpy(joined.matrices["axes"])
        if initial is not None and (known := initial.weights.get(AXES)) is not None:
            if known.shape == axes.shape and torch.allclose(known, axes, atol=1e-4):
                depths = [depth for depth in depths if depth not in initial.config.depths]
        if not depths:
            return
        logger.info("fitting readouts of %s layers", ", ".join(map(str, depths)))
        targets = torch.from_numpy(joined.targets(self._sampled[READ_OUT]))
        fit_readouts(encoder, depths, self._read_out_sides(max_tokens), targets)

    def _project_languages(self, encoder: Encoder, stage: StageConfig) -> None:
        """Project the direction of language out of the readouts, if the stage asks for it."""
        if not stage.language_directions:
            return
        numbers = self.data.translations(PAIRS_PER_LANGUAGE)
        language = torch.from_numpy(self.data.store.languages[numbers].astype(np.int64))
        logger.info("projecting out the direction of language, estimated from %d pairs", len(numbers))
        sides = [self.data.store.tokens(numbers, side, stage.max_tokens) for side in (0, 1)]
        project_languages(encoder, stage.language_directions, sides, self.fabric.to_device(language))

    @cached_property
    def _sampled(self) -> list[Pair]:
        """The text of the pairs that matrices are fitted on."""
        return self.data.text(SAMPLED)

    def _save(
        self,
        number: int,
        model: TrainingModel,
        optimizer: torch.optim.Optimizer,
        step: int,
        scores: Scores,
    ) -> Path:
        """Write a checkpoint of a stage after `step` steps, and remove older ones."""
        stage = model.stage
        prepared = self.data.prepared
        path = self.run_folder / "checkpoints" / f"{stage.name}-{step:07d}"

        def write() -> None:
            if not all(bool(torch.isfinite(weight).all()) for weight in model.state_dict().values()):
                raise diverged(stage, step, "weights are no longer finite")
            ended = step == stage.steps
            weights = {**model.state_dict(), **self._matrices(model.encoder, ended)}
            state = None if ended else optimizer_state(model, optimizer)
            about = {
                "name": self.recipe.name,
                "languages": self._languages(),
                "licence": self.recipe.licence,
                "attribution": self._attribution(),
                "model": asdict(model.encoder.config),
                "step": step,
                "preparation_key": prepared.store.key,
                "recipe": self._recipe_until(number).model_dump(mode="json"),
                "space": self.recipe.space,
                "started_from": self.started_from.name if self.started_from else None,
                "stage": stage.name,
                "seed": self.recipe.seed,
                "validation": scores,
                **self._origin(number),
            }
            save_checkpoint(path, about, weights, state, [prepared.tokenizer, prepared.validation])
            remove_older(self.run_folder, stage.name)

        on_first_rank(self.fabric, write)
        return path

    def _languages(self) -> list[str]:
        """Those of the recipe; a start that is its own teacher keeps its languages, too."""
        known = self.started_from.languages if self.started_from is not None and self._own_teacher else []
        return list(dict.fromkeys([*known, "en", *self.recipe.languages]))

    def _attribution(self) -> list[str]:
        """The sources for the model card: those of the start, and those that the recipe names, or else the text."""
        known = self.started_from.about.get("attribution", []) if self.started_from is not None else []
        return list(dict.fromkeys([*known, *(self.recipe.attribution or self.data.sources)]))

    def _matrices(self, encoder: Encoder, ended: bool) -> dict[str, Tensor]:
        """The matrices from several teachers' vectors to targets; after a stage, also those into teachers' spaces.

        If a start is its own teacher, its matrices into other spaces are kept.
        """
        if (joined := self.teachers.joined) is None:
            known = self.started_from.weights if self.started_from is not None and self._own_teacher else {}
            return {name: weight for name, weight in known.items() if name.startswith(SPACES)}
        matrices = {f"{TEACHERS}{name}": torch.from_numpy(array) for name, array in joined.matrices.items()}
        for member in joined.members if ended else ():
            if space := member.settings.space:
                logger.info("fitting the matrix into the space of %s", space)
                matrices[f"{SPACES}{space}"] = self._fit_space(encoder, joined, member)
        return matrices

    def _fit_space(self, encoder: Encoder, joined: JoinedTeacher, member: Member) -> Tensor:
        """The matrix into the space of one of several teachers, see `fit_space`."""
        known = [(text, pair) for pair in self._sampled for text in member.sides(pair)[:1]]
        texts = [text for text, _ in known]
        others = [pair.english if text == pair.translation else pair.translation or text for text, pair in known]
        sides = [self.data.processor.encode(side) for side in (texts, others)]
        encoder.eval()
        with torch.no_grad():
            own = [F.normalize(encoder.encode_pieces(side), dim=1).cpu() for side in sides]
        encoder.train()
        return fit_space(own, torch.from_numpy(joined.vectors(member.name, texts)))


def model_config(recipe: Recipe, stage: StageConfig, vocab_size: int, initial: Checkpoint | None) -> ModelConfig:
    """The shape of a stage's encoder; its first and last piece come from the checkpoint that it starts from."""
    shape = {name: getattr(recipe, name) for name in ("dim", *LAYER_SHAPE)}
    shape["depths"] = tuple(sorted(stage.layer_prefixes)) if recipe.readouts else ()
    if initial is not None:
        shape |= {name: getattr(initial.config, name) for name in ("first", "last")}
    return ModelConfig(vocab_size, num_layers=stage.num_layers, dropout=stage.dropout, **shape)


def weights_in_common(initial: Checkpoint, config: ModelConfig, teacher_dim: int | None) -> dict[str, Tensor]:
    """The weights of a checkpoint that fit an encoder: the table, the layers, and the head.

    They include a projection to a teacher of the same dimension: a new one learns slowly, and misleads until then.
    Raises DataError if the table does not have one row for each piece of the vocabulary.
    """
    rows = len(initial.weights[TABLE])
    if rows != config.vocab_size:
        raise DataError(
            f"{initial.path}: its table has {rows} rows, but the vocabulary {config.vocab_size} pieces; a training "
            "must keep the vocabulary of its start"
        )
    if initial.config.num_layers > config.num_layers:
        text = "%s has %d layers, the stage %d: the upper ones are dropped"
        logger.warning(text, initial.path, initial.config.num_layers, config.num_layers)
    fits = (teacher_dim, config.dim)
    return {n: weight for n, weight in initial.weights.items() if n != "projection.weight" or weight.shape == fits}
