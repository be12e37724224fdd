"""What the server adds to encoding, and whether its memory stays flat.

A server in a process of its own gets one sentence a request, over connections that stay open; before and after it, a
plain loop encodes the same sentences in this process.

python -m xsent_bench.experiments.serving BUNDLE [REQUESTS] [CLIENTS,...]
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types

from xsent.cli.terminal import Progress, one_line_errors
from xsent.cpu import time_each
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent_bench.results import Measurement
from xsent_bench.tables import listing
from xsent_bench.texts import sentences

SENTENCES, FIRST = 1_000, 1_000  # different ones; requests after which the memory should be flat
PATH, HEADERS = "/v1/embeddings", {"Content-Type": "application/json"}
COMMAND = [sys.executable, "-P", "-c", "from xsent.cli.terminal import main; main()", "serve", "--port", "0", "--model"]


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


def ask(connection: HTTPConnection, bodies: Iterator[bytes], done: Callable[[], None]) -> list[float]:
    """Seconds of each of these requests, one after the other; other clients take from the same."""
    times = []
    for body in bodies:
        began = perf_counter()
        connection.request("POST", PATH, body, HEADERS)
        answer = connection.getresponse()
        content = answer.read()
        times.append(perf_counter() - began)
        done()
        if answer.status != 200:
            raise DataError(f"answered {answer.status}: {content[:200]!r}")
    return times


def load(port: int, process: psutil.Process, clients: int, requests: int, texts: Sequence[str]) -> Measurement:
    """Requests of so many clients at once, and the server's memory before, after the first thousand and at the end."""
    bodies = cycle([json.dumps({"input": text, "encoding_format": "base64"}).encode() for text in texts])
    mib, times, began, worked = dict[str, float](), list[float](), perf_counter(), sum(process.cpu_times()[:2])
    with ExitStack() as stack, ThreadPoolExecutor(clients) as pool, Progress("requests", requests) as progress:
        open_ = [stack.enter_context(closing(HTTPConnection("127.0.0.1", port))) for _ in range(clients)]
        for size in (0, FIRST, requests - FIRST):
            shared = islice(bodies, size)
            for part in pool.map(ask, open_, [shared] * clients, [progress.advance] * clients):
                times += part
            mib[f"mib_{len(times)}"] = process.memory_info().rss / 2**20
    rate, worked = requests / (perf_counter() - began), sum(process.cpu_times()[:2]) - worked
    return Measurement("serving", {"how": f"{clients} clients"}, {**figures(times, rate, worked), **mib})


def loop(encoder: SentenceEncoder, texts: Sequence[str]) -> Measurement:
    """The same sentences one by one, without a server."""
    began = process_time()
    times = time_each(encoder.encode, texts, least=len(texts))
    found = figures(times, len(times) / sum(times), process_time() - began)
    return Measurement("serving", {"how": "a loop over encode"}, found)


def figures(times: Sequence[float], rate: float, worked: float) -> dict[str, float]:
    """How many a second, percentiles of seconds, and the processor's share, which other programs hardly change."""
    p50, p95, p99 = (1000 * np.percentile(times, (50, 95, 99))).tolist()
    return {
        "sentences_per_second": rate,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
        "processor_ms": 1000 * worked / len(times),
    }


@one_line_errors()
def main(bundle: str, requests: str = "100000", clients: str = "1,4") -> None:
    """Print a table; each number of clients gets its share of the requests, from a server of its own."""
    encoder, texts, numbers = SentenceEncoder(bundle, threads=1), sentences(SENTENCES), clients.split(",")
    encoder.encode(texts)
    found = [loop(encoder, texts)]
    for number in map(int, numbers):
        with server(Path(bundle)) as (port, process):
            found.append(load(port, process, number, int(requests) // len(numbers), texts))
    sys.stdout.write(listing([*found, loop(encoder, texts)]).markdown() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
