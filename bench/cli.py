"""The `xsent-bench` command: a whole run with its report, or one of the measurements alone."""

import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from xsent.bench.commands import ablation, corpus_memory, documents, latency, mining, peers, training
from xsent.bench.compare import THRESHOLD, compare_files
from xsent.bench.options import command_line, missing
from xsent.bundle import builtin_path
from xsent.commands.options import BundleOption, JsonOption
from xsent.errors import DataError
from xsent.failures import FAILED, one_line_errors

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Example: xsent-bench --quick --out my-report",
)
app.command(epilog="Example: xsent-bench ablation DATA --out runs/ablation --only generative --seeds 1,2,3")(ablation)
app.command(epilog="Example: xsent-bench training --out runs/speed --threads 2")(training)
app.command(epilog="Example: xsent-bench corpus-memory --pairs 1000000,20000000 --out runs/memory")(corpus_memory)
app.command(epilog="Example: xsent-bench latency my-int8 my-fp32 --tokens 20,64 --default")(latency)
app.command(epilog="Example: xsent-bench peers --out runs/peers")(peers)
app.command(epilog="Example: xsent-bench documents data/eval/flores --languages en,fr,de,es,it")(documents)
app.command(epilog="Example: xsent-bench mining --rows 200000 --rounds 1")(mining)


@app.callback(invoke_without_command=True)
@one_line_errors()
def whole_run(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of half an hour: less of all.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the report; made if it is not there.")] = Path("bench-report"),
    work: Annotated[
        Path | None, typer.Option(help="Folder of the models made for it, to be used again; default: OUT-work.")
    ] = None,
    evaluate: Annotated[
        Path | None, typer.Option("--eval", help="Folder of test sets, to set quality beside the cost.")
    ] = None,
    bundle: Annotated[
        list[Path] | None, typer.Option(help="A trained bundle beside the built-in one; may be given again.")
    ] = None,
    with_peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Whether other systems run too.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a report that is there.")] = False,
) -> None:
    """Measure what sentence vectors cost on this machine, by layers, length, precision, backend and threads.

    Without a command: everything, beside other systems where they are installed, as a folder with report.md,
    report.html, results.json and plots. Ctrl-C leaves a report of what there is by then.
    """
    if context.invoked_subcommand:
        return
    try:
        from xsent.bench.run import Choices, run
    except ModuleNotFoundError as error:
        raise missing(error) from error
    choices = Choices(quick=quick, evaluate=evaluate, bundles=tuple(bundle or ()), peers=with_peers)
    typer.echo(run(out, work or Path(f"{out}-work"), choices, force=force, command=command_line()))


@app.command(epilog="Example: xsent-bench compare old/results.json new/results.json --threshold 0.1")
@one_line_errors()
def compare(
    old: Annotated[Path, typer.Argument(help="The results.json of one run.")],
    new: Annotated[Path, typer.Argument(help="That of a later one.")],
    threshold: Annotated[float, typer.Option(help="Share by which a figure may be slower or larger.")] = THRESHOLD,
    force: Annotated[bool, typer.Option("--force", help="Compare other machines and versions too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs; exits with 1 where a figure is worse past the threshold and beyond its own spread."""
    found = compare_files(old, new, threshold=threshold, force=force)
    typer.echo(json.dumps(asdict(found)) if as_json else found.text())
    if found.of("slower"):
        raise typer.Exit(FAILED)


@app.command(epilog="Example: xsent-bench tracking new.json && xsent-bench compare old.json new.json")
@one_line_errors()
def tracking(
    out: Annotated[Path, typer.Argument(help="The file of results to write.")],
    model: BundleOption = None,
    by: Annotated[
        str, typer.Option(help="perf or valgrind count instructions, time takes ratios; auto: what works here.")
    ] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Measure a small set whose figures stay the same on a machine that is not quiet, for `compare`."""
    if out.exists() and not force:
        raise DataError(f"{out}: exists; name another, or replace it with --force")
    try:
        from xsent.bench.tracking import track
    except ModuleNotFoundError as error:
        raise missing(error) from error
    track(model or builtin_path(), command=command_line(), by=by).write(out)
    typer.echo(out)


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    app()
