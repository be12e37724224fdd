"""`xsent encode`: a file of sentences to a file of vectors."""

import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from xsent.cli import options
from xsent.errors import counted

if TYPE_CHECKING:
    from xsent.encoder import SentenceEncoder
    from xsent.files.tables import TextSource


def encode(
    file: Annotated[str, typer.Argument(help=options.LINES)] = "-",
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A new .npy, .jsonl, .parquet or .f32 file (raw float32, LASER's layout); default: JSON lines on "
            "standard output.",
        ),
    ] = None,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    clean: options.CleanOption = False,
    truncate_dim: options.TruncateOption = None,
    precision: options.PrecisionOption = "float32",
    on_long: Annotated[
        Literal["warn", "error", "split"],
        typer.Option(help="Sentences that are too long for the model: cut and warn, stop with an error, or split."),
    ] = "warn",
    space: options.SpaceOption = None,
    threads: options.ThreadsOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished output.")] = False,
    force: options.ForceOption = False,
) -> None:
    """Encode a file, one sentence per line, or a column of a table, in constant memory.

    An empty text becomes the zero vector. Ids are kept in .jsonl and .parquet files.
    """
    from xsent.encoder import SentenceEncoder
    from xsent.files.row_writers import TABLES, check_format
    from xsent.files.tables import TextSource

    if resume and output is None:
        raise ValueError("--resume needs --output")
    if resume and force:
        raise ValueError("use either --resume or --force")
    if output is not None:
        check_format(output.name, precision)
        if id and output.suffix not in TABLES:
            raise ValueError(
                f"{output}: cannot hold ids (--id {id}), only vectors; use a name that ends in .jsonl or .parquet"
            )
    source = TextSource(file, column, id)
    settings: dict[str, Any] = {
        "truncate_dim": truncate_dim,
        "precision": precision,
        "on_long": on_long,
        "space": space,
    }
    encoder = SentenceEncoder(model, layers=layers, threads=threads, clean=clean)
    _encode_rows(source, output, encoder, settings, resume=resume, force=force)


def _encode_rows(
    source: "TextSource",
    output: Path | None,
    encoder: "SentenceEncoder",
    settings: dict[str, Any],
    *,
    resume: bool,
    force: bool,
) -> None:
    """Encode the texts of a source; settings are those of `SentenceEncoder.encode_iter`."""
    from xsent.files.row_writers import JsonLinesWriter
    from xsent.files.text import file_state
    from xsent.files.vectors import VectorMeta, VectorOutput, is_complete, vector_file
    from xsent.progress import Progress, known_total

    dim = settings["truncate_dim"] or encoder.dim_of(settings["space"])
    fingerprint = encoder.fingerprint_of(settings["space"])
    note = VectorMeta(fingerprint, dim, settings["precision"], normalized=True)
    if resume and output is not None and is_complete(output, note, known_total(source)):
        warnings.warn(f"{output}: already complete; there is nothing to resume", stacklevel=1)
        return
    state = file_state(source.path)
    job = {"on_long": settings["on_long"], "bytes of input": state and state[0], "clean": encoder.clean}
    job |= {"column": source.column, "id": source.id}
    opened: AbstractContextManager[VectorOutput | JsonLinesWriter] = (
        nullcontext(JsonLinesWriter(sys.stdout.buffer, note.precision, dim))
        if output is None
        else vector_file(output, note, force=force, job=job, resume=resume)
    )
    with opened as writer, Progress("sentences", known_total(source)) as progress:
        lines = iter(source)
        done = rows = empty = 0
        if isinstance(writer, VectorOutput):
            lines = writer.remaining(lines)
            done = writer.rows
            progress.start_at(done)
        if done:
            typer.echo(f"Continuing after line {done:,}; warnings count only the lines after it.", err=True)
        vectors = encoder.encode_items(lines, start=done, **settings)
        for text, vector in progress.count(vectors):
            writer.write(text, vector)
            rows += 1
            empty += not vector.any()
        if not done + rows:
            raise source.empty()
    if empty:
        warnings.warn(f"{empty:,} of {rows:,} {source.unit} are empty; their vectors are zero", stacklevel=1)
    if output is not None:
        typer.echo(f"{output}: {counted(done + rows, 'vector')} of {dim} numbers", err=True)
