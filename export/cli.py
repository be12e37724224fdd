"""The `xsent-export` command."""

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from xsent.errors import MissingExtraError
from xsent.failures import one_line_errors
from xsent.tables import format_table

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(epilog="Example: xsent-export runs/builtin/checkpoints/layers-0020000 my-model --int8")
@one_line_errors()
def export(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint folder of xsent-train.")],
    out: Annotated[Path, typer.Argument(help="The bundle folder to make.")],
    int8: Annotated[bool, typer.Option("--int8/--fp32", help="Quantise the weights, or keep them.")] = True,
    name: Annotated[str | None, typer.Option(help="Name of the model; default: the checkpoint's.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing bundle.")] = False,
    tatoeba: Annotated[
        Path | None, typer.Option(help="Folder of Tatoeba's en-XX.tsv: scores for the model card.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Turn a checkpoint into a bundle that runs without torch.

    The bundle is measured against the checkpoint on its held-out pairs. Beyond the budget (mean cosine 0.995, half
    a point of P@1 in the worst language) the command fails and leaves nothing behind.
    """
    try:  # torch and onnx take seconds to import: help and typing errors do without
        from xsent.export.bundle import export_bundle
        from xsent.export.graph import Precision
        from xsent.train.checkpoint import load_checkpoint
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[export]'") from error

    precision: Precision = "int8" if int8 else "float32"
    result = export_bundle(
        load_checkpoint(checkpoint), out, precision=precision, name=name, force=force, tatoeba_folder=tatoeba
    )
    if as_json:
        facts = {"path": str(result.path), "fingerprint": result.fingerprint, "bytes": result.bytes}
        typer.echo(json.dumps({**facts, "parity": result.parity.as_json()}))
    else:
        typer.echo(format_table(result.parity.rows()))
        if result.parity.tatoeba:
            typer.echo("\nTatoeba, P@1:\n" + format_table(result.parity.tatoeba_rows()) + "\n")
        typer.echo(f"{result.path}: {result.bytes / 1e6:.1f} MB, fingerprint {result.fingerprint}")


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    app()
