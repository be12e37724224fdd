"""What the server adds to encoding, and its memory; results: docs/serve.md."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types
import typer

from xsent.cli.terminal import one_line_errors
from xsent.cpu import time_each
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.progress import Progress
from xsent_bench.cli import numbers
from xsent_bench.processes import start_server
from xsent_bench.report import listing
from xsent_bench.results import Measurement
from xsent_bench.texts import sentences

REQUESTS = 1_000  # different ones to the server, and those after which its memory should be flat


@one_line_errors()
def serving(
    bundle: Annotated[Path, typer.Argument(help="A bundle.")], requests: int = 100_000, clients: str = "1,4"
) -> None:
    """Measure what the server adds to encoding, and its memory: a sentence a request over open connections.

    Each number of clients sends its share of the requests to a server of its own. The loop encodes the same sentences
    without a server.
    """
    encoder = SentenceEncoder(bundle, threads=1)
    texts = sentences(REQUESTS)
    encoder.encode(texts)
    counts = numbers(clients, least=1)
    found = [measure_loop(encoder, texts)]
    for count in counts:
        with start_server("--model", str(bundle)) as (address, process):
            port = int(address.rpartition(":")[2])
            found.append(measure_server(port, psutil.Process(process), count, requests // len(counts), texts))
    typer.echo(listing([*found, measure_loop(encoder, texts)]).markdown())


def measure_server(port: int, process: psutil.Process, clients: int, requests: int, texts: list[str]) -> Measurement:
    """Requests of several clients at once; the server's memory before, after the first thousand, and at the end."""
    bodies = cycle([json.dumps({"input": text, "encoding_format": "base64"}).encode() for text in texts])

    def send(number: int) -> list[float]:
        times = []
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            for _ in range(number):
                began = perf_counter()
                connection.request("POST", "/v1/embeddings", next(bodies), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
                times.append(perf_counter() - began)
                progress.advance()
                if answer.status != 200:
                    raise DataError(f"the server answered {answer.status}: {content[:200]!r}")
        return times

    mib = {"mib_0": process.memory_info().rss / 2**20}
    times = list[float]()
    began = perf_counter()
    worked = sum(process.cpu_times()[:2])
    with ThreadPoolExecutor(clients) as pool, Progress("requests", requests) as progress:
        for number in (min(REQUESTS, requests), max(0, requests - REQUESTS)):
            for seconds in pool.map(send, [number // clients] * clients):
                times += seconds
            mib[f"mib_{len(times)}"] = process.memory_info().rss / 2**20
    rate = len(times) / (perf_counter() - began)
    worked = sum(process.cpu_times()[:2]) - worked
    return Measurement("serving", {"how": f"{clients} clients"}, {**request_figures(times, rate, worked), **mib})


def measure_loop(encoder: SentenceEncoder, texts: list[str]) -> Measurement:
    """The same sentences one by one, without a server."""
    began = process_time()
    times = time_each(encoder.encode, texts, least=len(texts))
    figures = request_figures(times, len(times) / sum(times), process_time() - began)
    return Measurement("serving", {"how": "a loop over encode"}, figures)


def request_figures(times: list[float], rate: float, worked: float) -> dict[str, float]:
    """Sentences a second, percentiles, and CPU milliseconds, which other programs hardly change."""
    percentiles = {f"p{share}_ms": 1000 * float(np.percentile(times, share)) for share in (50, 95, 99)}
    return {"sentences_per_second": rate, **percentiles, "cpu_ms": 1000 * worked / len(times)}


if __name__ == "__main__":
    typer.run(serving)
