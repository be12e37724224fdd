"""`xsent-train distill`: a trained encoder learns one more language."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from xsent.commands.options import JsonOption
from xsent.errors import DataError, MissingExtraError
from xsent.terminal import format_table, one_line_errors
from xsent.threads import available_cpus


@one_line_errors()
def distill(
    model: Annotated[Path, typer.Argument(help="The encoder: a bundle or a checkpoint; it stays as it is.")],
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Source, language, English, translation, tab-separated; .gz and .xz too. Pairs of the old languages "
            "among them say what must be read as before, and measure it."
        ),
    ],
    language: Annotated[str, typer.Option(help="Code of the new language, as in PAIRS.")],
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    pieces: Annotated[int, typer.Option(min=300, help="Pieces of the new language's own vocabulary, at most.")] = 8000,
    pairs_seen: Annotated[
        int | None,
        typer.Option(
            min=1, help="Pairs to train on, repetitions counted; 10 times all, at most 2 million, if not given."
        ),
    ] = None,
    tatoeba: Annotated[
        Path | None, typer.Option(help="Folder of Tatoeba's en-XX.tsv, to measure all languages with.")
    ] = None,
    attribution: Annotated[
        list[str] | None, typer.Option(help="A source of the pairs, for the model card; may be repeated.")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the new weights; the model's unless given.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Processor threads; all that are available unless given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Teach an encoder a new language, and measure all its languages before and after.

    The vocabulary grows by the language's pieces; only their rows are trained, towards what the encoder itself makes of
    the English sides. P@1, in per cent: held_out searches the English side of held-out pairs among those of all
    languages; xx_en and en_xx are Tatoeba's. Exits with 1 if an old language lost more than 0.3 points; the checkpoint
    is written all the same. Ctrl-C saves and stops; the same command goes on from there.

    Example: xsent-train distill my-bundle pairs.tsv --language zh --out runs/zh --tatoeba data/eval/tatoeba
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a waiting thread that spins takes the core from the others
    try:  # torch takes a second to import: help and mistakes do without
        from xsent.train.adding import Adding, Addition
        from xsent.train.comparison import compare
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[train]'") from error
    if tatoeba is not None and not (tatoeba / f"en-{language}.tsv").is_file():
        raise DataError(f"{tatoeba}: no en-{language}.tsv; expected lines of English, translation")
    sources = tuple(attribution or ())
    addition = Addition(model, pairs, language, out, pieces, pairs_seen, licence, sources)
    before, after = Adding(addition, threads=threads or available_cpus()).run()
    comparison = compare(before, after, tatoeba)
    if as_json:
        typer.echo(json.dumps({"checkpoint": str(after.path), **comparison.as_json()}))
    else:
        typer.echo("\n".join([format_table(comparison.rows()), *comparison.notes()]))
        if not sources:
            typer.echo("no --attribution: the model card will not name the sources of these pairs", err=True)
        typer.echo(f"next: xsent-export {after.path} MY-BUNDLE --int8", err=True)
    if failures := comparison.failures():
        raise DataError(
            f"{'; '.join(failures)}; {after.path} was written all the same, but more pairs of the old languages in "
            f"{pairs} keep more of them"
        )
