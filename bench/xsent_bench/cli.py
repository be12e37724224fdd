"""The `xsent-bench` command: a whole run with its report, or one of the measurements alone.

What measures loads inside the commands: a missing package is one line, and `--help` is quick.
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
OutOption = Annotated[Path, typer.Option(help="Folder of everything that is written; a second run goes on in it.")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="Processor threads of a training.")]


def numbers(text: str, least: int = 0) -> list[int]:
    """Numbers with commas between, at least one."""
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
    """What goes wrong is one line; also a decorator for commands."""
    with one_line_errors(), require_extra("bench"):
        yield


@app.callback(invoke_without_command=True)
@measuring()
def whole_run(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of half an hour: less of all.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the report; made if it is not there.")] = Path("bench-report"),
    work: Annotated[Path | None, typer.Option(help="Folder of models made for it, kept; default: OUT-work.")] = None,
    evaluate: Annotated[Path | None, typer.Option("--eval", help="Folder of test sets: quality beside cost.")] = None,
    bundle: Annotated[list[Path] | None, typer.Option(help="A bundle too, at each depth; may be given again.")] = None,
    with_peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Whether other systems run too.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a report that is there.")] = False,
) -> None:
    """Measure what sentence vectors cost on this machine, by layers, length, precision, backend and threads.

    Without a command: everything, beside other systems where they are installed, as a folder with report.md,
    results.json and plots. Ctrl-C leaves a report of what there is by then.
    """
    if context.invoked_subcommand:
        return
    from xsent_bench.results import Results
    from xsent_bench.run import RESULTS, measure_parts, parts

    if (out / RESULTS).exists() and not force:
        raise DataError(f"{out / RESULTS}: there is a report; name another --out, or replace it with --force")
    results = Results(command_line())
    chosen = parts(results, work or Path(f"{out}-work"), quick, bundle or (), evaluate, with_peers)
    typer.echo(measure_parts(results, chosen, out))


@app.command(epilog="Example: xsent-bench ablation DATA --out runs/ablation --only generative --seeds 1,2,3")
@measuring()
def ablation(
    data: Annotated[Path, typer.Argument(help="Folder with train/pairs.tsv (or packed) and the test sets in eval.")],
    out: OutOption,
    budget: Annotated[int, typer.Option(min=1, help="Pairs that a row sees.")] = 64_000,
    seeds: Annotated[str, typer.Option(help="Seeds with commas between; all rows of one before the next.")] = "1",
    only: Annotated[str, typer.Option(help="Names of groups with commas between; default: all.")] = "",
    processes: Annotated[int, typer.Option(min=1, help="Rows trained at once.")] = 2,
    threads: ThreadsOption = 1,
    teacher: Annotated[Path | None, typer.Option(help="Model to distil from; default: the built-in one.")] = None,
) -> None:
    """Reproduce the papers' ablations: every variant on the same pairs and budget, a Markdown table and plots.

    Groups: generative, contrastive, layers, sizes, hictl, negatives, matryoshka, distillation. A finished row is
    never trained again; after Ctrl-C the same command goes on.
    """
    from xsent_bench.ablation import Ablation
    from xsent_bench.variants import Plan

    model = str(teacher.resolve()) if teacher else ""
    plan = Plan(data=str(data.resolve()), teacher=model, pairs=budget, threads=threads)
    typer.echo(Ablation(plan, out, command_line()).run(numbers(seeds), split_names(only), processes))


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
    """Measure a training step on made-up text: seconds, pairs a second and peak memory, beside the paper's."""
    from xsent_bench.results import Results
    from xsent_bench.run import measure_parts
    from xsent_bench.training import TrainingSpec, measure_training

    spec = TrainingSpec(str(out), steps=steps, threads=threads, compile=compiled)
    depths, sizes = numbers(layers), numbers(batches, least=2)
    part = "training", lambda: measure_training(spec, depths, sizes, device)
    typer.echo(measure_parts(Results(command_line()), [part], out))


@app.command(epilog="Example: xsent-bench peers --out runs/peers")
@measuring()
def peers(
    out: Annotated[Path, typer.Option(help="Folder of the report, and of the others' models; made once.")],
    bundle: BundleArgument = None,
    only: Annotated[str, typer.Option(help="Systems beside ours, with commas between; default: all.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Turns of each system, a fresh process each.")] = 5,
    number: Annotated[int, typer.Option("--sentences", min=20, help="Sentences to time in a turn.")] = 2_000,
    stream: Annotated[int, typer.Option(min=0, help="Sentences to watch our memory over.")] = 100_000,
) -> None:
    """Compare a bundle with other systems: speed, start and memory, in turns, each in processes of its own."""
    from xsent_bench.results import Results
    from xsent_bench.run import measure_parts, peers_parts

    results = Results(command_line())
    parts = peers_parts(results, bundle or builtin_path(), out, split_names(only), turns, number, stream)
    typer.echo(measure_parts(results, parts, out).read_text())


@app.command(epilog="Example: xsent-bench documents data/eval/flores --languages en,fr,de,es,it")
@measuring()
def documents(
    folder: Annotated[Path, typer.Argument(help="Has XX.txt a language; equal lines are translations.")],
    languages: Annotated[str, typer.Option(help="Codes; the first is aligned with each other one.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Align parallel documents: biased or debiased, mean or weighted, cosine or margin (LAWDR)."""
    from xsent.encoder import SentenceEncoder
    from xsent_bench.experiments.documents import measure_documents

    typer.echo(measure_documents(SentenceEncoder(model), folder, split_names(languages), command=command_line()))


@app.command(epilog="Example: xsent-bench finding data/eval/flores --languages en,fr,de,es,it")
@measuring()
def finding(
    folder: Annotated[Path, typer.Argument(help="Has XX.txt a language; equal lines are translations.")],
    languages: Annotated[str, typer.Option(help="Codes; lines of the first are looked for.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Look for lines by meaning and by words, and for duplicates within one text: what is found."""
    from xsent.encoder import SentenceEncoder
    from xsent_bench.experiments.retrieval import measure_finding

    typer.echo(measure_finding(SentenceEncoder(model), folder, split_names(languages), command=command_line()))


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    app()
