"""Experiments that are run by hand; their results stand in docs.

python -m xsent_bench.experiments stores | serving | sharing | stream | noise | notes | zero-shot
"""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Annotated, Any, Literal

import numpy as np
import psutil  # type: ignore[import-untyped]  # it has no types
import typer
from numpy.typing import NDArray

from xsent import nearest
from xsent.bundle import TABLE, Bundle
from xsent.cli.options import BundleOption, split_names
from xsent.cli.terminal import Progress, format_table, one_line_errors, print_row
from xsent.cpu import time_each
from xsent.encoder import SentenceEncoder, UnknownTextWarning
from xsent.errors import DataError, check_choice, require_extra
from xsent_bench.cli import numbers
from xsent_bench.noise import measure_noise
from xsent_bench.processes import resident
from xsent_bench.questions import ask_folder, found_table, read_questions
from xsent_bench.report import listing
from xsent_bench.results import Measurement
from xsent_bench.texts import sentences
from xsent_bench.zero_shot import zero_shot_rows

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

DIM = 384  # of the made-up vectors
QUERIES, NEAREST = 10, 10  # queries, timed one by one, and the neighbours of each
REQUESTS = 1_000  # different ones to the server, and those after which its memory should be flat
SERVER = [sys.executable, "-P", "-c", "from xsent.cli.terminal import main; main()", "serve", "--port", "0", "--model"]
# A process of `sharing`: it encodes, prints a digest of the vectors, and waits until its standard input is closed.
SHARER = """
import sys
from hashlib import sha256
from xsent.encoder import SentenceEncoder, UnknownTextWarning
from xsent_bench.texts import sentences
encoder = SentenceEncoder(sys.argv[1], backend=sys.argv[2], threads=1)
print(sha256(encoder.encode(sentences(200)).tobytes()).hexdigest(), flush=True)
sys.stdin.read()
"""
STRETCHES = 10  # of a stream
BEGINNINGS = 1_000  # of its sentences; as their lengths repeat, every stretch has the same number of each
STEP, NUMBERS = 7_919, 10**9  # a prime, and the numbers that it runs through, so that no sentence comes twice

Find = Callable[[NDArray[np.float32]], object]
BundleArgument = Annotated[Path, typer.Argument(help="A bundle.")]


def in_memory(vectors: NDArray[Any], folder: Path) -> Find:
    """An array."""
    return lambda query: nearest(query, vectors, NEAREST)


def on_disk(vectors: NDArray[Any], folder: Path) -> Find:
    """A memory map, as of the output of `xsent encode` or in an index without a graph."""
    np.save(folder / "vectors.npy", vectors)
    mapped = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    return lambda query: nearest(query, mapped, NEAREST)


def in_graph(vectors: NDArray[Any], folder: Path) -> Find:
    """The graph of `xsent index --graph`: int8, mapped into memory."""
    from usearch.index import Index

    graph = Index(ndim=DIM, metric="cos", dtype="i8", expansion_search=1024)
    graph.add(np.arange(len(vectors)), vectors, threads=1)
    graph.save(folder / "graph")
    graph.view(folder / "graph")
    return lambda query: graph.search(query, NEAREST, threads=1)


def in_database(vectors: NDArray[Any], folder: Path, *, index: bool = False) -> Find:
    """A table of LanceDB, which is searched from end to end unless it has an index."""
    import lancedb
    import pyarrow
    from lancedb.index import HnswSq

    columns = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), DIM)
    table = lancedb.connect(folder / "db").create_table("vectors", pyarrow.table({"vector": columns}))
    if index:
        table.create_index("vector", config=HnswSq(distance_type="cosine"))
    return lambda query: table.search(query).distance_type("cosine").limit(NEAREST).to_arrow()


STORES: dict[str, Callable[[NDArray[Any], Path], Find]] = {
    "memory": in_memory,
    "disk": on_disk,
    "graph": in_graph,
    "database": in_database,
    "indexed": partial(in_database, index=True),
}
NEEDED = {  # the extra of a store and its module, which is imported before the clock starts
    "graph": ("index", "usearch.index"),
    "database": ("database", "lancedb.index"),
    "indexed": ("database", "lancedb.index"),
}


@app.command()
@one_line_errors()
def stores(
    rows: Annotated[str, typer.Option(help="Numbers of vectors, commas between.")] = "10000,100000",
    stores: Annotated[str, typer.Option(help="Where they lie, commas between.")] = ",".join(STORES),
    precision: Annotated[Literal["float16", "float32"], typer.Option(help="Of the vectors.")] = "float16",
) -> None:
    """Measure the ten nearest of made-up vectors in memory, on the disk, in a graph and in a database.

    Times are CPU seconds, all cores together, so that other programs do not count.
    """
    names = split_names(stores)
    for name in names:
        check_choice("--stores", name, list(STORES))
        if name in NEEDED:
            extra, module = NEEDED[name]
            with require_extra(extra):
                import_module(module)
    found = []
    for count in numbers(rows, least=1):
        vectors = made_up_vectors(count).astype(precision, copy=False)
        found += [measure_store(vectors, name) for name in names]
    typer.echo(format_table(found))


def made_up_vectors(rows: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors [rows, DIM] of length 1 around a thousand centres, in groups as sentences are."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((1000, DIM), np.float32)[np.arange(rows) % 1000]
    for block in np.array_split(vectors, max(1, rows // 10_000)):
        block += 0.7 * rng.standard_normal(block.shape, np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def measure_store(vectors: NDArray[Any], store: str) -> dict[str, object]:
    """The MiB of a store, CPU seconds to build it, and CPU milliseconds a query, the median."""
    with tempfile.TemporaryDirectory() as folder:
        began = process_time()
        find = STORES[store](vectors, Path(folder))
        built = process_time() - began
        times = []
        for query in made_up_vectors(QUERIES, seed=1):
            began = process_time()
            find(query)
            times.append(1000 * (process_time() - began))
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) or vectors.nbytes
    shape: dict[str, object] = {"rows": len(vectors), "numbers": str(vectors.dtype), "store": store}
    return {**shape, "MiB": round(size / 2**20), "seconds to build": built, "ms a query": median(times)}


@app.command()
@one_line_errors()
def serving(bundle: BundleArgument, requests: int = 100_000, clients: str = "1,4") -> None:
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
        with start_server(bundle) as (port, process):
            found.append(measure_server(port, process, count, requests // len(counts), texts))
    typer.echo(listing([*found, measure_loop(encoder, texts)]).markdown())


@contextmanager
def start_server(bundle: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The port and the process of a server, which ends with the block."""
    with subprocess.Popen([*SERVER, str(bundle)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            address, stops, _ = said.partition(";")
            if not stops:
                raise DataError(f"the server said {said.strip()!r}")
            yield int(address.rpartition(":")[2]), psutil.Process(process.pid)
        finally:
            process.terminate()


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


@app.command()
@one_line_errors()
def sharing(bundle: BundleArgument, processes: int = 8, backends: str = "onnx,numpy") -> None:
    """Measure what processes with the same open bundle hold alone, and what they share."""
    path = Bundle.open(bundle).path  # fails here, not in each process
    found = [measure_sharing(path, backend, processes) for backend in split_names(backends)]
    typer.echo(listing(found).markdown())


def measure_sharing(bundle: Path, backend: str, processes: int) -> Measurement:
    """The most MiB that one process holds, and those of all together, with each shared page counted once.

    Raises DataError if the processes give different vectors.
    """
    with ExitStack() as stack:
        command = [sys.executable, "-c", SHARER, str(bundle), backend]
        start = partial(subprocess.Popen[bytes], command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        children = [stack.enter_context(start()) for _ in range(processes)]
        digests = {child.stdout.readline() for child in children if child.stdout}  # after that all have encoded
        if not all(digests):
            raise DataError(f"{bundle}: a process ended before it had encoded ({backend})")
        held = [holdings(psutil.Process(child.pid), (bundle / TABLE).resolve()) for child in children]
    if len(digests) > 1:
        raise DataError(f"{bundle}: the processes gave the same sentences different vectors ({backend})")
    most = {name: max(one[name] for one in held) for name in ("private", "shared", "table", "table_private")}
    together = {"of_all": sum(one["share"] for one in held), "table_of_all": sum(one["table_share"] for one in held)}
    figures = {f"{name}_mib": count / 2**20 for name, count in {**most, **together}.items()}
    return Measurement("sharing", {"backend": backend, "processes": processes}, figures)


def holdings(process: psutil.Process, table: Path) -> dict[str, int]:
    """The bytes of all memory of a process, and of what it has mapped of the table."""
    whole = process.memory_full_info()
    maps = [mapped for mapped in process.memory_maps() if mapped.path == str(table)]
    return {
        "private": whole.uss,
        "shared": whole.rss - whole.uss,
        "share": whole.pss,
        "table": sum(mapped.rss for mapped in maps),
        "table_share": sum(mapped.pss for mapped in maps),
        "table_private": sum(mapped.private_clean + mapped.private_dirty for mapped in maps),
    }


@app.command()
@one_line_errors()
def stream(bundle: BundleArgument, number: int = 10_000_000) -> None:
    """Measure whether speed, memory and open files change over a stream of different sentences."""
    encoder = SentenceEncoder(bundle)
    encoder.encode(sentences(BEGINNINGS))  # warms up: fills caches and touches the table
    size = number // STRETCHES
    found = list[Measurement]()
    with Progress("sentences", number) as progress:
        vectors = encoder.encode_iter(progress.count(different_sentences(size * STRETCHES)))
        for stretch in range(1, STRETCHES + 1):
            began, worked = perf_counter(), process_time()
            for _ in islice(vectors, size):
                pass
            seconds, worked = perf_counter() - began, process_time() - worked
            axes = {"after": f"{size * stretch:,}", "open files": psutil.Process().num_fds()}
            rates = {"sentences_per_second": size / seconds, "cpu_ms": 1000 * worked / size}
            found.append(Measurement("stream", axes, {**rates, "held_mib": resident()}))
    memory = [one.figures["held_mib"] for one in found[1:]]
    slope = float(np.polyfit(range(len(memory)), memory, 1)[0]) / size * 1e6
    last = found[-1].figures["cpu_ms"] / found[0].figures["cpu_ms"]
    typer.echo(
        f"{listing(found).markdown()}\n\nMemory: {slope:+.3f} MiB a million sentences after the first tenth. "
        f"CPU time of a sentence: the last tenth takes {last:.3f} times the first."
    )


def different_sentences(number: int) -> Iterator[str]:
    """Different sentences, with the same lengths in every stretch."""
    for i, text in enumerate(islice(cycle(sentences(BEGINNINGS)), number)):
        yield f"{text} {i * STEP % NUMBERS:09d}"


@app.command()
@one_line_errors()
def noise(
    folder: Annotated[Path, typer.Argument(help="A folder with en-XX.tsv, such as Tatoeba's: English, translation.")],
    bundle: Annotated[Path | None, typer.Option(help="A bundle; default: the built-in one.")] = None,
    languages: Annotated[str, typer.Option(help="Languages of the noisy texts, commas between.")] = "fr,de,pt,ru",
    lines: Annotated[int, typer.Option(min=2, help="Pairs of each language.")] = 200,
) -> None:
    """Measure what noise of mails, chats, logs, scans and exports costs, as it is and with --clean."""
    warnings.simplefilter("ignore", UnknownTextWarning)  # some kinds are not far from another language
    typer.echo(measure_noise(bundle, folder, split_names(languages), lines))


@app.command()
@one_line_errors()
def notes(
    folder: Annotated[Path, typer.Argument(help="Notes, such as bench/notes/folder.")],
    questions: Annotated[Path, typer.Argument(help="Such as bench/notes/questions.tsv.")],
    model: BundleOption = None,
    missed: Annotated[bool, typer.Option("--missed", help="Print the questions whose first hit is another.")] = False,
) -> None:
    """Measure how often `xsent notes` has the answer among the first 1, 3 and 10, in per cent of the questions."""
    asked = read_questions(questions)
    places = ask_folder(folder, asked, SentenceEncoder(model))
    typer.echo(format_table(found_table(asked, places)))
    if missed:
        for question, found in zip(asked, places, strict=True):
            if found[-1] != 1:
                print_row(question.kind, question.language, *map(str, found), question.text, question.file)


@app.command("zero-shot")
@one_line_errors()
def zero_shot(
    folder: Annotated[Path, typer.Argument(help="SIB-200: LANG/train.tsv and LANG/test.tsv.")],
    model: BundleOption = None,
) -> None:
    """Measure labels by description beside a trained head, by the number of English examples a label."""
    typer.echo(format_table(zero_shot_rows(SentenceEncoder(model), folder)))


if __name__ == "__main__":
    app()
