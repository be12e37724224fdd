"""Where a training starts from: a checkpoint's vocabulary and weights."""

import logging
from pathlib import Path

from torch import Tensor

from xsent.errors import DataError
from xsent.train.checkpoint import Checkpoint, load_checkpoint
from xsent.train.config import Recipe
from xsent.train.model import ModelConfig

logger = logging.getLogger(__name__)


def open_start(recipe: Recipe, path: Path) -> Checkpoint:
    """Open the checkpoint that a training starts from.

    Raises:
        DataError: It is none, or its shape is not the recipe's.
    """
    start = load_checkpoint(path)
    names = ("dim", "num_heads", "ffn_dim", "max_length")
    for name in names if start.config.num_layers else names[:1]:  # a table has a dimension alone
        its, ours = getattr(start.config, name), getattr(recipe, name)
        if its != ours:
            raise DataError(f"{path} has {name} = {its}, the recipe {ours}; to start from it they must be the same")
    return start


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
    if its.num_layers and its.norm != ours.norm:
        logger.warning("%s is %s-norm, the recipe %s-norm: only its table is taken", before.path, its.norm, ours.norm)
        return {"encoder.table.weight": before.weights["encoder.table.weight"]}
    if its.num_layers > ours.num_layers:
        text = "%s has %d layers, the stage %d: the upper ones are not taken"
        logger.warning(text, before.path, its.num_layers, ours.num_layers)
    fits = (teacher_dim, config.dim)
    return {n: weight for n, weight in before.weights.items() if n != "projection.weight" or weight.shape == fits}
