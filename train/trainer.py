"""A whole training: data, stages one after the other, checkpoints to resume from."""

import ctypes
import json
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sentencepiece as spm
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files import atomic_file, remove_folder, sweep
from xsent.train.checkpoint import Checkpoint, load_checkpoint, load_optimizer, read_about, save_checkpoint
from xsent.train.config import Recipe, StageConfig
from xsent.train.data.batching import Batches
from xsent.train.data.clusters import cluster_pairs
from xsent.train.data.preparation import corpus_shares, preparation_key, prepare
from xsent.train.data.vocabulary import maskable_pieces
from xsent.train.loop import Scores, StageLoop, diverged
from xsent.train.model import ModelConfig
from xsent.train.stage import TrainingModel, optimizer_state, parameter_groups, restore_optimizer
from xsent.train.validation import Validation

logger = logging.getLogger(__name__)

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # options of glibc's mallopt


class Trainer:
    """Trains a recipe in a run folder; called again, it goes on where it stopped."""

    def __init__(self, recipe: Recipe, files: Sequence[Path], run: Path, *, threads: int) -> None:
        """Prepare the data and the device.

        Args:
            recipe: What to train.
            files: Files of pairs.
            run: Folder of everything this training writes.
            threads: Processor threads.

        Raises:
            DataError: The data cannot be used.
        """
        self.recipe, self.run_folder = recipe, run
        torch.set_num_threads(threads)
        keep_freed_memory()
        refuse_other_data(run, preparation_key(recipe, files))
        self.data = prepare(recipe, files, run, threads=threads)
        self.precision = precision(recipe.precision)
        self.fabric = Fabric(accelerator="auto", devices=1, precision=self.precision)
        self.validation = Validation(self.data.validation, self.data.tokenizer)
        self.processor = spm.SentencePieceProcessor(model_file=str(self.data.tokenizer))
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
        before: Checkpoint | None = None
        for number, stage in enumerate(self.recipe.stages):
            latest = self._latest(number, stage)
            if latest is None or latest.step < stage.steps:
                logger.info("stage %s: %d layers, %d steps", stage.name, stage.num_layers, stage.steps)
                latest = self._train_stage(number, stage, before, latest)
            before = latest
        assert before is not None
        return before.path

    def _latest(self, number: int, stage: StageConfig) -> Checkpoint | None:
        folders = stage_folders(self.run_folder, stage)
        if not folders:
            return None
        checkpoint = load_checkpoint(folders[-1])
        changed = differences(checkpoint.about["recipe"], self._identity(number))
        if changed:
            raise DataError(f"{checkpoint.path} was trained with other settings ({changed}); name another --out")
        return checkpoint

    def _identity(self, number: int) -> dict[str, Any]:
        """The settings that a checkpoint of a stage depends on."""
        settings = asdict(self.recipe)
        for free in ("licence", "attribution", "checkpoint_minutes"):
            del settings[free]
        settings["stages"] = settings["stages"][: number + 1]
        settings["precision"] = self.precision  # what `auto` came to: another device may choose otherwise
        return dict(json.loads(json.dumps(settings)))  # as a checkpoint gives it back: lists, no tuples

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
        )
        model = TrainingModel(config, stage, maskable_pieces(self.processor))
        if before is not None:  # what the stages have in common: the table, and layers of the same number
            model.load_state_dict(dict(before.weights), strict=False)
        clusters = self._clusters(number, stage, model, resumed=latest is not None)
        if latest is not None:
            model.load_state_dict(dict(latest.weights))
        optimizer = torch.optim.AdamW(parameter_groups(model), fused=True)
        if latest is not None:
            model.to(self.fabric.device)
            restore_optimizer(model, optimizer, load_optimizer(latest.path))
        batches = Batches(self.data.store, self.shares, stage, seed=recipe.seed + 1000 * number, clusters=clusters)
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

    def _save(
        self,
        number: int,
        stage: StageConfig,
        model: TrainingModel,
        optimizer: torch.optim.Optimizer,
        step: int,
        scores: Scores,
    ) -> Path:
        if not all(bool(torch.isfinite(weight).all()) for weight in model.state_dict().values()):
            raise diverged(stage, step, "weights are no longer numbers")
        path = self.run_folder / "checkpoints" / f"{stage.name}-{step:07d}"
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
            "recipe": self._identity(number),
        }
        state = None if step == stage.steps else optimizer_state(model, optimizer)
        save_checkpoint(path, about, model.state_dict(), state, [self.data.tokenizer, self.data.validation])
        for older in stage_folders(self.run_folder, stage):
            if older != path:
                remove_folder(older)
        return path

    def _clusters(
        self, number: int, stage: StageConfig, model: TrainingModel, *, resumed: bool
    ) -> NDArray[np.uint16] | None:
        """The cluster of each pair, as the encoder sees them at the start of the stage; kept for a resume."""
        if stage.order != "cluster":
            return None
        path = self.run_folder / f"clusters-{stage.name}.u16"
        if not resumed or not path.exists():
            encoder = model.encoder.to(self.fabric.device)
            seed = self.recipe.seed + number
            with atomic_file(path) as file:
                for chunk in cluster_pairs(self.data.store, encoder, clusters=stage.clusters, dim=128, seed=seed):
                    file.write(chunk.tobytes())
        return np.memmap(path, np.uint16, "r")


def stage_folders(run: Path, stage: StageConfig) -> list[Path]:
    """The checkpoints of a stage, the oldest first."""
    name = re.compile(re.escape(stage.name) + r"-\d{7}")
    return sorted(path for path in run.glob("checkpoints/*") if name.fullmatch(path.name))


def refuse_other_data(run: Path, key: str) -> None:
    """Stop before anything of a run is overwritten whose checkpoints were trained on other data.

    Also sweeps away what killed runs left half-written.
    """
    sweep(run)
    sweep(run / "checkpoints")
    for folder in sorted(run.glob("checkpoints/*")):
        if read_about(folder).get("preparation_key") != key:
            raise DataError(f"{folder} was trained on another corpus or vocabulary; name another --out")


def keep_freed_memory() -> None:
    """Ask the C library to keep what is freed instead of giving it back to the system.

    The gradient of a token table alone is 100 MB: fetched anew at every step, its page faults took 45% of the time.
    """
    with suppress(OSError, AttributeError):  # mallopt is glibc's
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def precision(wanted: str) -> Literal["32-true", "bf16-mixed"]:
    """The precision to train in; `auto` is bfloat16 where matrices are multiplied in it by hardware."""
    if wanted == "auto":
        bf16 = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else torch.cpu._is_amx_tile_supported()
        return "bf16-mixed" if bf16 else "32-true"
    return "bf16-mixed" if wanted == "bf16-mixed" else "32-true"


def differences(saved: object, now: object, name: str = "") -> str:
    """Where two trees of settings differ, in words; empty where they are equal."""
    if isinstance(saved, dict) and isinstance(now, dict):
        keys = sorted(saved.keys() | now.keys())
        parts = [differences(saved.get(key), now.get(key), f"{name}.{key}".lstrip(".")) for key in keys]
        return ", ".join(part for part in parts if part)
    if isinstance(saved, list) and isinstance(now, list) and len(saved) == len(now):
        parts = [differences(a, b, f"{name}[{i}]") for i, (a, b) in enumerate(zip(saved, now, strict=True))]
        return ", ".join(part for part in parts if part)
    return "" if saved == now else f"{name}: {saved!r} became {now!r}"
