"""The `xsent-train` command."""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from xsent.errors import MissingExtraError
from xsent.failures import one_line_errors
from xsent.threads import available_cpus
from xsent.train.config import load_recipe

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@one_line_errors()
def train(
    config: Annotated[Path, typer.Argument(help="The recipe, a TOML file.")],
    data: Annotated[Path, typer.Option(help="Folder that the recipe's files of pairs are named from.")] = Path(),
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME unless given.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Processor threads; all that are available unless given.")
    ] = None,
) -> None:
    """Train an encoder from a recipe: vocabulary, tokenised store, then one stage after the other.

    Ctrl-C saves and stops; the same command goes on from there, on a processor to the bit.

    Example: xsent-train train/recipes/builtin.toml --data data --out runs/builtin
    """
    # A waiting thread that spins takes the core from the other threads and from everybody else.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    recipe = load_recipe(config)
    try:  # torch takes a second to import: help and mistakes in the recipe do without
        from xsent.train.trainer import Trainer
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[train]'") from error
    folder = out or Path("runs") / recipe.name
    trainer = Trainer(
        recipe, [data / file for file in recipe.corpus.files], folder, threads=threads or available_cpus()
    )
    path = trainer.train()
    typer.echo(f"trained: {path}", err=True)
    typer.echo(f"next: xsent-export {path} MY-BUNDLE", err=True)
    typer.echo(path)


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    app()
