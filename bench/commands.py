"""The commands of `xsent-bench` that measure one thing each. Heavy modules load inside them."""

from pathlib import Path
from typing import Annotated

import typer

from xsent.bench.options import command_line, missing, numbers
from xsent.bundle import builtin_path
from xsent.commands.options import BundleArgument, BundleOption, split_names
from xsent.errors import DataError
from xsent.failures import one_line_errors

OutOption = Annotated[Path, typer.Option(help="Folder of everything that is written; a second run goes on in it.")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="Processor threads of a training.")]


@one_line_errors()
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
    never trained again; Ctrl-C loses only the rows in training.
    """
    try:
        from xsent.bench.ablation.plan import Plan
        from xsent.bench.ablation.schedule import run_ablation
    except ModuleNotFoundError as error:
        raise missing(error) from error
    model = str(teacher.resolve()) if teacher else ""
    plan, names = Plan(data=str(data.resolve()), teacher=model, pairs=budget, threads=threads), split_names(only)
    run_ablation(plan, out, seeds=numbers(seeds), only=names, processes=processes, command=command_line())
    typer.echo(out / "ablation.md")


@one_line_errors()
def training(
    out: OutOption,
    only: Annotated[str, typer.Option(help="Parts: plain, layers, throughput; default: all.")] = "",
    batches: Annotated[str, typer.Option(help="Batch sizes of the throughput, with commas between.")] = "128",
    steps: Annotated[int, typer.Option(min=2, help="Steps of each measured training.")] = 12,
    turns: Annotated[int, typer.Option(min=2, help="Turns that ours and the plain system take; one more first.")] = 6,
    device: Annotated[str, typer.Option(help="auto takes a GPU where there is one; cpu does not.")] = "auto",
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the layers with torch.compile.")] = False,
    threads: ThreadsOption = 1,
) -> None:
    """Measure a training step: against a plain implementation of mao2021, by layers, its throughput, its data path."""
    try:
        from xsent.bench.training.report import run_training_benchmarks
        from xsent.bench.training.spec import Spec
    except ModuleNotFoundError as error:
        raise missing(error) from error
    if device not in ("auto", "cpu"):
        raise DataError(f"--device {device} must be auto or cpu")
    spec = Spec(folder=str(out), steps=steps, threads=threads, compile=compiled)
    out.mkdir(parents=True, exist_ok=True)
    parts, sizes = split_names(only), numbers(batches, least=2)
    typer.echo(
        run_training_benchmarks(spec, only=parts, batches=sizes, device=device, turns=turns, command=command_line())
    )


@one_line_errors()
def corpus_memory(
    out: OutOption,
    pairs: Annotated[str, typer.Option(help="Sizes of the made-up corpora, with commas between.")] = "1000000,20000000",
    steps: Annotated[int, typer.Option(min=2, help="Steps of training.")] = 300,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the corpora on the disk.")] = False,
    threads: ThreadsOption = 1,
) -> None:
    """Measure the memory of preparation and training on made-up corpora of several sizes."""
    try:
        from xsent.bench.training.corpus_memory import run_corpus_memory
        from xsent.bench.training.spec import Spec
    except ModuleNotFoundError as error:
        raise missing(error) from error
    spec = Spec(
        folder=str(out),
        system="table",
        batch_size=1024,
        steps=steps,
        threads=threads,
        words=8_000,
        length=8.0,
        vocabulary=8_000,
        dim=256,
    )
    typer.echo(run_corpus_memory(spec, numbers(pairs), keep=keep, command=command_line()))


@one_line_errors()
def latency(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles; all are compared with the first.")],
    tokens: Annotated[str, typer.Option(help="Tokens of the sentences, with commas between.")] = "20,64",
    backends: Annotated[str, typer.Option(help="Backends that run each bundle, with commas between.")] = "onnx",
    default: Annotated[
        bool, typer.Option("--default", help="Also the first one's weights as ONNX Runtime's own tools quantise them.")
    ] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 20,
) -> None:
    """Measure what a sentence takes: bundles take turns in one process, one thread."""
    try:
        from xsent.bench.latency import measure_latency
    except ModuleNotFoundError as error:
        raise missing(error) from error
    lengths, names = numbers(tokens), split_names(backends)
    typer.echo(
        measure_latency(
            bundles, lengths=lengths, backends=names, default=default, rounds=rounds, command=command_line()
        )
    )


@one_line_errors()
def peers(
    out: Annotated[Path, typer.Option(help="Folder for the models of other systems; made once.")],
    bundle: BundleArgument = None,
    only: Annotated[str, typer.Option(help="Systems beside ours, with commas between; default: all.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Turns of each system, a fresh process each.")] = 5,
    number: Annotated[int, typer.Option("--sentences", min=20, help="Sentences to time in a turn.")] = 2_000,
    stream: Annotated[int, typer.Option(min=0, help="Sentences to watch our memory over.")] = 100_000,
) -> None:
    """Compare a bundle with other systems: speed, start and memory, in turns, each in processes of its own."""
    try:
        from xsent.bench.peers.report import measure_peers
    except ModuleNotFoundError as error:
        raise missing(error) from error
    out.mkdir(parents=True, exist_ok=True)
    path, systems = bundle or builtin_path(), split_names(only)
    typer.echo(
        measure_peers(path, out, only=systems, turns=turns, number=number, stream=stream, command=command_line())
    )


@one_line_errors()
def documents(
    folder: Annotated[Path, typer.Argument(help="Has XX.txt a language; equal lines are translations.")],
    languages: Annotated[str, typer.Option(help="Codes; the first is aligned with each other one.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Align parallel documents: biased or debiased, mean or weighted, cosine or margin (LAWDR)."""
    from xsent.bench.documents import measure_documents
    from xsent.encoder import SentenceEncoder

    typer.echo(measure_documents(SentenceEncoder(model), folder, split_names(languages), command=command_line()))


@one_line_errors()
def mining(
    rows: Annotated[int, typer.Option(min=4, help="Made-up sentences on each side.")] = 200_000,
    dim: Annotated[int, typer.Option(min=1, help="Length of their vectors.")] = 384,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 1,
    folder: Annotated[Path | None, typer.Option(help="Where vectors are put; default: the temporary folder.")] = None,
) -> None:
    """Measure mining against a plain blocked product of the same vectors: they take turns, one thread."""
    from xsent.bench.mining import measure_mining

    typer.echo(measure_mining(rows=rows, dim=dim, rounds=rounds, folder=folder, command=command_line()))
