"""`xsent encode`: a file of sentences to a file of vectors."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.commands.options import BundleOption
from xsent.failures import one_line_errors

if TYPE_CHECKING:
    from xsent.vectors import VectorNote, VectorWriter


class LongChoice(StrEnum):
    """Values of --on-long."""

    WARN = "warn"
    ERROR = "error"
    SPLIT = "split"


class PrecisionChoice(StrEnum):
    """Values of --precision."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"


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
    threads: Annotated[
        int | None, typer.Option(min=1, help="Sentences to encode at once; default: every CPU allowed.")
    ] = None,
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


@contextmanager
def _vector_output(path: Path | None, note: "VectorNote", force: bool) -> "Iterator[VectorWriter]":
    """A file of vectors, or JSON lines on standard output."""
    from xsent.vectors import JsonLinesWriter, vector_file

    if path is None:
        yield JsonLinesWriter(sys.stdout.buffer)
    else:
        with vector_file(path, note, force=force) as writer:
            yield writer
