"""Checks that a recipe can be trained, and that a checkpoint was trained by it."""

from collections.abc import Iterator, Mapping

from pydantic_core import to_jsonable_python

from xsent.errors import DataError
from xsent_train.recipe import START, Recipe, StageConfig
from xsent_train.settings import Settings

SHOWN, WIDEST = 3, 60  # differences in a message, and characters of a value in it
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


def differences(saved: object, now: object) -> str:
    """Describe in one line how the settings in a checkpoint differ from those of a recipe; empty if they are equal.

    A setting that is newer than the checkpoint counts as having had its default.
    """
    found = list(_changes(saved, now, ""))
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more


def _changes(saved: object, now: object, name: str) -> Iterator[str]:
    """Yields one text for each setting that differs; of lists of stages, first the names if these differ."""
    if isinstance(now, Settings) and isinstance(saved, Mapping):
        known = {**dict(type(now).model_construct()), **saved}
        for key, value in now:
            if key not in FREE:
                yield from _changes(known.get(key), value, f"{name}.{key}".lstrip("."))
    elif isinstance(now, Mapping) and isinstance(saved, Mapping):
        for key in {**saved, **now}:
            yield from _changes(saved.get(key), now.get(key), f"{name}.{key}")
    elif isinstance(now, tuple) and name == "stages" and isinstance(saved, list):
        names = [[stage["name"] for stage in saved], [stage.name for stage in now]]
        if names[0] != names[1]:
            was, is_now = map(", ".join, names)
            yield f"{name}: {was} became {is_now}"
        else:
            for was, value in zip(saved, now, strict=True):
                yield from _changes(was, value, value.name)
    else:
        was, value = to_jsonable_python([saved, now])
        if was != value:
            yield f"{name}: {was!r:.{WIDEST}} became {value!r:.{WIDEST}}"
