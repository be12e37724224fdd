"""What a checkpoint depends on, and how a run's settings differ from it."""

from collections.abc import Mapping
from pathlib import Path

from pydantic_core import to_jsonable_python

from xsent.bundle import file_digest
from xsent.train.settings import Settings

FREE = ("licence", "attribution", "space", "checkpoint_minutes")  # settings that change no weight


def digest(path: Path) -> str:
    """A short hash of a file."""
    return file_digest(path)[:16]


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
