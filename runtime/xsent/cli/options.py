"""Arguments and options that several commands share, so that they mean the same everywhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

# The choices are repeated here because the modules that define them import NumPy, which a help text does not need.
PrecisionOption = Annotated[
    Literal["float32", "float16", "int8", "binary"],
    typer.Option(help="Form of the numbers; binary: one bit for the sign of each, eight in a byte."),
]
MarginOption = Annotated[
    Literal["ratio", "distance", "absolute"],
    typer.Option(help="Score: cosine over (ratio) or minus (distance) the mean cosine to the neighbours, or cosine."),
]
NeighborsOption = Annotated[
    int,
    typer.Option(
        "-k", "--neighbors", "--neighborhood", min=1, help="Number of nearest neighbours used for the margin."
    ),
]
BundleArgument = Annotated[Path | None, typer.Argument(metavar="[BUNDLE]", help="Default: the built-in bundle.")]
BundleOption = Annotated[Path | None, typer.Option("--model", help="A bundle; default: the built-in one.")]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="A bundle or a checkpoint; default: the built-in bundle.")
]
LayersOption = Annotated[
    int | None, typer.Option("--layers", min=0, help="Number of layers to run; default: all of the model's.")
]
SpaceOption = Annotated[
    str | None, typer.Option("--space", help="Map vectors into another model's space, one that xsent info names.")
]
TruncateOption = Annotated[int | None, typer.Option(help="Keep only the first numbers of a vector.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Texts to encode at once; default: all CPUs, or 1 without layers.")
]
CleanOption = Annotated[
    bool,
    typer.Option(
        "--clean",
        help="Take off what mails, chats, logs and scans add before a text is encoded: marks of quotations, times, "
        "tags, Markdown, addresses, emoji, broken encodings.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_names(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]
