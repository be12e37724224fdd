"""Arguments and options that several commands share, so that they mean the same everywhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

# Written out: what names these choices elsewhere needs NumPy, which help can do without.
PrecisionOption = Annotated[
    Literal["float32", "float16", "int8", "binary"],
    typer.Option(help="Of the numbers; binary: their signs, eight in a byte."),
]
MarginOption = Annotated[
    Literal["ratio", "distance", "absolute"],
    typer.Option(help="Cosine over, or minus, the mean cosine to both neighbourhoods; absolute: cosine."),
]
NeighborsOption = Annotated[
    int,
    typer.Option(
        "-k", "--neighbors", "--neighborhood", min=1, help="Nearest candidates, whose cosines a score looks at."
    ),
]
BundleArgument = Annotated[Path | None, typer.Argument(metavar="[BUNDLE]", help="Default: the built-in one.")]
BundleOption = Annotated[Path | None, typer.Option("--model", help="A bundle; default: the built-in one.")]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="A bundle or a checkpoint; default: the built-in bundle.")
]
LayersOption = Annotated[
    int | None, typer.Option("--layers", min=0, help="Layers to run, of those that the model has; default: all.")
]
SpaceOption = Annotated[
    str | None, typer.Option("--space", help="Map vectors into another model's space, one that xsent info names.")
]
TruncateOption = Annotated[int | None, typer.Option(help="Keep only the first numbers of a vector.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Texts to encode at once; default: all CPUs; 1 without layers.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what exists.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_names(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]
