"""How long the nearest of many vectors take where they can lie: in memory, on the disk, in a graph, in a database.

    python -m xsent_bench.experiments.stores --rows 10000,100000

The vectors are made up, of length 1, in groups as sentences are. Times are of the processor, all cores together, so
that other work beside does not count; a query is one sentence and its ten nearest. How many of them a graph finds
depends on what vectors say: `xsent.search.graph` states it for real ones.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from xsent import nearest
from xsent.cli.options import split_names
from xsent.cli.terminal import format_table, one_line_errors
from xsent.errors import check_choice, require_extra
from xsent_bench.cli import numbers

DIM = 384
QUERIES = 10  # timed one by one; the median counts
K = 10

Find = Callable[[NDArray[np.float32]], object]


def made_up(rows: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors [rows, DIM] of length 1 around a thousand centres."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((1000, DIM), np.float32)[np.arange(rows) % 1000]
    for start in range(0, rows, 10_000):
        part = vectors[start : start + 10_000]
        part += 0.7 * rng.standard_normal(part.shape, np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def in_memory(vectors: NDArray[Any], folder: Path) -> Find:
    """An array."""
    return lambda query: nearest(query, vectors, K)


def on_disk(vectors: NDArray[Any], folder: Path) -> Find:
    """A memory map of what `xsent encode` writes, and an index without a graph reads."""
    file = folder / "vectors.npy"
    np.save(file, vectors)
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    return lambda query: nearest(query, mapped, K)


def in_graph(vectors: NDArray[Any], folder: Path) -> Find:
    """What `xsent index --graph` makes: int8, mapped into memory."""
    from usearch.index import Index

    graph = Index(ndim=DIM, metric="cos", dtype="i8", expansion_search=1024)
    graph.add(np.arange(len(vectors)), vectors, threads=1)
    graph.save(folder / "graph")
    graph.view(folder / "graph")
    return lambda query: graph.search(query, K, threads=1)


def in_database(vectors: NDArray[Any], folder: Path, *, index: bool = False) -> Find:
    """A table of LanceDB, all of which is compared."""
    import lancedb
    import pyarrow
    from lancedb.index import HnswSq

    columns = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), DIM)
    table = lancedb.connect(folder / "db").create_table("vectors", pyarrow.table({"vector": columns}))
    if index:
        table.create_index("vector", config=HnswSq(distance_type="cosine"))
    return lambda query: table.search(query).distance_type("cosine").limit(K).to_arrow()


STORES: dict[str, Callable[[NDArray[Any], Path], Find]] = {
    "memory": in_memory,
    "disk": on_disk,
    "graph": in_graph,
    "database": in_database,
    "indexed": partial(in_database, index=True),
}
# The extra of a store, and its package, which is imported before the clock runs.
NEEDED = {
    "graph": ("index", "usearch.index"),
    "database": ("database", "lancedb.index"),
    "indexed": ("database", "lancedb.index"),
}


def measure(vectors: NDArray[Any], store: str) -> dict[str, object]:
    """MiB that a store takes, processor seconds to build it, and processor milliseconds a query, in the median."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        find = STORES[store](vectors, Path(folder))
        built = time.process_time() - began
        times = []
        for query in made_up(QUERIES, seed=1):
            began = time.process_time()
            find(query)
            times.append(1000 * (time.process_time() - began))
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    mib = (size or vectors.nbytes) / 2**20
    shape: dict[str, object] = {"rows": len(vectors), "numbers": str(vectors.dtype), "store": store}
    return {**shape, "MiB": round(mib), "seconds to build": built, "ms a query": median(times)}


@one_line_errors()
def main(
    rows: Annotated[str, typer.Option(help="Numbers of vectors, commas between.")] = "10000,100000",
    stores: Annotated[str, typer.Option(help="Where they lie, commas between.")] = ",".join(STORES),
    precision: Annotated[Literal["float16", "float32"], typer.Option(help="Of the vectors.")] = "float16",
) -> None:
    """Measure the nearest ten of many vectors, wherever they lie."""
    names, measured = split_names(stores), []
    for name in names:
        check_choice("--stores", name, list(STORES))
        if name in NEEDED:
            extra, package = NEEDED[name]
            with require_extra(extra):
                import_module(package)
    for count in numbers(rows, least=1):
        vectors = made_up(count).astype(precision, copy=False)
        measured += [measure(vectors, store) for store in names]
    typer.echo(format_table(measured))


if __name__ == "__main__":
    typer.run(main)
