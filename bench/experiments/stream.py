"""Speed, memory and open files over a stream of different sentences; results: docs/lab/endurance.md."""

from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types
import typer

from xsent.cli.terminal import Progress, one_line_errors
from xsent.encoder import SentenceEncoder
from xsent_bench.processes import resident
from xsent_bench.report import listing
from xsent_bench.results import Measurement
from xsent_bench.texts import sentences

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

STRETCHES = 10  # of a stream
BEGINNINGS = 1_000  # of its sentences; as their lengths repeat, every stretch has the same number of each
STEP, NUMBERS = 7_919, 10**9  # a prime, and the numbers that it runs through, so that no sentence comes twice


@app.command()
@one_line_errors()
def stream(bundle: Annotated[Path, typer.Argument(help="A bundle.")], number: int = 10_000_000) -> None:
    """Measure whether speed, memory and open files change over a stream of different sentences."""
    encoder = SentenceEncoder(bundle)
    encoder.encode(sentences(BEGINNINGS))  # warms up: fills caches and touches the table
    size = number // STRETCHES
    found = list[Measurement]()
    with Progress("sentences", number) as progress:
        vectors = encoder.encode_iter(progress.count(different_sentences(size * STRETCHES)))
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


def different_sentences(number: int) -> Iterator[str]:
    """Different sentences, with the same lengths in every stretch."""
    for i, text in enumerate(islice(cycle(sentences(BEGINNINGS)), number)):
        yield f"{text} {i * STEP % NUMBERS:09d}"


if __name__ == "__main__":
    app()
