"""Arguments and options that several commands share, so that they mean the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

BundleArgument = Annotated[Path | None, typer.Argument(metavar="[BUNDLE]", help="Default: the built-in one.")]
BundleOption = Annotated[Path | None, typer.Option("--model", help="A bundle; default: the built-in one.")]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="A bundle or a checkpoint; default: the built-in bundle.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
