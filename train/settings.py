"""The settings of a table in a recipe: what they may be, what is said of a mistake, and where two of them differ."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError, WrapValidator, model_validator
from pydantic_core import to_jsonable_python


def as_written(value: float, check: Callable[[float], float]) -> float:
    """A checked number as the recipe has it: prepared data is known by its settings, and 2 is not written as 2.0."""
    check(value)
    return value


Factor = Annotated[PositiveFloat, WrapValidator(as_written)]
Share = Annotated[float, Field(gt=0, lt=1)]
Names = Annotated[tuple[str, ...], Field(strict=False)]  # TOML has lists
FREE = ("licence", "attribution", "space", "checkpoint_minutes")  # settings that change no weight
Numbers = Annotated[tuple[int, ...], Field(strict=False)]


class Settings(BaseModel):
    """A table of settings; a truth value is no number, nor is a text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: object) -> object:
        """Offer the nearest setting for an unknown one, before anything else is said."""
        known = cls.model_fields
        for key in values if isinstance(values, Mapping) else ():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                raise ValueError(f"unknown setting {key!r}; {hint}")
        return values


def require(condition: object, message: str) -> None:
    """Raise a ValueError unless settings go together."""
    if not condition:
        raise ValueError(message)


def first_mistake(error: ValidationError) -> str:
    """The first mistake in a line: where it stands, what was given, what was expected."""
    mistake = error.errors()[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake["loc"]).lstrip(".")
    if mistake["type"] == "missing":
        return f"setting {where!r} is missing"
    if mistake["type"] == "value_error":  # in our words
        return f"{where}: {mistake['ctx']['error']}".removeprefix(": ")
    expected = re.sub(r"^\w+ should", "must", mistake["msg"]).replace(" after validation", "")
    expected = re.sub("a valid dictionary.*", "a table of settings", expected).replace("a valid tuple", "a list")
    return f"{where} = {mistake['input']!r} {expected}"


def differences(saved: object, now: object, name: str = "") -> str:
    """Where settings as a checkpoint has them differ from a recipe's, in words; empty where they do not.

    A setting that the saved ones do not know yet had the value that is now its default.
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
