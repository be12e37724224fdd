"""Arguments and options that several commands share, so that they mean the same everywhere."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class PrecisionChoice(StrEnum):
    """Values of --precision."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    BINARY = "binary"


PrecisionOption = Annotated[PrecisionChoice, typer.Option(help="Of the numbers; binary: their signs, eight in a byte.")]

BundleArgument = Annotated[Path | None, typer.Argument(metavar="[BUNDLE]", help="Default: the built-in one.")]
BundleOption = Annotated[Path | None, typer.Option("--model", help="A bundle; default: the built-in one.")]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="A bundle or a checkpoint; default: the built-in bundle.")
]
TruncateOption = Annotated[int | None, typer.Option(help="Keep only the first numbers of a vector.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_names(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]
