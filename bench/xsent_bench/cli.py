"""The `xsent-bench` command: a whole run with its report, only the comparison, or tables of pages.

The measuring modules are imported inside the commands, so a missing package is a one-line error and `--help` is quick.
"""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from xsent.bundle import builtin_path
from xsent.cli.options import BundleArgument, split_names
from xsent.cli.program import App
from xsent.cli.terminal import log_to_stderr
from xsent.errors import DataError, find_extra, require_extra

app = App(epilog="Example: xsent-bench --quick --out my-report")
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing report.")]
EvalOption = Annotated[Path | None, typer.Option("--eval", help="Folder of test sets; also measures quality.")]


def refuse_existing(out: Path, force: bool) -> None:
    """Raise DataError if a folder has a report that must not be replaced."""
    from xsent_bench.results import RESULTS

    if (out / RESULTS).exists() and not force:
        raise DataError(f"{out / RESULTS}: a report already exists; choose another --out, or replace it with --force")


def numbers(text: str, least: int = 0) -> list[int]:
    """Comma-separated whole numbers. Raises DataError if there is none, or one below `least`."""
    expected = "expected whole numbers separated by commas, such as 1,2,3"
    try:
        found = [int(name) for name in split_names(text)]
    except ValueError as error:
        raise DataError(f"{text!r}: {expected}") from error
    if not found:
        raise DataError(f"no number given; {expected}")
    if min(found) < least:
        raise DataError(f"{text!r}: {min(found)} must be at least {least}")
    return found


@app.callback(invoke_without_command=True)
@require_extra("bench")
def whole_run(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Measure less: minutes instead of an hour.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("bench-report"),
    work: Annotated[Path | None, typer.Option(help="Folder of the models written for it; default: OUT-work.")] = None,
    evaluate: EvalOption = None,
    bundle: Annotated[list[Path] | None, typer.Option(help="A bundle; may be repeated; default: builtin.")] = None,
    force: ForceOption = False,
) -> None:
    """Measure what sentence vectors cost on this machine, by layers, length, precision, backend and threads.

    Without a command: everything, and other systems where they are installed. Writes a folder with report.md,
    results.json and plots. After Ctrl-C the report has what was measured so far.
    """
    if context.invoked_subcommand:
        return
    find_extra("bench", "matplotlib")  # only the report needs it, at the end
    from xsent_bench.results import Results
    from xsent_bench.run import measure_steps, steps_of_run
    from xsent_train.derive import model_path

    refuse_existing(out, force)
    results = Results(shlex.join(["xsent-bench", *sys.argv[1:]]))
    bundles = [model_path(path) for path in bundle or [builtin_path()]]
    steps = steps_of_run(results, work or Path(f"{out}-work"), quick, bundles, evaluate)
    typer.echo(measure_steps(results, steps, out))


@app.command(epilog="Example: xsent-bench peers --out runs/peers --eval DATA/eval")
@require_extra("bench")
def peers(
    out: Annotated[Path, typer.Option(help="Folder of the report and of the model with random weights.")],
    bundle: BundleArgument = None,
    only: Annotated[str, typer.Option(metavar="NAMES", help="Other systems, separated by commas; default: all.")] = "",
    evaluate: EvalOption = None,
    force: ForceOption = False,
) -> None:
    """Compare a bundle at each of its depths with other systems: speed, start, memory, size and quality."""
    find_extra("bench", "matplotlib")
    from xsent_bench.results import Results
    from xsent_bench.run import Comparison, measure_steps
    from xsent_bench.systems import SYSTEMS

    refuse_existing(out, force)
    results = Results(shlex.join(["xsent-bench", *sys.argv[1:]]))
    others = tuple(split_names(only) or SYSTEMS)
    comparison = Comparison([bundle or builtin_path()], out, others, tests=evaluate)
    steps = [("systems", lambda: comparison.measure(results.failures.append))]
    typer.echo(measure_steps(results, steps, out).read_text())


@app.command(epilog="Example: xsent-bench tables docs/results/bench README.md docs/explanation/choosing.md")
@require_extra("bench")
def tables(
    report: Annotated[Path, typer.Argument(help="Folder of a report.")],
    pages: Annotated[list[Path], typer.Argument(help="Markdown with `<!-- table NAME -->` and `<!-- end -->`.")],
) -> None:
    """Rewrite the tables of pages from the results of a report."""
    from xsent_bench.report import write_tables

    write_tables(report, pages)


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    log_to_stderr()
    app()
