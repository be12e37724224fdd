"""Whether a stream of millions of sentences stays as it began: its speed, its memory, its open files.

python -m xsent_bench.experiments.soak BUNDLE [SENTENCES]
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from time import perf_counter, process_time

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types

from xsent.cli.terminal import Progress, one_line_errors
from xsent.encoder import SentenceEncoder
from xsent_bench.processes import resident
from xsent_bench.results import Measurement
from xsent_bench.tables import listing
from xsent_bench.texts import sentences

STRETCHES = 10
BEGINNINGS = 1_000  # of sentences; as their lengths come in turn, every stretch has the same number of each
STEP, NUMBERS = 7_919, 10**9  # a prime, and what it runs through, so that no sentence comes twice


def different(number: int) -> Iterator[str]:
    """Sentences that are all different, those of one stretch as costly as those of another."""
    for i, text in enumerate(islice(cycle(sentences(BEGINNINGS)), number)):
        yield f"{text} {i * STEP % NUMBERS:09d}"


def soak(encoder: SentenceEncoder, number: int) -> list[Measurement]:
    """What each tenth of a stream took, and what the process holds after it."""
    size = number // STRETCHES
    encoder.encode(sentences(BEGINNINGS))  # does not count: it fills caches and touches the table
    found = list[Measurement]()
    with Progress("sentences", number) as progress:
        stream = encoder.encode_iter(progress.count(different(size * STRETCHES)))
        for _ in range(STRETCHES):
            began, worked = perf_counter(), process_time()
            for _ in islice(stream, size):
                pass
            seconds, worked = perf_counter() - began, process_time() - worked
            place = {"after": f"{size * (len(found) + 1):,}", "open files": psutil.Process().num_fds()}
            rates = {"sentences_per_second": size / seconds, "processor_ms": 1000 * worked / size}
            found.append(Measurement("soak", place, {**rates, "held_mib": resident()}))
    return found


def told(found: Sequence[Measurement], number: int) -> str:
    """The table, and what changed: the memory's slope behind the first tenth, the work a sentence, the files."""
    memory, work = ([one.figures[name] for one in found] for name in ("held_mib", "processor_ms"))
    slope = np.polynomial.Polynomial.fit(range(1, len(memory)), memory[1:], 1).convert().coef[1] * STRETCHES
    return (
        f"{listing(found).markdown()}\n\nMemory: {slope / number * 1e6:+.3f} MiB a million sentences after the first "
        f"tenth. Processor's time a sentence: the last tenth takes {work[-1] / work[0]:.3f} of the first.\n"
    )


@one_line_errors()
def main(bundle: str, number: str = "10000000") -> None:
    """Print what was measured, in Markdown."""
    sys.stdout.write(told(soak(SentenceEncoder(bundle), int(number)), int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
