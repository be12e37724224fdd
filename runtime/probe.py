"""A backend tried on this machine: run by `xsent.doctor` in a process of its own."""

import json
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from xsent.encoder import SentenceEncoder
from xsent.failures import one_line_errors
from xsent.tokenizer import Tokenizer
from xsent.verification import verify

_SECONDS, _LEAST = 0.5, 5  # time to measure for, and sentences at least


@dataclass(frozen=True)
class Measurement:
    """What a backend did.

    Attributes:
        difference: Largest difference of a number to the golden vectors, which was within the tolerance.
        tokens: Length of the sentence that was timed.
        milliseconds: Time for it, text to vector, on one thread: the median.
        mebibytes: Memory at the most after the first sentence; 0 where the system does not say.
    """

    difference: float
    tokens: int
    milliseconds: float
    mebibytes: float


def measure(path: Path, backend: str) -> Measurement:
    """Try a backend.

    Args:
        path: The bundle.
        backend: See `xsent.backends.open_backend`.

    Raises:
        XsentError: It does not work, or gives other vectors than it should.
    """
    encoder = SentenceEncoder(path, backend=backend, threads=1)
    text = max(encoder.bundle.golden.sentences, key=len, default="The cat sleeps.")
    encoder.encode(text)
    mebibytes = _peak_memory()
    times: list[float] = []
    while len(times) < _LEAST or sum(times) < _SECONDS:
        start = perf_counter()
        encoder.encode(text)
        times.append(perf_counter() - start)
    tokens = len(Tokenizer(encoder.bundle.tokenizer_path).encode(text))
    difference = verify(path, backend).difference
    return Measurement(difference, tokens, 1000 * statistics.median(times), mebibytes)


@one_line_errors()
def main(path: str, backend: str) -> None:
    """Try a backend and print what it did as JSON."""
    sys.stdout.write(json.dumps(asdict(measure(Path(path), backend))))


def _peak_memory(status: Path = Path("/proc/self/status")) -> float:
    try:
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    except OSError:  # not Linux
        return 0
    return int(fields["VmHWM"].split()[0]) / 1024
