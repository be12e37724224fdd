"""One turn of a system, measured in a fresh process that prints its figures: python -m xsent_bench.turns TASK.

pytest-benchmark, which times our own encoder in `test_encoding`, has neither turns nor fresh processes. Without them a
busy machine doubles the difference between two equal systems.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from xsent.cpu import time_each
from xsent.errors import DataError
from xsent_bench import OURS
from xsent_bench.processes import answers, peak_memory, resident, say, serve_parent
from xsent_bench.systems import SYSTEMS
from xsent_bench.texts import TEXTS, mixed, sentences, texts_of

logger = logging.getLogger(__name__)

FEWEST, MOST = 20, 1000  # sentences per length that are timed one by one
ALONE = 200  # sentences of mixed lengths that are timed one by one
BATCHES = (8, 32, 1000)  # sentences that a system gets at once; it may split them
MANY = 1000  # sentences before memory is read again
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}

Say = Callable[[str], None]
Figures = dict[str, float]


@dataclass(frozen=True)
class Task:
    """What a process measures."""

    folder: str  # of the model, or its file
    system: str = OURS  # one of `SYSTEMS`
    settings: Mapping[str, str | int | None] = field(default_factory=dict)  # of xsent: layers, backend, threads
    memory: bool = True  # whether to read it after many sentences, too
    tokens: Sequence[int] = ()  # lengths of timed sentences; only for xsent
    seconds: float = 0.5  # per length, half of them one by one
    words: Sequence[int] = ()  # lengths of timed sentences
    sentences: int = 0  # of mixed lengths to encode in the best batch
    tests: str = ""  # folder of test sets
    languages: Sequence[str] = ()  # to test
    threads: int = 1  # of numerical libraries


@dataclass
class Turn:
    """The figures of one process."""

    process: Figures = field(default_factory=dict)  # of the system
    by_tokens: dict[int, Figures] = field(default_factory=dict)
    by_language: dict[str, Figures] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # tests that failed, with the reason


def run_turn(task: Task) -> Turn:
    """Measure in a fresh process. Raises DataError with the last message of a process that fails."""
    turn = Turn()
    command = ["-m", "xsent_bench.turns", json.dumps(asdict(task))]
    began = time.perf_counter()
    for figures in answers(command, threads=task.threads):
        if "mib_1" in figures:
            figures["first_ms"] = 1000 * (time.perf_counter() - began)
        if "tokens" in figures:
            turn.by_tokens[figures.pop("tokens")] = figures
        elif "language" in figures:
            turn.by_language.setdefault(figures.pop("language"), {}).update(figures)
        elif "failed" in figures:
            turn.failed.append(figures["failed"])
        else:
            turn.process |= figures
    return turn


def take_turns(tasks: Mapping[str, Task], turns: int, fail: Say) -> Iterator[tuple[str, Turn]]:
    """Turns of the tasks by name, one of each before the next of any; a task that fails is reported, then skipped.

    The first turn of each does not count: it only reads the model's files into the system's cache.
    """
    waiting = dict(tasks)
    for number in range(turns + 1):
        for name, task in list(waiting.items()):
            logger.info("%s", name)
            try:
                turn = run_turn(task if number else Task(task.folder, task.system, task.settings, memory=False))
            except (DataError, OSError) as error:
                fail(f"{name}: {error}")
                del waiting[name]
                continue
            if number:
                yield name, turn


def measure_task(task: Task) -> None:
    """In a child: measure a system and print its figures."""
    encoder = SYSTEMS[task.system].open(Path(task.folder), **task.settings)
    encoder.encode(sentences(1))
    say({"mib_1": resident()})
    if task.memory:
        encoder.encode(list(mixed(MANY)))
        say({f"mib_{MANY}": resident()})
    for tokens in task.tokens:
        if tokens <= encoder.max_length:
            say({"tokens": tokens, **_of_tokens(encoder, tokens, task.seconds / 2)})
    if task.words:
        say(_of_words(encoder, task.words))
    if task.sentences:
        say(_of_mixed_lengths(encoder, task.sentences))
    if task.tests:
        from xsent_bench.quality import scores  # here, because its packages take memory

        for facts in scores(encoder, Path(task.tests), task.languages):
            say(facts)
    say({"peak_mib": max(resident(), peak_memory())})


def _of_tokens(encoder: Any, tokens: int, seconds: float) -> Figures:  # noqa: ANN401  any object with an encode
    """Milliseconds per sentence one by one, and the rate when all are encoded at once.

    A percentile is omitted if fewer than one sentence is above it.
    """
    texts = texts_of(tokens, encoder.count_tokens, mixed(sys.maxsize))
    times = time_each(encoder.encode, texts, least=FEWEST, most=MOST, seconds=seconds)
    began = time.perf_counter()
    until = takewhile(lambda _: time.perf_counter() <= began + seconds, cycle(texts))
    rate = sum(1 for _ in encoder.encode_iter(until)) / (time.perf_counter() - began)
    shares = {name: share for name, share in PERCENTILES.items() if (100 - share) * len(times) >= 100}
    figures = {name: 1000 * float(np.percentile(times, share)) for name, share in shares.items()}
    return {**figures, "sentences_per_second": rate, "tokens_per_second": tokens * rate}


def _of_words(encoder: Any, lengths: Sequence[int]) -> Figures:  # noqa: ANN401
    """Median milliseconds of a sentence of each length in words; all systems get the same texts."""
    figures = {}
    for words in lengths:
        texts = [[text] for text in sentences(TEXTS, words=[words])]
        figures[f"ms_{words}_words"] = 1000 * float(np.median(time_each(encoder.encode, texts, least=FEWEST)))
    return figures


def _of_mixed_lengths(encoder: Any, number: int) -> Figures:  # noqa: ANN401
    """Sentences per second of realistic lengths, one by one and in the best batch, and processor time in the latter.

    On a busy machine, processor time is what a system needs; the rest is waiting.
    """

    def seconds(texts: Sequence[str], batch: int) -> float:
        began = time.perf_counter()
        for start in range(0, len(texts), batch):
            encoder.encode(texts[start : start + batch])
        return time.perf_counter() - began

    texts = sentences(max(number, ALONE))
    alone, *tried = (seconds(texts[:ALONE], batch) for batch in (1, *BATCHES))
    best = BATCHES[int(np.argmin(tried))]
    before = time.process_time()
    rate = number / seconds(texts[:number], best)
    cpu = 1000 * (time.process_time() - before) / number
    figures = {"one_by_one_per_second": ALONE / alone, "batched_per_second": rate, "batched_cpu_ms": cpu}
    return {**figures, "batch": min(best, number)}


if __name__ == "__main__":
    serve_parent()
    measure_task(Task(**json.loads(sys.argv[1])))
