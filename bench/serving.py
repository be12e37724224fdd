"""What the server adds to encoding, and whether its memory stays flat.

A server in a process of its own gets one sentence a request, over connections that stay open; before and after it, a
plain loop encodes the same sentences in this process.

python -m xsent.bench.serving BUNDLE [REQUESTS] [CLIENTS,...]
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types

from xsent.bench.results import Measurement
from xsent.bench.tables import listing
from xsent.bench.texts import sentences
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.probe import time_each
from xsent.terminal import Progress, one_line_errors

SENTENCES, FIRST, POINTS = 1_000, 1_000, 10  # different ones; requests before the memory should be flat; looks at it
PATH, HEADERS = "/v1/embeddings", {"Content-Type": "application/json"}
COMMAND = [sys.executable, "-c", "from xsent.cli import main; main()", "serve", "--port", "0", "--model"]


@contextmanager
def server(bundle: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The port and the process of a server; it ends with the block."""
    with subprocess.Popen([*COMMAND, str(bundle)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            address, stops, _ = said.partition(";")
            if not stops:
                raise DataError(f"the server said {said.strip()!r}")
            yield int(address.rpartition(":")[2]), psutil.Process(process.pid)
        finally:
            process.terminate()


class Client:
    """Sends one request after the other."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port)

    def ask(self, bodies: Iterator[bytes]) -> list[float]:
        """Seconds of each."""
        times = []
        for body in bodies:
            began = perf_counter()
            self._connection.request("POST", PATH, body, HEADERS)
            answer = self._connection.getresponse()
            content = answer.read()
            times.append(perf_counter() - began)
            if answer.status != 200:
                raise DataError(f"answered {answer.status}: {content[:200]!r}")
        return times


def load(port: int, process: psutil.Process, clients: int, requests: int, texts: Sequence[str]) -> Measurement:
    """Requests of so many clients at once, and the server's memory meanwhile."""
    bodies = cycle([json.dumps({"input": text, "encoding_format": "base64"}).encode() for text in texts])
    mib = lambda: process.memory_info().rss / 2**20  # noqa: E731
    found, times, asking = {"mib_0": mib()}, list[float](), [Client(port) for _ in range(clients)]
    blocks = [FIRST, *[(requests - FIRST) // POINTS] * POINTS]
    began = perf_counter()
    with ThreadPoolExecutor(clients) as pool, Progress("requests", sum(blocks)) as progress:
        for size in blocks:
            shared = islice(bodies, size)  # threads take from it in turns
            for part in pool.map(Client.ask, asking, [shared] * clients):
                times += part
            found[f"mib_{len(times)}"] = mib()
            progress.advance(size)
    rate = len(times) / (perf_counter() - began)
    kept = {name: found[name] for name in ("mib_0", f"mib_{FIRST}", f"mib_{len(times)}")}
    return Measurement(
        "serving", {"how": f"{clients} clients"}, {**figures(times, rate), **kept, "peak_mib": max(found.values())}
    )


def loop(encoder: SentenceEncoder, texts: Sequence[str]) -> Measurement:
    """The same sentences one by one, without a server."""
    times = time_each(encoder.encode, texts, least=len(texts))
    return Measurement("serving", {"how": "a loop over encode"}, figures(times, len(times) / sum(times)))


def figures(times: Sequence[float], rate: float) -> dict[str, float]:
    """Percentiles of seconds, and how many a second."""
    p50, p95, p99 = (1000 * np.percentile(times, (50, 95, 99))).tolist()
    return {"sentences_per_second": rate, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99}


@one_line_errors()
def main(bundle: str, requests: str = "100000", clients: str = "1,4") -> None:
    """Print a table; each number of clients gets its share of the requests, from a server of its own."""
    encoder, texts, numbers = (
        SentenceEncoder(bundle, threads=1),
        sentences(SENTENCES),
        list(map(int, clients.split(","))),
    )
    encoder.encode(texts)
    found = [loop(encoder, texts)]
    for number in numbers:
        with server(Path(bundle)) as (port, process):
            found.append(load(port, process, number, int(requests) // len(numbers), texts))
    sys.stdout.write(listing([*found, loop(encoder, texts)]).markdown() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
