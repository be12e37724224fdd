"""Checks that a recipe can be trained, and that a checkpoint was trained by it."""

from collections.abc import Mapping

from pydantic_core import to_jsonable_python

from xsent.errors import DataError
from xsent_train.recipe import START, Recipe, StageConfig
from xsent_train.settings import Settings

FREE = ("licence", "attribution", "space", "checkpoint_minutes")  # settings that change no weight


def require_fit(recipe: Recipe, ranks: int, teacher_dim: int | None, *, started: bool = False) -> None:
    """Raises DataError if this number of devices or a teacher of this many dimensions does not fit a recipe.

    `started` is whether the first stage starts from a checkpoint or a bundle.
    """
    first = recipe.stages[0]
    if not started and (mean := [stage.name for stage in recipe.stages if START in stage.starts_from]):
        raise DataError(f"stage {mean[0]} starts_from {START}, the checkpoint or bundle of --start; name one")
    asked = first.objectives.retrieve
    needs = {"swapped": first.swapped, "keep_layers": first.keep_layers, "retrieve.hard": asked and asked.hard}
    for setting, value in needs.items():
        if value and not started:
            text = f"stage {first.name}: {setting} needs a trained encoder to start from"
            raise DataError(f"{text}; first train a stage without it, or name a --start")
    for stage in recipe.stages:
        name, wanted = f"stage {stage.name}", stage.objectives
        if uneven := [f"{setting} = {size}" for setting, size in sizes(stage).items() if size % ranks]:
            raise DataError(f"{name}: {uneven[0]} cannot be divided by {ranks} processes")
        if stage.swapped and ranks > 1:
            raise DataError(f"{name}: swapped = {stage.swapped} works on one device only, not on {ranks}")
        if wanted.distils and teacher_dim is None:
            raise DataError(f"{name} distils but has no teacher; name its folder with --teacher")
        if wanted.embedding_match and not recipe.teacher_layers:
            raise DataError(f"{name}: embedding_match fits the table to a teacher's layers; set teacher_layers")
        if wanted.copies and teacher_dim is not None and teacher_dim != recipe.dim:
            require_projection(stage, teacher_dim, recipe.dim)


def sizes(stage: StageConfig) -> dict[str, int]:
    """The numbers of pairs, scored pairs and queries per step, over all devices, by the name of the setting."""
    sizes, wanted = {"batch_size": stage.batch_size}, stage.objectives
    if wanted.similarity:
        sizes["similarity.pairs"] = wanted.similarity.pairs
    if wanted.retrieve:
        sizes["retrieve.queries"] = wanted.retrieve.queries
    return sizes


def require_projection(stage: StageConfig, teacher_dim: int, dim: int) -> None:
    """Raises DataError if a stage cannot learn to copy a teacher of another dimension."""
    name = f"stage {stage.name}"
    if not stage.learning_rate:
        raise DataError(
            f"{name}: the teacher has {teacher_dim} dimensions, dim is {dim}; the projection between them needs "
            "learning_rate above 0"
        )
    if stage.prefixes and not stage.objectives.contrasts:
        raise DataError(
            f"{name}: prefixes cannot be distilled from a teacher of {teacher_dim} dimensions into dim = {dim}; omit "
            "them, or distil from a teacher of that dimension"
        )


def differences(saved: object, now: object, name: str = "") -> str:
    """Describe how the settings in a checkpoint differ from those of a recipe; empty if they are equal.

    A setting that is newer than the checkpoint counts as having had its default.
    """
    if isinstance(now, Settings) and isinstance(saved, Mapping):
        known = {**dict(type(now).model_construct()), **saved}
        parts = [(f"{name}.{key}".lstrip("."), known.get(key), value) for key, value in now if key not in FREE]
    elif isinstance(now, tuple) and isinstance(saved, list | tuple) and len(saved) == len(now):
        parts = [(f"{name}[{i}]", was, value) for i, (was, value) in enumerate(zip(saved, now, strict=True))]
    else:
        was, value = to_jsonable_python([saved, now])
        return f"{name}: {was!r} became {value!r}" if was != value else ""
    return ", ".join(filter(None, (differences(was, value, where) for where, was, value in parts)))
