"""What a training starts from: a recipe that can be followed, a checkpoint's vocabulary and weights."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from xsent.errors import DataError
from xsent.train.checkpoint import Checkpoint, load_checkpoint
from xsent.train.config import Recipe, StageConfig
from xsent.train.model import ModelConfig

logger = logging.getLogger(__name__)


def require_fit(recipe: Recipe, ranks: int, teacher_dim: int | None) -> None:
    """Refuse a recipe that this training cannot follow.

    Raises:
        DataError: A stage distils and there is no teacher, or batches cannot be divided among the processes.
    """
    for stage in recipe.stages:
        if stage.batch_size % ranks:
            raise DataError(
                f"stage {stage.name}: batch_size = {stage.batch_size} cannot be divided by {ranks} processes"
            )
        if not stage.objectives.distils:
            continue
        if teacher_dim is None:
            raise DataError(f"stage {stage.name} distils and has no teacher; name its folder with --teacher")
        if stage.objectives.rows and not recipe.teacher_layers:
            raise DataError(f"stage {stage.name}: rows brings the table under a teacher's layers; name teacher_layers")
        if teacher_dim == recipe.dim or not stage.objectives.copies:
            continue
        if not stage.learning_rate:
            raise DataError(
                f"stage {stage.name}: the teacher has {teacher_dim} dimensions, dim is {recipe.dim}; the projection "
                "between them needs learning_rate above 0"
            )
        if stage.prefixes and not stage.objectives.contrasts:
            raise DataError(
                f"stage {stage.name}: prefixes cannot be distilled from a teacher of {teacher_dim} dimensions into "
                f"dim = {recipe.dim}; leave them out, or distil from a teacher of that dimension"
            )


def open_start(recipe: Recipe, path: Path) -> Checkpoint:
    """Open the checkpoint that a training starts from.

    Raises:
        DataError: It is none, or its shape is not the recipe's.
    """
    start = load_checkpoint(path)
    names = ("dim", "num_heads", "ffn_dim", "activation", "norm_eps", "max_length")
    for name in names if start.config.num_layers else names[:1]:  # a table has a dimension alone
        its, ours = getattr(start.config, name), getattr(recipe, name)
        if its != ours:
            raise DataError(f"{path} has {name} = {its}, the recipe {ours}; to start from it they must be the same")
    return start


def model_config(
    recipe: Recipe, stage: StageConfig, vocab_size: int, before: Checkpoint | None, *, readout: bool
) -> ModelConfig:
    """The shape of a stage's encoder; its first and last piece are those of the checkpoint that it starts from."""
    frame = {name: getattr(before.config, name) for name in ("first", "last")} if before is not None else {}
    return ModelConfig(
        vocab_size=vocab_size,
        dim=recipe.dim,
        num_layers=stage.num_layers,
        num_heads=recipe.num_heads,
        ffn_dim=recipe.ffn_dim,
        max_length=recipe.max_length,
        dropout=stage.dropout,
        activation=recipe.activation,
        norm_eps=recipe.norm_eps,
        readout=readout,
        **frame,
    )


def mean(checkpoints: Sequence[Checkpoint], shares: Sequence[float]) -> Checkpoint:
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


def in_common(before: Checkpoint, config: ModelConfig, teacher_dim: int | None) -> dict[str, Tensor]:
    """The weights that a training can take over: the table, layers of the same number and kind, and what predicts.

    A projection to a teacher of as many dimensions goes along: it is learnt slowly, and until then it misleads.

    Raises:
        DataError: The table has not one row for each piece of the vocabulary.
    """
    rows = len(before.weights["encoder.table.weight"])
    if rows != config.vocab_size:
        raise DataError(
            f"{before.path}: its table has {rows} rows, the vocabulary {config.vocab_size} pieces; a training "
            "goes on with the vocabulary that it started with"
        )
    its, ours = before.config, config
    if its.num_layers > ours.num_layers:
        text = "%s has %d layers, the stage %d: the upper ones are not taken"
        logger.warning(text, before.path, its.num_layers, ours.num_layers)
    fits = (teacher_dim, config.dim)
    return {n: weight for n, weight in before.weights.items() if n != "projection.weight" or weight.shape == fits}
