"""`xsent encode --engine ray`: the same vectors from many processes and machines, by Ray Data.

Ray hands out partitions; each worker holds one encoder, reads a partition, encodes it and writes its part. So sentences
and vectors never travel, parts that are done stay whatever happens, and a partition of a worker that dies goes to
another. All machines see input and output under the same path and have the same bundle, or the built-in one.
"""

import logging
import os
import platform
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import tee
from pathlib import Path
from typing import Any

import typer

from xsent import FingerprintError, SentenceEncoder, XsentError
from xsent.errors import DataError, needing
from xsent.terminal import Progress

with needing("ray"):
    import pyarrow
    import ray
    import ray.data

    from xsent.apps.partitions import Partition, find_partitions
    from xsent.apps.parts import Note, missing_parts, part_path, part_schema, prepare_folder, whole_parts, write_part

_STORE = 128 * 2**20  # bytes of memory that a Ray of our own shares between processes: no vectors pass through it


@dataclass(frozen=True)
class Job:
    """What a worker must know beside its partitions."""

    model: Path | None  # absolute; None for the built-in bundle
    layers: int | None  # that it runs
    threads: int  # of a worker
    folder: Path  # of the output
    note: Note  # of each part, fingerprint first
    schema: "pyarrow.Schema"  # of each part
    options: dict[str, Any]  # of `SentenceEncoder.encode_iter`


class PartWriter:
    """What a worker is: one encoder, and partitions that come one at a time."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Encode a partition; what comes back counts its rows, or says what went wrong: Ray would bury an error."""
        partition, began, worked = Partition(**row), time.time(), time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                empty, error = self._write(partition), ""
            except (XsentError, ValueError, OSError) as problem:
                empty, error = 0, str(problem)
        said = "\n".join(str(warning.message) for warning in caught)
        name = part_path(self._job.folder, partition).name
        result = {"part": name, "rows": partition.rows, "empty": empty, "warnings": said, "error": error}
        return {**result, "began": began, "ended": time.time(), "worked": time.process_time() - worked}

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        encoder = SentenceEncoder(self._job.model, layers=self._job.layers, threads=self._job.threads)
        found, expected = encoder.fingerprint_of(self._job.options["space"]), self._job.note["fingerprint"]
        if found != expected:
            raise FingerprintError(
                f"{encoder.bundle.path} on {platform.node()} has fingerprint {found}, expected {expected}; put the "
                "same bundle there"
            )
        return encoder

    def _write(self, partition: Partition) -> int:
        """Number of rows whose vector is zero."""
        empty = 0
        sentences, texts = tee(partition.sentences())
        vectors = self._encoder.encode_iter(sentences, start=partition.line, **self._job.options)

        def pairs() -> Iterator[tuple[str, Any]]:
            nonlocal empty
            for vector, text in zip(vectors, texts, strict=False):  # see `xsent encode`: vectors come to their end
                empty += not vector.any()
                yield text, vector

        write_part(self._job.folder, partition, self._job.note, pairs(), self._job.schema)
        return empty


def encode_parts(
    file: str,
    output: Path | None,
    *,
    model: Path | None,
    layers: int | None,
    threads: int | None,
    resume: bool,
    force: bool,
    workers: int | None,
    column: str | None,
    address: str | None,
    **options: Any,  # noqa: ANN401  of `SentenceEncoder.encode_iter`
) -> None:
    """Encode a text or Parquet file, or a folder of them, into a folder of Parquet parts.

    Errors are those of `xsent encode`.
    """
    if output is None or file == "-":
        raise ValueError("--engine ray needs a file or a folder to read and --output, the folder of its parts")
    folder = output.absolute()
    if Path(file).resolve() in [folder.resolve(), *folder.resolve().parents]:
        raise ValueError(f"{output}: lies in the input {file}; name a folder of its own for the output")
    encoder = SentenceEncoder(model, layers=layers, threads=1)
    example = encoder.encode([], **options)  # also sees whether the options fit
    note = {
        "fingerprint": encoder.fingerprint_of(options["space"]),
        "dim": options["truncate_dim"] or encoder.dim,
        "precision": options["precision"],
        "normalized": options["normalize_embeddings"],
        "on_long": options["on_long"],
    }
    partitions = find_partitions(Path(file), column or "text")
    prepare_folder(folder, resume=resume, force=force)
    missing = missing_parts(folder, partitions, note)
    if not missing:
        typer.echo("All parts are there; nothing was left to do.", err=True)
        return
    if done := len(partitions) - len(missing):
        typer.echo(f"Going on after {done:,} of {len(partitions):,} parts; warnings count the others only.", err=True)
    path, schema = None if model is None else model.absolute(), part_schema(example)
    job = Job(path, layers, threads or 1, folder, note, schema, options)
    _run(job, missing, workers, address)


def _run(job: Job, partitions: Sequence[Partition], workers: int | None, address: str | None) -> None:
    total = sum(partition.rows for partition in partitions)
    results = []
    try:
        with _cluster(workers, job.threads, address), Progress("sentences", total) as progress:
            for result in _results(job, partitions, workers):
                if result["error"]:
                    raise DataError(result["error"])
                results.append(result)
                progress.advance(result["rows"])
    except BaseException:
        if whole := len(whole_parts(job.folder)):
            typer.echo(f"{job.folder}: {whole:,} parts are whole and kept; --resume goes on.", err=True)
        raise
    took = max(result["ended"] for result in results) - min(result["began"] for result in results)
    seconds = max(took, 0.001)  # clocks jump, and those of two machines differ
    worked = sum(result["worked"] for result in results)
    speed = f"{total:,} lines in {seconds:,.1f} s, {total / seconds:,.0f} a second"
    typer.echo(f"{speed}; {worked:,.1f} s of processors; without Ray's start.", err=True)
    _warn(results, total)


def _warn(results: Sequence[dict[str, Any]], total: int) -> None:
    """Pass on what workers had to say, once of a kind."""
    said = defaultdict(list)
    for result in results:
        for message in result["warnings"].splitlines():
            said[message.partition(" sentences ")[2]].append(f"{result['part']}: {message}")
    for messages in said.values():
        others = f"; as in {len(messages) - 1:,} other parts" if messages[1:] else ""
        warnings.warn(f"{messages[0]}{others}", stacklevel=1)
    if empty := sum(result["empty"] for result in results):
        warnings.warn(f"{empty:,} of {total:,} lines are empty; their vectors are zero", stacklevel=1)


@contextmanager
def _cluster(workers: int | None, threads: int, address: str | None) -> Iterator[None]:
    """The cluster of that address, else the one this process is connected to, else one of this machine alone."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report its use to its maker
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    quiet = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
    if address or os.environ.get("RAY_ADDRESS"):
        ray.init(address, **quiet)
    else:
        cpus = workers * threads if workers else None
        ray.init("local", num_cpus=cpus, object_store_memory=_STORE, **quiet)
    try:
        yield
    finally:
        ray.shutdown()


def _results(job: Job, partitions: Sequence[Partition], workers: int | None) -> Iterator[dict[str, Any]]:
    """What `PartWriter` returns of each partition, in the order in which they are done."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # whatever went wrong, we say
    cpus = int(ray.cluster_resources()["CPU"])
    workers = workers or max(1, cpus // job.threads)
    if workers * job.threads > cpus:  # Ray would wait for more, without end
        raise ValueError(f"{workers} workers of {job.threads} threads: there are {cpus} CPUs; give fewer --workers")
    pool = ray.data.ActorPoolStrategy(size=min(workers, len(partitions)))
    rows = [asdict(partition) for partition in partitions]
    data = ray.data.from_items(rows, override_num_blocks=len(rows))
    yield from data.map(PartWriter, fn_constructor_args=(job,), compute=pool, num_cpus=job.threads).iter_rows()
