"""The built-in model for long, and in many processes at once; results: docs/lab/endurance.md."""

from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types
import typer

from xsent.bundle import TABLE, Bundle
from xsent.cli.options import split_names
from xsent.cli.terminal import one_line_errors
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.progress import Progress
from xsent_bench.processes import Child, resident
from xsent_bench.report import listing
from xsent_bench.results import Measurement
from xsent_bench.texts import sentences

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

BundleArgument = Annotated[Path, typer.Argument(help="A bundle.")]
STRETCHES = 10  # of a stream
BEGINNINGS = 1_000  # of its sentences; as their lengths repeat, every stretch has the same number of each
STEP, NUMBERS = 7_919, 10**9  # a prime, and the numbers that it runs through, so that no sentence comes twice
# A process of `sharing`: it encodes, tells a digest of the vectors, and waits until its standard input is closed.
SHARER = """
import os, sys
from hashlib import sha256
from xsent import SentenceEncoder
from xsent_bench.processes import say
from xsent_bench.texts import sentences
encoder = SentenceEncoder(sys.argv[1], backend=sys.argv[2], threads=1)
say({"digest": sha256(encoder.encode(sentences(200)).tobytes()).hexdigest(), "process": os.getpid()})
sys.stdin.read()
"""


@app.command()
@one_line_errors()
def stream(bundle: BundleArgument, number: int = 10_000_000) -> None:
    """Measure whether speed, memory and open files change over a stream of different sentences."""
    encoder = SentenceEncoder(bundle)
    encoder.encode(sentences(BEGINNINGS))  # warms up: fills caches and touches the table
    size = number // STRETCHES
    found = list[Measurement]()
    with Progress("sentences", number) as progress:
        texts = enumerate(islice(cycle(sentences(BEGINNINGS)), size * STRETCHES))
        different = (f"{text} {i * STEP % NUMBERS:09d}" for i, text in texts)
        vectors = encoder.encode_iter(progress.count(different))
        for stretch in range(1, STRETCHES + 1):
            began, worked = perf_counter(), process_time()
            for _ in islice(vectors, size):
                pass
            seconds, worked = perf_counter() - began, process_time() - worked
            axes = {"after": f"{size * stretch:,}", "open files": psutil.Process().num_fds()}
            rates = {"sentences_per_second": size / seconds, "cpu_ms": 1000 * worked / size}
            found.append(Measurement("stream", axes, {**rates, "held_mib": resident()}))
    memory = [one.figures["held_mib"] for one in found[1:]]
    slope = float(np.polyfit(range(len(memory)), memory, 1)[0]) / size * 1e6
    last = found[-1].figures["cpu_ms"] / found[0].figures["cpu_ms"]
    typer.echo(
        f"{listing(found).markdown()}\n\nMemory: {slope:+.3f} MiB a million sentences after the first tenth. "
        f"CPU time of a sentence: the last tenth takes {last:.3f} times the first."
    )


@app.command()
@one_line_errors()
def sharing(bundle: BundleArgument, processes: int = 8, backends: str = "onnx,numpy") -> None:
    """Measure what processes with the same open bundle hold alone, and what they share."""
    path = Bundle.open(bundle).path  # fails here, not in each process
    found = [measure_sharing(path, backend, processes) for backend in split_names(backends)]
    typer.echo(listing(found).markdown())


def measure_sharing(bundle: Path, backend: str, processes: int) -> Measurement:
    """The most MiB that one process holds, and those of all together, with each shared page counted once.

    Raises DataError if the processes give different vectors.
    """
    with ExitStack() as stack:
        command = ["-c", SHARER, str(bundle), backend]
        children = [stack.enter_context(Child(command)) for _ in range(processes)]
        told = [child.answer() or {} for child in children]  # after that all have encoded
        held = [holdings(psutil.Process(one["process"]), (bundle / TABLE).resolve()) for one in told]
    if len({one["digest"] for one in told}) > 1:
        raise DataError(f"{bundle}: the processes gave the same sentences different vectors ({backend})")
    most = {name: max(one[name] for one in held) for name in ("private", "shared", "table", "table_private")}
    together = {"of_all": sum(one["share"] for one in held), "table_of_all": sum(one["table_share"] for one in held)}
    figures = {f"{name}_mib": count / 2**20 for name, count in {**most, **together}.items()}
    return Measurement("sharing", {"backend": backend, "processes": processes}, figures)


def holdings(process: psutil.Process, table: Path) -> dict[str, int]:
    """The bytes of all memory of a process, and of what it has mapped of the table."""
    whole = process.memory_full_info()
    maps = [mapped for mapped in process.memory_maps() if mapped.path == str(table)]
    return {
        "private": whole.uss,
        "shared": whole.rss - whole.uss,
        "share": whole.pss,
        "table": sum(mapped.rss for mapped in maps),
        "table_share": sum(mapped.pss for mapped in maps),
        "table_private": sum(mapped.private_clean + mapped.private_dirty for mapped in maps),
    }


if __name__ == "__main__":
    app()
