"""What a checkpoint depends on, and how a run's settings differ from it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

from xsent.train.checkpoint import Checkpoint
from xsent.train.config import Recipe

FREE = ("licence", "attribution", "space", "checkpoint_minutes")  # settings that change no weight


def digest(path: Path) -> str:
    """A short hash of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def weights_digest(checkpoint: Checkpoint) -> str:
    """Identity of a checkpoint's weights."""
    return digest(checkpoint.path / "model.safetensors")


def plain(value: object) -> object:
    """A value as JSON gives it back: lists, no tuples."""
    result: object = json.loads(json.dumps(value))
    return result


def differences(saved: object, now: object, name: str = "") -> str:
    """Where saved settings differ from a recipe's, in words; empty where they do not.

    A setting that the saved ones do not know yet had the value that is now its default.

    Args:
        saved: Settings as JSON gave them back.
        now: The same as dataclasses.
        name: Where in the recipe this is.
    """
    parts: list[str] = []
    if is_dataclass(now) and isinstance(saved, Mapping):
        for setting in fields(now):
            where = f"{name}.{setting.name}".lstrip(".")
            if isinstance(now, Recipe) and setting.name in FREE:
                continue
            if setting.name in saved:
                parts.append(differences(saved[setting.name], getattr(now, setting.name), where))
            elif setting.default is not MISSING or setting.default_factory is not MISSING:
                factory = setting.default_factory
                default = setting.default if factory is MISSING else factory()
                value = getattr(now, setting.name)
                parts.append("" if default == value else f"{where}: {default!r} became {value!r}")
    elif isinstance(now, list | tuple) and isinstance(saved, list) and len(saved) == len(now):
        parts += [differences(a, b, f"{name}[{i}]") for i, (a, b) in enumerate(zip(saved, now, strict=True))]
    elif is_dataclass(now):
        parts.append(f"{name}: {saved!r} became {now!r}")
    elif saved != (value := plain(dict(now) if isinstance(now, Mapping) else now)):
        parts.append(f"{name}: {saved!r} became {value!r}")
    return ", ".join(part for part in parts if part)
