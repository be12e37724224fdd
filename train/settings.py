"""Settings in a TOML table as a dataclass, with every mistake named."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from xsent.errors import DataError

T = TypeVar("T")


def require(condition: bool, message: str) -> None:
    """Refuse a setting.

    Raises:
        ValueError: The condition does not hold.
    """
    if not condition:
        raise ValueError(message)


def section(path: Path, name: str, kind: type[T], values: object) -> T:
    """Build one part of a recipe from its TOML table, naming what is unknown, missing or of the wrong type."""
    title = f"[{name}]" if name else "the recipe"
    if not isinstance(values, Mapping):
        raise DataError(f"{path}: {title} must be a table of settings, not {values!r}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise DataError(f"{path}: unknown setting {key!r} in {title}{hint}")
    settings: dict[str, Any] = {}
    for key, setting in known.items():
        if key in values:
            settings[key] = convert(path, f"{name}.{key}".lstrip("."), get_type_hints(kind)[key], values[key])
        elif setting.default is MISSING and setting.default_factory is MISSING:
            raise DataError(f"{path}: setting {key!r} is missing in {title}")
    try:
        return kind(**settings)
    except ValueError as error:
        raise DataError(f"{path}: {title}: {error}") from error


def tables(path: Path, stages: object) -> list[Any]:
    """The stages of a recipe as a list."""
    if not isinstance(stages, list):
        raise DataError(f"{path}: stages are tables that start with [[stage]], not stage = {stages!r}")
    return stages


def convert(path: Path, name: str, hint: Any, value: object) -> Any:  # noqa: ANN401  a type, and a value of it
    """A TOML value as the type of its setting."""
    kind = get_origin(hint) or hint
    if kind is UnionType:  # a part of its own that may be left out
        kind = next(option for option in get_args(hint) if option is not NoneType)
        if type(value) in (int, float):  # short for the first setting alone, which is its weight
            value = {fields(kind)[0].name: value}
    if is_dataclass(kind) and isinstance(kind, type) and not isinstance(value, kind):
        return section(path, name, kind, value)
    if kind is tuple and isinstance(value, list | tuple):
        return tuple(convert(path, name, get_args(hint)[0], item) for item in value)
    if kind is float and type(value) is int:
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"{path}: {name} = {value!r} must be of type {kind.__name__.lower()}")
    return value
