"""The `xsent-train` command."""

import logging
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from xsent.errors import MissingExtraError
from xsent.terminal import one_line_errors
from xsent.threads import available_cpus
from xsent.train.cli_distill import distill
from xsent.train.cli_filter import filter_pairs


class RecipeFirst(TyperGroup):
    """Commands by name; what is no command is a recipe to train."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer has its own click
        """Put `recipe` before arguments that do not start with a command."""
        if args and args[0] not in self.commands and args[0] != "--help":
            near = get_close_matches(args[0], self.commands, n=1)
            if near and not Path(args[0]).exists():
                ctx.fail(f"no command and no recipe {args[0]!r}; did you mean {near[0]!r}?")
            args = ["recipe", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RecipeFirst,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Train an encoder: xsent-train RECIPE.toml --data DATA --out RUN; or one of the commands below.",
)
app.command("distill")(distill)
app.command("filter")(filter_pairs)

Config = Annotated[Path, typer.Argument(help="The recipe, a TOML file.")]
Data = Annotated[Path, typer.Option(help="Folder that the recipe's files of pairs are named from.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME unless given.")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Processor threads of a process; all that are available unless given.")
]


@app.command("recipe")
@one_line_errors()
def train(
    config: Config,
    data: Data = Path(),
    out: Out = None,
    threads: Threads = None,
    teacher: Annotated[
        Path | None, typer.Option(help="Model to distil from: a bundle, a checkpoint, a sentence-transformers folder.")
    ] = None,
    fast_teacher: Annotated[
        Path | None, typer.Option(help="The teacher in 8 bits, made by xsent-export; gives its vectors sooner.")
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint whose vocabulary and weights the training starts from.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes that train together, one a GPU.")] = 1,
) -> None:
    """Train an encoder from a recipe: vocabulary, tokenised store, then one stage after the other.

    The word `recipe` may be left out. Ctrl-C saves and stops; the same command goes on from there, on a processor to
    the bit.

    Example: xsent-train train/recipes/builtin.toml --data data --out runs/builtin
    """
    # A waiting thread that spins takes the core from the other threads and from everybody else.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from xsent.train.config import load_recipe

        recipe = load_recipe(config)  # torch takes a second to import: mistakes in the recipe do without
        from xsent.train.trainer import Trainer
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[train]'") from error
    trainer = Trainer(
        recipe,
        [data / file for file in recipe.corpus.files],
        out or Path("runs") / recipe.name,
        threads=threads or max(1, available_cpus() // int(os.environ.get("LOCAL_WORLD_SIZE", devices))),
        devices=devices,
        teacher=teacher,
        fast_teacher=fast_teacher,
        start=start,
    )
    path = trainer.train()
    if trainer.fabric.is_global_zero:
        typer.echo(f"trained: {path}", err=True)
        typer.echo(f"next: xsent-export {path} MY-BUNDLE", err=True)
        typer.echo(path)


@app.command("vocabulary")
@one_line_errors()
def vocabulary(config: Config, data: Data = Path(), out: Out = None, threads: Threads = None) -> None:
    """Prepare the data of a recipe and stop: vocabulary, held-out pairs, tokenised store.

    Example: xsent-train vocabulary train/recipes/builtin.toml --data data --out runs/builtin
    """
    try:
        from xsent.train.config import load_recipe

        recipe = load_recipe(config)
        from xsent.train.data.preparation import prepare
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[train]'") from error
    files = [data / file for file in recipe.corpus.files]
    prepared = prepare(recipe, files, out or Path("runs") / recipe.name, threads=threads or available_cpus())
    typer.echo(prepared.tokenizer)


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    app()
