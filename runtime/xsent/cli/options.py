"""Arguments and options that commands share, and how their errors are reported."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from xsent.cli.terminal import one_line_errors

_SURPLUS = re.compile(r"Got unexpected extra argument\S* \((.*)\)$", re.DOTALL)  # click's words

LINES = "One text per line; .gz and .xz too; - reads standard input."
CONTEXT = {"help_option_names": ["-h", "--help"]}  # of a program; its commands have them too

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


class Program(TyperGroup):
    """A program of several commands, whose errors are one line each."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  typer has its own click
        """Run a command; typer would report its errors otherwise."""
        with one_line_errors():
            return super().invoke(ctx)


class QueryCommand(TyperCommand):
    """A command whose last argument is a text, such as a QUERY.

    If a text that starts with a dash is taken for an option, or one without quotes for several arguments, the error
    shows what to do.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the arguments."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "option_name", None):  # of click's NoSuchOption
                error.message += ". Put -- before a query that starts with a dash: -- QUERY"  # type: ignore[attr-defined]
            elif surplus := _SURPLUS.search(getattr(error, "message", "")):
                *given, last = [str(ctx.params[one.name]) for one in self.params if one.param_type_name == "argument"]
                command = [ctx.command_path, *map(shlex.quote, given), _quoted(f"{last} {surplus[1]}")]
                error.message = f"a text of several words needs quotes: {' '.join(command)}"  # type: ignore[attr-defined]
            raise


def _quoted(text: str) -> str:
    """A text in the quotes that people type, unless a shell would read something in it."""
    return shlex.quote(text) if {*text} & {*'"$`\\!'} else f'"{text}"'


def split_names(text: str) -> list[str]:
    """Comma-separated names."""
    return [name.strip() for name in text.split(",") if name.strip()]
