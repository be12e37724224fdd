"""The `xsent` command. Heavy modules load inside the commands, so that help appears at once."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.failures import one_line_errors
from xsent.tables import format_table

if TYPE_CHECKING:
    from xsent.vectors import VectorNote, VectorWriter

app = typer.Typer(
    help="Sentence vectors across languages, on the CPU and offline.",
    epilog='Example: xsent similarity "The cat sleeps." "Le chat dort."',
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
evaluate = typer.Typer(
    help="Measure an encoder with a published protocol.",
    epilog="Example: xsent evaluate tatoeba data/eval/tatoeba --languages fr,de",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(evaluate, name="evaluate")


class LongChoice(StrEnum):
    """Values of --on-long."""

    WARN = "warn"
    ERROR = "error"
    SPLIT = "split"


class PrecisionChoice(StrEnum):
    """Values of --precision."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"


BundleArgument = Annotated[Path | None, typer.Argument(metavar="[BUNDLE]", help="Default: the built-in one.")]
BundleOption = Annotated[Path | None, typer.Option("--model", help="A bundle; default: the built-in one.")]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="A bundle or a checkpoint; default: the built-in bundle.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Sentences to encode at once; default: every CPU allowed.")
]
FolderArgument = Annotated[Path, typer.Argument(metavar="DATA_FOLDER", help="The folder of the test files.")]
LanguagesOption = Annotated[
    str | None,
    typer.Option(help="Codes with commas between; default: all that the model and the data share."),
]


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    # A warning is one line for people here, not a place in the source.
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    app()


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Sentence vectors across languages, on the CPU and offline."""
    if show:
        import xsent

        typer.echo(xsent.__version__)
        raise typer.Exit


@app.command(epilog="Example: xsent encode sentences.txt --output vectors.npy")
@one_line_errors()
def encode(
    file: Annotated[str, typer.Argument(help="One sentence a line; .gz and .xz too; - reads standard input.")] = "-",
    output: Annotated[
        Path | None, typer.Option(help="A new .npy or .jsonl file; default: JSON lines on standard output.")
    ] = None,
    model: BundleOption = None,
    normalize: Annotated[bool, typer.Option(help="Give vectors length 1.")] = True,
    truncate_dim: Annotated[int | None, typer.Option(help="Keep only the first numbers of a vector.")] = None,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of the numbers.")] = PrecisionChoice.FLOAT32,
    on_long: Annotated[
        LongChoice, typer.Option(help="For sentences the model cannot read whole: cut, stop or split.")
    ] = LongChoice.WARN,
    threads: ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Encode a file, one sentence a line, in constant memory; an empty line becomes the zero vector."""
    from xsent.encoder import SentenceEncoder
    from xsent.errors import DataError
    from xsent.lines import read_lines
    from xsent.progress import Progress
    from xsent.vectors import VectorNote

    encoder = SentenceEncoder(model, threads=threads)
    note = VectorNote(encoder.fingerprint, truncate_dim or encoder.dim, precision.value, normalize)
    texts, sentences = tee(read_lines(file))  # the encoder reads a few dozen ahead, no more
    vectors = encoder.encode_iter(
        sentences,
        normalize_embeddings=normalize,
        truncate_dim=truncate_dim,
        precision=precision.value,
        on_long=on_long.value,
    )
    rows = empty = 0
    with _vector_output(output, note, force) as writer, Progress("sentences") as progress:
        # Vectors first: only then does their iterator reach its end, where it warns of long sentences.
        for vector, text in zip(vectors, texts, strict=False):
            writer.write(text, vector)
            rows += 1
            empty += not vector.any()
            progress.advance()
        if not rows:
            raise DataError(f"{file}: empty; expected one sentence a line")
    if empty:
        warnings.warn(f"{empty:,} of {rows:,} lines are empty; their vectors are zero", stacklevel=1)


@app.command(epilog='Example: xsent similarity "The cat sleeps." "Le chat dort."')
@one_line_errors()
def similarity(
    a: Annotated[str, typer.Argument(help="A text.")],
    b: Annotated[str, typer.Argument(help="Another text, in any language of the model.")],
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cosine of two texts: 1 means the same, around 0 unrelated."""
    from xsent.models import open_model
    from xsent.similarity import cosine_similarity

    left, right = open_model(model).encode([a, b])
    cosine = float(cosine_similarity(left, right)[0, 0])
    typer.echo(json.dumps({"cosine": cosine}) if as_json else f"{cosine:.4f}")


@app.command(epilog="Example: xsent info my-model")
@one_line_errors()
def info(bundle: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Say what a bundle is: languages, size, fingerprint and what export measured."""
    from xsent.bundle import Bundle, builtin_path

    opened = Bundle.open(bundle or builtin_path())
    facts = {key: value for key, value in asdict(opened).items() if key not in ("golden", "files", "parity")}
    facts |= {"path": str(opened.path), "bytes": sum(entry.bytes for entry in opened.files.values())}
    if as_json:
        typer.echo(json.dumps({**facts, "parity": opened.parity}, ensure_ascii=False))
        return
    facts["languages"] = ", ".join(opened.languages)
    _print_facts(facts)
    if languages := opened.parity.get("languages"):
        rows = [{"language": name, **measured} for name, measured in languages.items()]
        typer.echo("\nMeasured at export, against the trained encoder:\n" + format_table(rows))


@app.command(epilog="Example: xsent verify my-model")
@one_line_errors()
def verify(bundle: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Check every file of a bundle and the vectors that it gives on this machine."""
    from xsent.verification import verify as verify_bundle

    result = asdict(verify_bundle(bundle))
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _print_facts(result)


@evaluate.command(epilog="Example: xsent evaluate tatoeba data/eval/tatoeba --languages fr,de")
@one_line_errors()
def tatoeba(
    data_folder: FolderArgument,
    model: ModelOption = None,
    languages: LanguagesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tatoeba similarity search: P@1 among 1,000 sentences, both directions."""
    _evaluate("tatoeba", data_folder, model, languages, as_json)


@evaluate.command(epilog="Example: xsent evaluate xsr data/eval/xsr --languages fr,de --json")
@one_line_errors()
def xsr(
    data_folder: FolderArgument,
    model: ModelOption = None,
    languages: LanguagesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cross-lingual sentence retrieval: P@1 of 2,000 sentences among about 200,000."""
    _evaluate("xsr", data_folder, model, languages, as_json)


def _evaluate(task: str, folder: Path, model: Path | None, languages: str | None, as_json: bool) -> None:
    from xsent import evaluation
    from xsent.models import open_model

    encoder = open_model(model)
    if languages is None:
        codes = evaluation.shared_languages(encoder, folder)
    else:
        codes = [code.strip() for code in languages.split(",") if code.strip()]
    protocol = {"tatoeba": evaluation.tatoeba, "xsr": evaluation.xsr}[task]
    result = protocol(encoder, folder, codes, show_progress_bar=sys.stderr.isatty())
    if as_json:
        identity = {"task": task, "model": str(model or "built-in")}
        fingerprint = getattr(encoder, "fingerprint", None)
        report = {**identity, "fingerprint": fingerprint, "rows": result.rows(), "note": result.note}
        typer.echo(json.dumps(report))
    else:
        typer.echo(f"{format_table(result.rows())}\n{result.note}")


@contextmanager
def _vector_output(path: Path | None, note: "VectorNote", force: bool) -> "Iterator[VectorWriter]":
    """A file of vectors, or JSON lines on standard output."""
    from xsent.vectors import JsonLinesWriter, vector_file

    if path is None:
        yield JsonLinesWriter(sys.stdout.buffer)
    else:
        with vector_file(path, note, force=force) as writer:
            yield writer


def _print_facts(facts: dict[str, object]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name:<{width}}  {f'{value:,}' if isinstance(value, int) else value}")
