"""One system in a process of its own: says what it measured as JSON lines.

python -m xsent.bench.peers.child SYSTEM FOLDER SENTENCES MIXED
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median

from xsent.bench.peers.systems import SYSTEMS, Encode
from xsent.bench.peers.texts import mixed, sentences
from xsent.bench.processes import end_with_parent, peak, resident

BLOCK = 1000  # sentences of a stream that are encoded at once
VOICE = os.fdopen(os.dup(1), "w")  # standard output, which some systems write advice to, see `main`


def say(**facts: float) -> None:
    """One line for the parent."""
    VOICE.write(json.dumps(facts) + "\n")
    VOICE.flush()


def latency(encode: Encode, texts: Sequence[str]) -> float:
    """Median milliseconds of one sentence."""
    times = []
    for text in texts:
        began = time.perf_counter()
        encode([text])
        times.append(time.perf_counter() - began)
    return 1000 * median(times)


def measure(encode: Encode, number: int) -> None:
    """One sentence after the other, then many at once."""
    texts = sentences(max(number, 200))
    encode(texts[:20])  # warms up
    say(latency_ms=latency(encode, texts[:200]))
    began = time.perf_counter()
    encode(texts[:number])
    say(sentences_per_second=number / (time.perf_counter() - began), peak_mib=peak(resident()))


def memory_over(encode: Encode, number: int) -> None:
    """The memory while a stream of mixed lengths goes by, at ten points."""
    source: Iterator[str] = mixed(number)
    done = 0
    while block := list(islice(source, BLOCK)):
        encode(block)
        done += len(block)
        if done % max(BLOCK, number // 10) == 0:
            say(after=done, mib=resident())


def main() -> None:
    """See the module."""
    end_with_parent()
    os.dup2(2, 1)
    name, folder, number, stream = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    encode = SYSTEMS[name](folder)
    encode(sentences(1))
    say(first=1, first_mib=resident())
    if number:
        measure(encode, number)
    if stream:
        memory_over(encode, stream)


if __name__ == "__main__":
    main()
