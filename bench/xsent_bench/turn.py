"""One turn of a system, ours or another, in a fresh process: python -m xsent_bench.turn TASK."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xsent.cpu import time_each
from xsent_bench.processes import answers, peak_memory, resident, say, serve_parent
from xsent_bench.systems import SYSTEMS
from xsent_bench.texts import mixed, sentences, texts_of

if TYPE_CHECKING:
    from xsent import SentenceEncoder


FEWEST, MOST = 20, 1000  # sentences of a length that are timed one by one
ALONE = 200  # sentences of mixed lengths that are
BLOCK = 1000  # sentences of a stream that are encoded at once
POINTS = 20  # of a stream at which the memory is read
# No system looks for anything outside, and none takes more threads than it is given for its tokenizer.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Task:
    """What a process measures."""

    folder: str  # of the model
    system: str = "xsent"  # one of `SYSTEMS`
    settings: Mapping[str, str | int] = field(default_factory=dict)  # of ours: layers, backend, threads
    lengths: Sequence[int] = ()  # tokens of the sentences that are timed; of ours alone
    seconds: float = 0.5  # for each length, half of them one by one
    sentences: int = 0  # of mixed lengths to encode at once
    stream: int = 0  # sentences over which the memory is watched


@dataclass
class Turn:
    """What one process said."""

    first_ms: float = 0.0  # from the start of the process to its first vector
    first_mib: float = 0.0  # its memory then
    ms: dict[int, list[float]] = field(default_factory=dict)  # of each sentence, by its tokens
    rates: dict[int, float] = field(default_factory=dict)  # sentences a second, of many at once, by their tokens
    latency_ms: float = 0.0  # of a sentence of mixed lengths, the median
    sentences_per_second: float = 0.0  # of mixed lengths, at once
    memory: dict[int, float] = field(default_factory=dict)  # MiB after so many sentences of a stream
    peak_mib: float = 0.0  # the most memory that it ever held


def run_turn(task: Task) -> Turn:
    """Measure in a fresh process; a DataError has the last line of what one that fails wrote."""
    turn, began = Turn(), time.perf_counter()
    # One thread for numerical libraries unless the system takes them for its own: ours runs sentences side by side.
    threads = SYSTEMS[task.system].threads
    for said in answers("xsent_bench.turn", [json.dumps(asdict(task))], threads=threads, environment=ENVIRONMENT):
        if "first_mib" in said:
            turn.first_ms = 1000 * (time.perf_counter() - began)
        if "tokens" in said:
            turn.ms[said["tokens"]], turn.rates[said["tokens"]] = said["ms"], said["rate"]
        elif "after" in said:
            turn.memory[said["after"]] = said["mib"]
        else:
            vars(turn).update(said)
    return turn


def take_turn(task: Task) -> None:
    """Say what a system takes; in a process of its own."""
    encoder = SYSTEMS[task.system].open(Path(task.folder), **task.settings)
    encoder.encode(sentences(1))
    seen = [resident()]
    say({"first_mib": seen[0]})
    for facts in _by_length(encoder, task) if task.lengths else ():
        say(facts)
    if task.sentences:
        say(_of_mixed_lengths(encoder, task.sentences))
    for after, mib in _watch_memory(encoder, task.stream):
        seen.append(mib)
        say({"after": after, "mib": mib})
    say({"peak_mib": max(*seen, peak_memory())})


def _by_length(encoder: "SentenceEncoder", task: Task) -> Iterator[dict[str, object]]:
    """Milliseconds of sentences one by one, and how many a second when there are many at once."""
    source = mixed(sys.maxsize)
    for tokens in (tokens for tokens in task.lengths if tokens <= encoder.max_length):
        texts, half = texts_of(tokens, encoder.count_tokens, source), task.seconds / 2
        times = time_each(encoder.encode, texts, least=FEWEST, most=MOST, seconds=half)
        began = time.perf_counter()
        until = takewhile(lambda _: time.perf_counter() <= began + half, cycle(texts))  # noqa: B023  used up right here
        rate = sum(1 for _ in encoder.encode_iter(until)) / (time.perf_counter() - began)
        yield {"tokens": tokens, "ms": [round(1000 * taken, 5) for taken in times], "rate": rate}


def _of_mixed_lengths(encoder: Any, number: int) -> dict[str, float]:  # noqa: ANN401  anything that encodes
    """One sentence after the other, then so many at once."""
    from statistics import median

    texts = sentences(max(number, ALONE))
    encoder.encode(texts[:FEWEST])  # warms up
    times = time_each(lambda text: encoder.encode([text]), texts[:ALONE], least=ALONE)
    began = time.perf_counter()
    encoder.encode(texts[:number])
    rate = number / (time.perf_counter() - began)
    return {"latency_ms": 1000 * median(times), "sentences_per_second": rate}


def _watch_memory(encoder: Any, number: int) -> Iterator[tuple[int, float]]:  # noqa: ANN401  anything that encodes
    """The memory in MiB after 1,000 sentences, and at points of a stream of so many."""
    source, done = mixed(number), 0
    every = max(BLOCK, number // POINTS // BLOCK * BLOCK)
    while block := list(islice(source, BLOCK)):
        encoder.encode(block)
        done += len(block)
        if done == BLOCK or done % every == 0 or done == number:
            yield done, resident()


if __name__ == "__main__":
    serve_parent()
    take_turn(Task(**json.loads(sys.argv[1])))
