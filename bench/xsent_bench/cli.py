"""The `xsent-bench` command: a whole run with its report, or one measurement alone.

The measuring modules are imported inside the commands, so that a missing package is one line and `--help` is quick.
"""

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from xsent.bundle import builtin_path
from xsent.cli.options import BundleArgument, BundleOption, split_names
from xsent.cli.terminal import one_line_errors
from xsent.errors import DataError, require_extra

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Example: xsent-bench --quick --out my-report",
)
OutOption = Annotated[Path, typer.Option(help="Folder of all output; a second run resumes in it.")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="CPU threads of a training.")]


def numbers(text: str, least: int = 0) -> list[int]:
    """Whole numbers with commas between. Raises DataError if there is none, or one below `least`."""
    expected = "expected whole numbers with commas between, such as 1,2,3"
    try:
        found = [int(name) for name in split_names(text)]
    except ValueError as error:
        raise DataError(f"{text!r}: {expected}") from error
    if not found:
        raise DataError(f"no number given; {expected}")
    if min(found) < least:
        raise DataError(f"{text!r}: {min(found)} must be at least {least}")
    return found


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["xsent-bench", *sys.argv[1:]])


@contextmanager
def measuring() -> Iterator[None]:
    """Report errors in one line; used as a decorator of commands."""
    with one_line_errors(), require_extra("bench"):
        yield


@app.callback(invoke_without_command=True)
@measuring()
def whole_run(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of half an hour: measure less.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("bench-report"),
    work: Annotated[Path | None, typer.Option(help="Folder of the models made for it; default: OUT-work.")] = None,
    evaluate: Annotated[Path | None, typer.Option("--eval", help="Folder of test sets: measure quality too.")] = None,
    bundle: Annotated[list[Path] | None, typer.Option(help="Measure this bundle too; may be repeated.")] = None,
    with_peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Measure other systems too.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing report.")] = False,
) -> None:
    """Measure what sentence vectors cost on this machine, by layers, length, precision, backend and threads.

    Without a command: everything, and other systems where they are installed. Writes a folder with report.md,
    results.json and plots. Ctrl-C leaves a report of what was measured by then.
    """
    if context.invoked_subcommand:
        return
    from xsent_bench.results import Results
    from xsent_bench.run import RESULTS, measure_steps, steps_of_run

    if (out / RESULTS).exists() and not force:
        raise DataError(f"{out / RESULTS}: there is a report; name another --out, or replace it with --force")
    results = Results(command_line())
    steps = steps_of_run(results, work or Path(f"{out}-work"), quick, bundle or (), evaluate, with_peers)
    typer.echo(measure_steps(results, steps, out))


@app.command(epilog="Example: xsent-bench ablation DATA --out runs/ablation --only generative --seeds 1,2,3")
@measuring()
def ablation(
    data: Annotated[
        Path, typer.Argument(help="Folder with train/pairs.tsv (may be compressed) and test sets in eval.")
    ],
    out: OutOption,
    budget: Annotated[int, typer.Option(min=1, help="Pairs that a row sees.")] = 64_000,
    seeds: Annotated[str, typer.Option(help="Seeds with commas between; all rows of one before the next.")] = "1",
    only: Annotated[str, typer.Option(help="Names of groups with commas between; default: all.")] = "",
    threads: ThreadsOption = 1,
    teacher: Annotated[Path | None, typer.Option(help="Model to distil from; default: the built-in one.")] = None,
) -> None:
    """Reproduce the papers' ablations: every variant on the same pairs and budget, as a Markdown table.

    Groups: generative, contrastive, layers, sizes, hictl, negatives, matryoshka, distillation. A finished row is
    never trained again; after Ctrl-C the same command resumes.
    """
    from xsent_bench.ablation import Ablation, AblationPlan

    model = str(teacher.resolve()) if teacher else ""
    plan = AblationPlan(data=str(data.resolve()), teacher=model, pairs=budget, threads=threads)
    typer.echo(Ablation(plan, out, command_line()).run(numbers(seeds), split_names(only)))


@app.command(epilog="Example: xsent-bench training --out runs/speed --threads 2")
@measuring()
def training(
    out: OutOption,
    layers: Annotated[str, typer.Option(help="Numbers of layers, with commas between.")] = "1,2,3,4,6",
    batches: Annotated[str, typer.Option(help="Batch sizes, with commas between.")] = "128",
    steps: Annotated[int, typer.Option(min=2, help="Steps of each measured training.")] = 12,
    device: Annotated[Literal["auto", "cpu"], typer.Option(help="auto takes a GPU where there is one.")] = "auto",
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the layers with torch.compile.")] = False,
    threads: ThreadsOption = 1,
) -> None:
    """Measure a training step on made-up text: seconds, pairs a second and peak memory, with those of the paper."""
    from xsent_bench.results import Results
    from xsent_bench.run import measure_steps
    from xsent_bench.training import TrainingSpec, measure_training

    spec = TrainingSpec(str(out), steps=steps, threads=threads, compile=compiled)
    depths = numbers(layers)
    sizes = numbers(batches, least=2)
    step = "training", lambda: measure_training(spec, depths, sizes, device)
    typer.echo(measure_steps(Results(command_line()), [step], out))


@app.command(epilog="Example: xsent-bench peers --out runs/peers")
@measuring()
def peers(
    out: Annotated[Path, typer.Option(help="Folder of the report and of the others' models.")],
    bundle: BundleArgument = None,
    only: Annotated[str, typer.Option(help="Other systems, with commas between; default: all.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Turns of each system, a fresh process each.")] = 5,
    number: Annotated[int, typer.Option("--sentences", min=20, help="Sentences to time in a turn.")] = 2_000,
    stream: Annotated[int, typer.Option(min=0, help="Sentences to watch our memory over.")] = 100_000,
) -> None:
    """Compare a bundle with other systems: speed, start and memory, in turns, each in processes of its own."""
    from xsent_bench.results import Results
    from xsent_bench.run import measure_steps, steps_of_peers

    results = Results(command_line())
    steps = steps_of_peers(results, bundle or builtin_path(), out, split_names(only), turns, number, stream)
    typer.echo(measure_steps(results, steps, out).read_text())


@app.command(epilog="Example: xsent-bench documents data/eval/flores --languages en,fr,de,es,it")
@measuring()
def documents(
    folder: Annotated[Path, typer.Argument(help="Folder with XX.txt for each language; equal lines are translations.")],
    languages: Annotated[str, typer.Option(help="Codes; the first is aligned with each other one.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Align parallel documents: biased or debiased, mean or weighted, cosine or margin (LAWDR)."""
    from xsent.encoder import SentenceEncoder
    from xsent_bench.retrieval import measure_documents

    typer.echo(measure_documents(SentenceEncoder(model), folder, split_names(languages), command=command_line()))


@app.command(epilog="Example: xsent-bench finding data/eval/flores --languages en,fr,de,es,it")
@measuring()
def finding(
    folder: Annotated[Path, typer.Argument(help="Folder with XX.txt for each language; equal lines are translations.")],
    languages: Annotated[str, typer.Option(help="Codes; the lines of the first are searched.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Measure how many lines are found by meaning and by words, and how many duplicates within one text."""
    from xsent.encoder import SentenceEncoder
    from xsent_bench.retrieval import measure_finding

    typer.echo(measure_finding(SentenceEncoder(model), folder, split_names(languages), command=command_line()))


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    app()
