"""A whole training: data, stages one after the other, checkpoints to resume from."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import sentencepiece as spm
import torch
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files import atomic_file, remove_folder
from xsent.train.checkpoint import Checkpoint, load_checkpoint, load_optimizer, save_checkpoint
from xsent.train.config import Recipe, StageConfig
from xsent.train.data.batching import Batches, earliest_step
from xsent.train.data.clusters import cluster_pairs
from xsent.train.data.corpus import Corpus
from xsent.train.data.mining import Miner, forget_orders
from xsent.train.data.preparation import TrainingPairs, corpus_shares, preparation_key, prepare
from xsent.train.data.sampling import reweigh
from xsent.train.data.vocabulary import maskable_pieces
from xsent.train.devices import average, gather, keep_freed_memory, launch, precision
from xsent.train.identity import differences, plain, weights_digest
from xsent.train.loop import Scores, StageLoop, diverged
from xsent.train.model import ModelConfig
from xsent.train.optimization import optimizer_state, parameter_groups, restore_optimizer
from xsent.train.run import keep_only, refuse_other_data, refuse_other_store, stage_folders
from xsent.train.stage import TrainingModel
from xsent.train.start import in_common, mean, open_start, require_fit
from xsent.train.teacher import kept_pairs, open_teacher, teacher_vectors
from xsent.train.validation import Validation

logger = logging.getLogger(__name__)


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
        teacher: Path | None = None,
        start: Path | None = None,
    ) -> None:
        """Prepare the data and the devices.

        Args:
            recipe: What to train.
            files: Files of pairs.
            run: Folder of everything this training writes.
            threads: Processor threads.
            devices: Processes that train together, one a GPU; the command starts the others, or `torchrun` has.
            prepared: Folder of vocabulary, held-out pairs and store; the run's unless given. Runs may share it.
            teacher: Model to distil from.
            start: Checkpoint whose vocabulary and weights the training starts from.

        Raises:
            DataError: The data, the teacher or the start cannot be used.
        """
        self.recipe, self.run_folder = recipe, run
        torch.set_num_threads(threads)
        keep_freed_memory()
        self.precision = precision(recipe.precision)
        self.fabric = launch(devices, self.precision)
        self.start = open_start(recipe, start) if start else None
        self._start_digest = weights_digest(self.start) if self.start else None
        self.teacher = open_teacher(teacher) if teacher else None
        require_fit(recipe, self.fabric.world_size, self.teacher)
        self.prepared = prepared or run
        vocabulary = self.start.tokenizer if self.start else None
        with self.fabric.rank_zero_first():
            if self.fabric.is_global_zero:
                key = preparation_key(recipe, files, vocabulary)
                refuse_other_data(run, key)
                refuse_other_store(self.prepared, run, key)
            self.data = prepare(recipe, files, self.prepared, threads=threads, vocabulary=vocabulary)
        run.mkdir(parents=True, exist_ok=True)  # what was prepared may lie elsewhere
        corpus = Corpus(files, frozenset(recipe.languages))
        self.pairs = TrainingPairs(corpus, recipe.corpus.validation_share)
        self.validation = Validation(self.data.validation, self.data.tokenizer)
        self.processor = spm.SentencePieceProcessor(model_file=str(self.data.tokenizer))
        self.maskable = torch.from_numpy(maskable_pieces(self.processor))
        store = self.data.store
        sizes = np.diff(store.cell_starts).tolist()
        shares = corpus_shares(recipe.corpus, dict(zip(store.cells, sizes, strict=True)))
        self.shares = np.array([shares[cell] for cell in store.cells])

    def train(self) -> Path:
        """Train all stages that are not finished.

        Returns:
            The last stage's checkpoint.

        Raises:
            KeyboardInterrupt: Ctrl-C; the state is saved first.
            DataError: The run folder belongs to another recipe or corpus.
            XsentError: The loss is no longer a number.
        """
        before = self.start
        for number, stage in enumerate(self.recipe.stages):
            latest = self._latest(number, stage)
            if latest is None or latest.step < stage.steps:
                logger.info("stage %s: %d layers, %d steps", stage.name, stage.num_layers, stage.steps)
                start = self._mean(stage.starts_from) if stage.starts_from else before
                latest = self._train_stage(number, stage, start, latest)
            before = latest
        assert before is not None
        return before.path

    def _mean(self, shares: Mapping[str, float]) -> Checkpoint:
        """Of the ends of finished stages."""
        stages = list(enumerate(self.recipe.stages))
        ends = {stage.name: self._latest(number, stage) for number, stage in stages if stage.name in shares}
        return mean([end for end in ends.values() if end is not None], [shares[name] for name in ends])

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
        return checkpoint

    def _recipe_until(self, number: int) -> Recipe:
        """The settings that a checkpoint of a stage depends on."""
        stages = self.recipe.stages[: number + 1]
        # What `auto` came to: another device may choose otherwise.
        return replace(self.recipe, stages=stages, precision=self.precision)

    def _sources(self, number: int) -> dict[str, str | int | None]:
        """What a checkpoint of a stage depends on beside recipe and data."""
        distils = any(stage.objectives.distils for stage in self.recipe.stages[: number + 1])
        return {
            "start": self._start_digest,
            "teacher": self.teacher.identity if self.teacher and distils else None,
            "world_size": self.fabric.world_size,
        }

    def _train_stage(
        self, number: int, stage: StageConfig, before: Checkpoint | None, latest: Checkpoint | None
    ) -> Checkpoint:
        recipe = self.recipe
        torch.manual_seed(recipe.seed + number)
        config = ModelConfig(
            vocab_size=self.processor.vocab_size(),
            dim=recipe.dim,
            num_layers=stage.num_layers,
            num_heads=recipe.num_heads,
            ffn_dim=recipe.ffn_dim,
            max_length=recipe.max_length,
            dropout=stage.dropout,
            norm=recipe.norm,
        )
        teacher_dim = self.teacher.dim if self.teacher else None
        model = TrainingModel(config, stage, self.maskable, teacher_dim)
        model.gather, model.average = partial(gather, self.fabric), partial(average, self.fabric)
        if before is not None:
            model.load_state_dict(in_common(before, config, teacher_dim), strict=False)
        if recipe.compile:
            for layer in model.encoder.layers:
                layer.compile(dynamic=True)
        batches = self._batches(number, stage, model, resumed=latest is not None)
        if latest is not None:
            model.load_state_dict(dict(latest.weights))
        optimizer = torch.optim.AdamW(parameter_groups(model), fused=True)
        if latest is not None:
            model.to(self.fabric.device)
            restore_optimizer(model, optimizer, load_optimizer(latest.path))
        loop = StageLoop(
            stage,
            model,
            optimizer,
            fabric=self.fabric,
            validation=self.validation,
            log=self.run_folder / "log.jsonl",
            seed=(recipe.seed + number) * 1_000_003,
        )

        def save(step: int, scores: Scores) -> Path:
            return self._save(number, stage, model, optimizer, step, scores)

        start = latest.step if latest else 0
        return load_checkpoint(loop.run(batches, start, save=save, minutes=recipe.checkpoint_minutes))

    def _batches(self, number: int, stage: StageConfig, model: TrainingModel, *, resumed: bool) -> Batches:
        """The batches of a stage, and what it takes to draw them."""
        seed = self.recipe.seed + 1000 * number
        rank = (self.fabric.global_rank, self.fabric.world_size)
        draw = partial(
            Batches,
            self.data.store,
            reweigh(self.shares, self.data.store.cells, stage.weights),
            stage,
            seed=seed,
            maskable=self.maskable,
            rank=rank,
        )
        draw = partial(draw, max_length=self.recipe.max_length)
        teacher, store = None, self.data.store
        # The first rank makes what is kept on disk; the others find it there.
        with self.fabric.rank_zero_first():
            if self.teacher is not None and stage.objectives.distils:
                folder = self.prepared / "teachers"
                pairs = kept_pairs(self.pairs, self.data.tokenizer)
                teacher = teacher_vectors(self.teacher, pairs, draw().drawn(), folder, key=store.key)
            clusters = self._clusters(number, stage, model, resumed=resumed)
        if stage.order != "mined":
            return draw(teacher=teacher, clusters=clusters)
        orders = self.run_folder / f"mined-{stage.name}"
        if self.fabric.is_global_zero and not resumed and orders.exists():
            remove_folder(orders)  # of a run that was begun anew
        self.fabric.barrier()
        miner = Miner(store, model.encoder, stage, orders)

        def mined(window: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
            with self.fabric.rank_zero_first():
                return miner(window, pairs)

        return draw(teacher=teacher, mined=mined)

    def _save(
        self,
        number: int,
        stage: StageConfig,
        model: TrainingModel,
        optimizer: torch.optim.Optimizer,
        step: int,
        scores: Scores,
    ) -> Path:
        path = self.run_folder / "checkpoints" / f"{stage.name}-{step:07d}"
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
            "model": asdict(model.encoder.config),
            "stage": stage.name,
            "step": step,
            "seed": self.recipe.seed,
            "preparation_key": self.data.store.key,
            "validation": scores,
            "recipe": plain(asdict(self._recipe_until(number))),
            **self._sources(number),
        }
        state = None if step == stage.steps else optimizer_state(model, optimizer)
        save_checkpoint(path, about, model.state_dict(), state, [self.data.tokenizer, self.data.validation])
        keep_only(path, self.run_folder, stage)
        forget_orders(self.run_folder / f"mined-{stage.name}", earliest_step(stage, step) // stage.window)
        self.fabric.barrier()
        return path

    def _clusters(
        self, number: int, stage: StageConfig, model: TrainingModel, *, resumed: bool
    ) -> NDArray[np.uint16] | None:
        """The cluster of each pair, as the encoder sees them at the start of the stage; kept for a resume."""
        if stage.order != "cluster":
            return None
        path = self.run_folder / f"clusters-{stage.name}.u16"
        if self.fabric.is_global_zero and not (resumed and path.exists()):
            encoder = model.encoder.to(self.fabric.device)
            seed = self.recipe.seed + number
            with atomic_file(path) as file:
                for chunk in cluster_pairs(self.data.store, encoder, clusters=stage.clusters, dim=128, seed=seed):
                    file.write(chunk.tobytes())
        return np.memmap(path, np.uint16, "r")
