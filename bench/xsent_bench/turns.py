"""One turn of a system, measured in a fresh process that prints its figures: python -m xsent_bench.turns TASK.

pytest-benchmark, which times our own encoder in `test_encoding`, has neither turns nor fresh processes. Without them a
busy machine doubles the difference between two equal systems; bench/README.md has the figures.
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

FEWEST, MOST = 20, 1000  # sentences of a length that are timed one by one
ALONE = 200  # sentences of mixed lengths that are timed one by one
BATCHES = (8, 32, 1000)  # sentences that a system is given at once; it may make smaller batches of them
MANY = 1000  # sentences after which the memory is read
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
# No system looks for files outside, and none starts threads of its own for its tokenizer.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": "1"}

Say = Callable[[str], None]
Figures = dict[str, float]


@dataclass(frozen=True)
class Task:
    """What a process measures."""

    folder: str  # of the model, or its file
    system: str = OURS  # one of `SYSTEMS`
    settings: Mapping[str, str | int | None] = field(default_factory=dict)  # of ours: layers, backend, threads
    memory: bool = True  # whether it is read after many sentences too
    tokens: Sequence[int] = ()  # lengths of sentences that are timed; for ours alone
    seconds: float = 0.5  # for each of these, half of them one by one
    words: Sequence[int] = ()  # lengths of sentences that are timed
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
    failed: list[str] = field(default_factory=list)  # tests that could not be made


def run_turn(task: Task) -> Turn:
    """Measure in a fresh process. Raises DataError with the last message of a process that fails."""
    turn = Turn()
    command = ["-m", "xsent_bench.turns", json.dumps(asdict(task))]
    began = time.perf_counter()
    for said in answers(command, threads=task.threads, environment=ENVIRONMENT):
        if "mib_1" in said:
            said["first_ms"] = 1000 * (time.perf_counter() - began)
        if "tokens" in said:
            turn.by_tokens[said.pop("tokens")] = said
        elif "language" in said:
            turn.by_language.setdefault(said.pop("language"), {}).update(said)
        elif "failed" in said:
            turn.failed.append(said["failed"])
        else:
            turn.process |= said
    return turn


def take_turns(tasks: Mapping[str, Task], turns: int, fail: Say) -> Iterator[tuple[str, Turn]]:
    """The turns of tasks by name, one of each after the other; one that fails is reported and left out from then on.

    A first turn of each, which only reads the model's files into the system's cache, does not count.
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
    """In a child: measure a system, and say its figures."""
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
        from xsent_bench.quality import scores  # here: its packages take memory

        for facts in scores(encoder, Path(task.tests), task.languages):
            say(facts)
    say({"peak_mib": max(resident(), peak_memory())})


def _of_tokens(encoder: Any, tokens: int, seconds: float) -> Figures:  # noqa: ANN401  any object with an encode
    """Milliseconds of sentences one by one, and their rate when they are encoded at once.

    A percentile is left out where less than one sentence lies beyond it.
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
    """Milliseconds of a sentence of so many words, the median; the texts are the same for all systems."""
    figures = {}
    for words in lengths:
        texts = [[text] for text in sentences(TEXTS, words=[words])]
        figures[f"ms_{words}_words"] = 1000 * float(np.median(time_each(encoder.encode, texts, least=FEWEST)))
    return figures


def _of_mixed_lengths(encoder: Any, number: int) -> Figures:  # noqa: ANN401
    """Sentences a second, one after the other and in the best batch; the lengths are those of real ones."""

    def seconds(texts: Sequence[str], batch: int) -> float:
        began = time.perf_counter()
        for start in range(0, len(texts), batch):
            encoder.encode(texts[start : start + batch])
        return time.perf_counter() - began

    texts = sentences(max(number, ALONE))
    alone, *tried = (seconds(texts[:ALONE], batch) for batch in (1, *BATCHES))
    best = BATCHES[int(np.argmin(tried))]
    rate = number / seconds(texts[:number], best)
    return {"one_by_one_per_second": ALONE / alone, "batched_per_second": rate, "batch": min(best, number)}


if __name__ == "__main__":
    serve_parent()
    measure_task(Task(**json.loads(sys.argv[1])))
