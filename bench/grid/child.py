"""One encoder in a fresh process: says what it measured as JSON lines.

python -m xsent.bench.grid.child TASK
"""

import json
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from xsent.bench.peers.texts import mixed, sentences
from xsent.bench.processes import answer_alone, end_with_parent, peak, resident

if TYPE_CHECKING:  # the process measures what loading it takes
    from xsent import SentenceEncoder
    from xsent.tokenizer import Tokenizer

FEWEST, MOST = 20, 1000  # sentences that are timed one by one
TEXTS = 16  # different ones of each length
BLOCK = 1000  # sentences of a stream that are encoded at once
POINTS = 20  # of a stream at which the memory is read


@dataclass(frozen=True)
class Task:
    """What a process measures.

    Attributes:
        bundle: The bundle's folder.
        backend: What runs it.
        threads: Sentences encoded at once.
        lengths: Tokens of the sentences that are timed.
        seconds: Seconds for each length, half of them one by one.
        stream: Sentences over which the memory is watched.
    """

    bundle: str
    backend: str = "onnx"
    threads: int = 1
    lengths: Sequence[int] = ()
    seconds: float = 0.5
    stream: int = 0


def text_of(count: Callable[[str], int], tokens: int, sources: Iterator[str]) -> str:
    """A text of exactly so many tokens: the beginning of a longer one.

    Args:
        count: Counts the tokens of a text.
        tokens: How many it shall have.
        sources: Sentences to join.

    Raises:
        ValueError: None was found.
    """
    for _ in range(100):
        source = next(sources)
        while count(source) < tokens:
            source = f"{source} {next(sources)}"
        end = bisect_left(range(len(source)), tokens, key=lambda end: count(source[:end]))
        if count(source[:end]) == tokens:
            return source[:end]
    raise ValueError(f"no text of {tokens} tokens was found")


def texts_of(tokenizer: "Tokenizer", tokens: int, sources: Iterator[str]) -> list[str]:
    """Different texts of exactly so many tokens, see `text_of`."""
    return [text_of(lambda text: len(tokenizer.encode(text)), tokens, sources) for _ in range(TEXTS)]


def time_length(encoder: "SentenceEncoder", texts: Sequence[str], seconds: float) -> dict[str, object]:
    """Milliseconds of sentences one by one, and how many a second when there are many at once."""
    times = time_each(encoder, texts, seconds / 2)
    began = time.perf_counter()
    done = sum(1 for _ in encoder.encode_iter(until(began + seconds / 2, texts)))
    rate = done / (time.perf_counter() - began)
    return {"ms": times, "sentences_per_second": rate}


def time_each(encoder: "SentenceEncoder", texts: Sequence[str], seconds: float) -> list[float]:
    """Milliseconds of sentences one by one, over and over for so many seconds."""
    encoder.encode(texts[0])  # the first of a length allocates
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < FEWEST or (len(times) < MOST and time.perf_counter() < began + seconds):
        text = texts[len(times) % len(texts)]
        start = time.perf_counter()
        encoder.encode(text)
        times.append(time.perf_counter() - start)
    return [round(1000 * taken, 5) for taken in times]


def until(ending: float, texts: Sequence[str]) -> Iterator[str]:
    """Texts over and over, until a time of `time.perf_counter`; at least one."""
    for text in cycle(texts):
        yield text
        if time.perf_counter() > ending:
            return


def watch_memory(encoder: "SentenceEncoder", number: int) -> Iterator[tuple[int, float]]:
    """The memory in MiB after 1,000 sentences, and at points of a stream of so many."""
    source, done = mixed(number), 0
    every = max(BLOCK, number // POINTS // BLOCK * BLOCK)
    while block := list(islice(source, BLOCK)):
        encoder.encode(block)
        done += len(block)
        if done == BLOCK or done % every == 0 or done == number:
            yield done, resident()


def say(**facts: object) -> None:
    """One line for the parent."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def measure(task: Task) -> None:
    """See the module."""
    from xsent import SentenceEncoder

    encoder = SentenceEncoder(Path(task.bundle), backend=task.backend, threads=task.threads)
    encoder.encode(sentences(1))
    seen = [resident()]
    say(first_mib=seen[0])
    if task.lengths:
        from xsent.tokenizer import Tokenizer

        tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
        source = mixed(sys.maxsize)
        for tokens in (tokens for tokens in task.lengths if tokens <= encoder.max_length):
            say(tokens=tokens, **time_length(encoder, texts_of(tokenizer, tokens, source), task.seconds))
    for after, mib in watch_memory(encoder, task.stream):
        seen.append(mib)
        say(after=after, mib=mib)
    say(peak_mib=peak(max(seen)))


def main() -> None:
    """Measure what the command line asks for."""
    end_with_parent()
    answer_alone()
    measure(Task(**json.loads(sys.argv[1])))


if __name__ == "__main__":
    main()
