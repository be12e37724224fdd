"""The base of all tables of a recipe: how settings are parsed, and how mistakes in them are reported."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, WrapValidator, model_validator


def as_written(value: float, check: Callable[[float], float]) -> float:
    """A checked number as written in the recipe: prepared data is keyed by a hash of settings, where 2 is not 2.0."""
    check(value)
    return value


Factor = Annotated[PositiveFloat, WrapValidator(as_written)]
Share = Annotated[float, Field(gt=0, lt=1)]
Names = Annotated[tuple[str, ...], Field(strict=False)]  # TOML has lists
Numbers = Annotated[tuple[int, ...], Field(strict=False)]


def require(condition: object, message: str) -> None:
    """Raise a ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


class Settings(BaseModel):
    """A table of settings. Booleans and strings are not accepted as numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: object) -> object:
        """Report an unknown setting, with the closest known one, before any other mistake."""
        known = cls.model_fields
        for key in values if isinstance(values, Mapping) else ():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                raise ValueError(f"unknown setting {key!r}; {hint}")
        return values
