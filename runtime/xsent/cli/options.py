"""Arguments and options that commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

LINES = "One text per line; .gz and .xz too; - reads standard input."

# The choices are repeated here because the modules that define them import NumPy, which a help text does not need.
PrecisionOption = Annotated[
    Literal["float32", "float16", "int8", "binary"],
    typer.Option(help="Form of the numbers; binary: one bit for the sign of each, eight per byte."),
]
MarginOption = Annotated[
    Literal["ratio", "distance", "absolute"],
    typer.Option(help="Score: cosine over (ratio) or minus (distance) the mean cosine to the neighbours, or cosine."),
]
NeighborsOption = Annotated[
    int, typer.Option("-k", "--neighbors", min=1, help="Number of nearest neighbours used for the margin.")
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
    str | None,
    typer.Option("--space", metavar="NAME", help="Map vectors into another model's space, one that xsent info names."),
]
TruncateOption = Annotated[int | None, typer.Option(help="Keep only the first numbers of a vector.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Texts to encode at once; default: all CPUs, or 1 without layers.")
]
CleanOption = Annotated[
    bool,
    typer.Option(
        "--clean",
        help="Strip email, chat, log and OCR noise before encoding: quote markers, timestamps, tags, Markdown, URLs, "
        "handles, greetings, sign-offs, emoji and mojibake.",
    ),
]
# The options of commands whose results are rows: what is read (ColumnOption or PairColumnsOption, IdOption), and what
# is written (RowsOption, JsonLinesOption).
ColumnOption = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME", help="The column with the texts of a CSV, JSON Lines or Parquet file."),
]
PairColumnsOption = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME,NAME", help="The two columns of a CSV, JSON Lines or Parquet file."),
]
IdOption = Annotated[
    str | None, typer.Option("--id", metavar="NAME", help="Column with row ids; results show them instead of numbers.")
]
RowsOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="A new .tsv or .jsonl file; default: standard output.")
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per row.")]
VectorsOption = Annotated[
    Path | None, typer.Option(help="Vectors of the texts from xsent encode; default: encode the texts.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


WordsOption = Annotated[bool, typer.Option(help="Rank texts that share words with the query higher.")]
LeastOption = Annotated[float | None, typer.Option(help="Lowest score to print; default: any.")]


def split_names(text: str) -> list[str]:
    """Comma-separated names."""
    return [name.strip() for name in text.split(",") if name.strip()]
