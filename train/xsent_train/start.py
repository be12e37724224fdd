"""What a training starts from: a recipe that can be followed, a checkpoint's vocabulary and weights, its own stages."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from xsent.errors import DataError
from xsent_train.checkpoint import TABLE, Checkpoint
from xsent_train.from_bundle import open_checkpoint
from xsent_train.model import ModelConfig
from xsent_train.recipe import Recipe, StageConfig

logger = logging.getLogger(__name__)

LAYER_SHAPE = ("num_heads", "ffn_dim", "activation", "norm_eps", "max_length")
FROM_TRAINED = {  # settings that a first stage can have with a start alone, and what they need
    "swapped": "a trained table that knows what words translate each other",
    "keep_layers": "a trained encoder that has them",
}


def require_fit(recipe: Recipe, ranks: int, teacher_dim: int | None, *, started: bool = False) -> None:
    """Refuse a recipe that this training cannot follow: a DataError that says what is missing or does not fit.

    `started` says whether there is a checkpoint or a bundle that the first stage starts from.
    """
    if not started:
        _require_none_trained(recipe.stages[0])
    for stage in recipe.stages:
        name, wanted = f"stage {stage.name}", stage.objectives
        if stage.batch_size % ranks:
            raise DataError(f"{name}: batch_size = {stage.batch_size} cannot be divided by {ranks} processes")
        if stage.swapped and ranks > 1:
            raise DataError(f"{name}: swapped = {stage.swapped} is for one device alone, not for {ranks}")
        if wanted.distils and teacher_dim is None:
            raise DataError(f"{name} distils and has no teacher; name its folder with --teacher")
        if wanted.embedding_match and not recipe.teacher_layers:
            raise DataError(f"{name}: rows brings the table under a teacher's layers; name teacher_layers")
        if not wanted.copies or teacher_dim == recipe.dim:
            continue
        if not stage.learning_rate:
            raise DataError(
                f"{name}: the teacher has {teacher_dim} dimensions, dim is {recipe.dim}; the projection between them "
                "needs learning_rate above 0"
            )
        if stage.prefixes and not wanted.contrasts:
            raise DataError(
                f"{name}: prefixes cannot be distilled from a teacher of {teacher_dim} dimensions into "
                f"dim = {recipe.dim}; leave them out, or distil from a teacher of that dimension"
            )


def _require_none_trained(first: StageConfig) -> None:
    for setting, needs in FROM_TRAINED.items():
        if getattr(first, setting):
            remedy = "train a stage without it first, or name a --start"
            raise DataError(f"stage {first.name}: {setting} needs {needs}; {remedy}")


def open_start(recipe: Recipe, path: Path, run: Path) -> Checkpoint:
    """Open the checkpoint or the bundle that a run starts from; a DataError where its shape is not the recipe's."""
    start = open_checkpoint(path, run / "start")
    for name in ("dim", *LAYER_SHAPE) if start.config.num_layers else ("dim",):
        its, ours = getattr(start.config, name), getattr(recipe, name)
        if its != ours:
            raise DataError(f"{path} has {name} = {its}, the recipe {ours}; to start from it they must be the same")
    return start


def stage_folders(run: Path, stage: StageConfig) -> list[Path]:
    """The checkpoints of a stage in the folder of a run, the oldest first."""
    name = re.compile(re.escape(stage.name) + r"-(\d{7,})")
    found = [(match, path) for path in run.glob("checkpoints/*") if (match := name.fullmatch(path.name))]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found)]


def model_config(recipe: Recipe, stage: StageConfig, vocab_size: int, before: Checkpoint | None) -> ModelConfig:
    """The shape of a stage's encoder; its first and last piece are those of the checkpoint that it starts from."""
    shape = {name: getattr(recipe, name) for name in ("dim", *LAYER_SHAPE)}
    shape["depths"] = tuple(sorted(stage.layer_prefixes)) if recipe.readouts else ()
    if before is not None:
        shape |= {name: getattr(before.config, name) for name in ("first", "last")}
    return ModelConfig(vocab_size, num_layers=stage.num_layers, dropout=stage.dropout, **shape)


def average_checkpoints(checkpoints: Sequence[Checkpoint], shares: Sequence[float]) -> Checkpoint:
    """The mean of checkpoints of one training, in the weights that all of them have (Wortsman et al. 2022).

    Shares need not add up to 1. What the mean is otherwise, such as its depth, the shallowest says.
    """
    shallowest = min(checkpoints, key=lambda checkpoint: checkpoint.config.num_layers)
    names = set.intersection(*(set(checkpoint.weights) for checkpoint in checkpoints))
    scaled = [share / sum(shares) for share in shares]
    weights = {
        name: sum((share * c.weights[name] for share, c in zip(scaled, checkpoints, strict=True)), torch.zeros(()))
        for name in sorted(names)
    }
    return replace(shallowest, weights=weights)


def keep_layers(before: Checkpoint, numbers: Sequence[int]) -> Checkpoint:
    """A checkpoint with these of its layers alone, from 0; a DataError where it has fewer."""
    has = before.config.num_layers
    if numbers[-1] >= has:
        raise DataError(f"{before.given}: has {has} layers; keep_layers names {numbers[-1]}, counted from 0")
    layer = re.compile(r"encoder\.layers\.(\d+)\.(.+)")
    weights = {}
    for name, weight in before.weights.items():
        if not (match := layer.fullmatch(name)):
            weights[name] = weight
        elif (number := int(match[1])) in numbers:
            weights[f"encoder.layers.{numbers.index(number)}.{match[2]}"] = weight
    about = {**before.about, "model": {**before.about["model"], "num_layers": len(numbers)}}
    return replace(before, about=about, weights=weights)


def in_common(before: Checkpoint, config: ModelConfig, teacher_dim: int | None) -> dict[str, Tensor]:
    """The weights that a training can take over: the table, layers of the same number and kind, and what predicts.

    A projection to a teacher of as many dimensions goes along: it is learnt slowly, and until then it misleads. A
    DataError where the table has not one row for each piece of the vocabulary.
    """
    rows = len(before.weights[TABLE])
    if rows != config.vocab_size:
        raise DataError(
            f"{before.given}: its table has {rows} rows, the vocabulary {config.vocab_size} pieces; a training "
            "goes on with the vocabulary that it started with"
        )
    if before.config.num_layers > config.num_layers:
        text = "%s has %d layers, the stage %d: the upper ones are not taken"
        logger.warning(text, before.given, before.config.num_layers, config.num_layers)
    fits = (teacher_dim, config.dim)
    return {n: weight for n, weight in before.weights.items() if n != "projection.weight" or weight.shape == fits}
