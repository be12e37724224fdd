"""The ten nearest of made-up vectors in memory, on the disk and in a database; results: docs/scaling.md."""

import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from xsent import nearest
from xsent.cli.options import split_names
from xsent.cli.terminal import format_table, one_line_errors
from xsent.errors import check_choice, require_extra
from xsent_bench.cli import numbers

DIM = 384  # of the made-up vectors
QUERIES, NEAREST = 10, 10  # queries, timed one by one, and the neighbours of each

Find = Callable[[NDArray[np.float32]], object]


def in_memory(vectors: NDArray[Any], folder: Path) -> Find:
    """An array."""
    return lambda query: nearest(query, vectors, NEAREST)


def on_disk(vectors: NDArray[Any], folder: Path) -> Find:
    """A memory map, as of the output of `xsent encode` or in an index."""
    np.save(folder / "vectors.npy", vectors)
    mapped = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    return lambda query: nearest(query, mapped, NEAREST)


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
    "database": in_database,
    "indexed": partial(in_database, index=True),
}
NEEDED = {  # the extra of a store and its module, which is imported before the clock starts
    "database": ("database", "lancedb.index"),
    "indexed": ("database", "lancedb.index"),
}


@one_line_errors()
def stores(
    rows: Annotated[str, typer.Option(help="Numbers of vectors, commas between.")] = "10000,100000",
    stores: Annotated[str, typer.Option(help="Where they lie, commas between.")] = ",".join(STORES),
    precision: Annotated[Literal["float16", "float32"], typer.Option(help="Of the vectors.")] = "float16",
) -> None:
    """Measure the ten nearest of made-up vectors in memory, on the disk and in a database.

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


if __name__ == "__main__":
    typer.run(stores)
