"""What a sentence takes: the one way to time it, and a backend tried by it, run by `xsent.doctor` in a process."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from xsent.failures import one_line_errors

_SECONDS, _LEAST = 0.5, 5  # time to measure a backend for, and sentences at least

Input = TypeVar("Input")


@dataclass(frozen=True)
class Measurement:
    """What a backend did."""

    difference: float  # the largest of a number to the golden vectors, which was within the tolerance
    tokens: int  # of the sentence that was timed
    milliseconds: float  # for it, text to vector, on one thread: the median
    mebibytes: float  # of memory at the most after the first sentence; 0 where the system does not say


def time_call(run: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """Seconds of one call."""
    began = clock()
    run()
    return clock() - began


def time_each(
    run: Callable[[Input], object], inputs: Sequence[Input], *, least: int, most: int = sys.maxsize, seconds: float = 0
) -> list[float]:
    """Seconds of each call on the inputs, one after the other and over and over.

    There are `least` calls, then more until the seconds are over or there are `most`. One before them does not count:
    the first of a length allocates.
    """
    run(inputs[0])
    times: list[float] = []
    ending = perf_counter() + seconds
    while len(times) < least or (len(times) < most and perf_counter() < ending):
        value = inputs[len(times) % len(inputs)]
        began = perf_counter()
        run(value)
        times.append(perf_counter() - began)
    return times


def process_memory(field: str) -> float:
    """A field of /proc/self/status in MiB, such as VmHWM (peak resident memory) or RssAnon (not backed by a file).

    Not `getrusage`: its peak starts with what the parent held when it started this process.

    Raises:
        OSError: The system has no such file or field.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise OSError(f"/proc/self/status has no {field}")


def measure(path: Path, backend: str) -> Measurement:
    """Try a backend, see `xsent.backends.open_backend`, on a bundle.

    Raises:
        XsentError: It does not work, or gives other vectors than it should.
    """
    # Not above: a process that only times other things would load and weigh more.
    from statistics import median

    from xsent.encoder import SentenceEncoder
    from xsent.tokenizer import Tokenizer
    from xsent.verification import verify

    encoder = SentenceEncoder(path, backend=backend, threads=1)
    text = max(encoder.bundle.golden.sentences, key=len, default="The cat sleeps.")
    encoder.encode(text)
    try:
        mebibytes = process_memory("VmHWM")
    except OSError:  # not Linux
        mebibytes = 0.0
    times = time_each(encoder.encode, [text], least=_LEAST, seconds=_SECONDS)
    tokens = len(Tokenizer(encoder.bundle.tokenizer_path).encode(text))
    return Measurement(verify(path, backend).difference, tokens, 1000 * median(times), mebibytes)


@one_line_errors()
def main(path: str, backend: str) -> None:
    """Try a backend and print what it did as JSON."""
    sys.stdout.write(json.dumps(asdict(measure(Path(path), backend))))
