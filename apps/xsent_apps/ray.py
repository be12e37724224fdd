"""`xsent encode --engine ray`: the same vectors from many processes and machines, as a folder of Parquet files.

This process reads the texts. Ray's workers encode a part of them at a time into a file, which appears once it is
complete.
"""

import hashlib
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import typer
from numpy.typing import NDArray

from xsent import SentenceEncoder
from xsent.errors import DataError, require_extra
from xsent.files.atomic import atomic_file, file_exists_error, read_json, sweep, to_json
from xsent.files.tables import TextSource
from xsent.files.vectors import check_same_job
from xsent.progress import Progress

with require_extra("ray"):
    import pyarrow
    import pyarrow.parquet
    import ray
    from ray.util import ActorPool

ROWS = 16_384  # of a part: less than a minute of encoding
ROW_GROUP = 4096  # rows of a part whose vectors are in memory at once
STORE_BYTES = 128 * 2**20  # memory that processes of a local Ray share: the texts of the parts at work lie in it
RESTARTS = 10  # of a worker that dies, by the system for want of memory or with its machine
JOB = "_job.json"  # in the folder of part files: what a resumed job must have in common with it
PARTS = "part-*.parquet"


@dataclass(frozen=True)
class Part:
    """Consecutive rows of one input file."""

    path: Path  # of the file of their vectors
    row: int  # number of the first, counted over all input files
    line: int  # rows of the input file before the first
    sentences: list[str]


@dataclass(frozen=True)
class Report:
    """What a worker says of a part."""

    part: str  # name of its file
    rows: int
    empty: int  # vectors that are zero
    warnings: list[str]
    began: float
    ended: float
    cpu_time: float


@dataclass
class Worker:
    """Encodes parts in a process of Ray's, with one encoder."""

    opened_as: tuple[Any, ...]  # the function that opens the encoder again, and its arguments
    schema: "pyarrow.Schema"
    settings: Mapping[str, Any]

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        open_again, arguments = self.opened_as  # not by the constructor, whose errors Ray would bury
        encoder: SentenceEncoder = open_again(*arguments)
        return encoder

    def encode(self, part: Part) -> Report:
        """Write the file of a part."""
        began, cpu_time = time.time(), time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pairs = self._encoder.encode_items(part.sentences, start=part.line, **self.settings)
            empty = _write_part(part, pairs, self.schema)
        messages = [str(warning.message) for warning in caught]
        times = (began, time.time(), time.process_time() - cpu_time)
        return Report(part.path.name, len(part.sentences), empty, messages, *times)


def find_files(path: Path) -> list[Path]:
    """A file, or all files of a folder in the order of their names, except names that begin with . or _."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    found = [file for file in files if not any(name[0] in "._" for name in file.relative_to(path).parts)]
    if not found:
        raise DataError(f"{path}: no file there; expected a file of texts, or a folder of them")
    return found


def find_parts(files: Iterable[Path], column: str | None, folder: Path) -> Iterator[Part]:
    """Divide the texts of each file. Raises DataError if all are empty, or as `TextSource` does."""
    number = row = 0
    for file in files:
        source = TextSource(str(file), column)
        texts = iter(source)
        line = 0
        while sentences := list(islice(texts, ROWS)):
            yield Part(folder / f"part-{number:06}.parquet", row, line, sentences)
            number += 1
            row += len(sentences)
            line += len(sentences)
    if not number:
        raise source.empty()


def start_job(folder: Path, files: Sequence[Path], note: Mapping[str, object], *, resume: bool, force: bool) -> None:
    """Prepare the folder of part files.

    Raises FileExistsError if there are part files and the options do not say what to do with them. Raises
    FingerprintError or DataError if the job to resume is another one.
    """
    parts = list(folder.glob(PARTS))
    if parts and not (resume or force):
        raise file_exists_error(folder, "has parts; --resume makes the others, --force starts over")
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)  # half-written files of killed workers
    states = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    digest = hashlib.sha256(repr(states).encode()).hexdigest()[:8]
    job = {**note, "input": f"{len(files)} files of {sum(size for _, size, _ in states):,} bytes ({digest})"}
    if parts and not force:
        check_same_job(folder, read_json(folder / JOB, "--force starts over"), job)
        return
    for path in parts:
        path.unlink(missing_ok=True)
    with atomic_file(folder / JOB, private=True) as file:
        file.write(to_json(job))


def is_complete(part: Part) -> bool:
    """Whether the file of a part is there and can be read."""
    try:
        rows: int = pyarrow.parquet.read_metadata(part.path).num_rows
    except Exception:  # a parser of a damaged file raises anything
        return False
    return rows == len(part.sentences)


def _write_part(part: Part, pairs: Iterator[tuple[str, NDArray[Any]]], schema: "pyarrow.Schema") -> int:
    """Write sentences with their vectors into the file of a part; return how many vectors are zero."""
    row = part.row
    empty = 0
    with (
        atomic_file(part.path, private=True) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        while group := list(islice(pairs, ROW_GROUP)):
            sentences, vectors = zip(*group, strict=True)
            rows = range(row, row + len(group))
            writer.write_batch(pyarrow.record_batch([rows, sentences, vectors], schema=schema))
            row += len(group)
            empty += sum(not vector.any() for vector in vectors)
    return empty


def encode_parts(
    file: str,
    output: Path | None,
    encoder: SentenceEncoder,
    settings: Mapping[str, Any],
    *,
    column: str | None,
    workers: int | None,
    address: str | None,
    resume: bool,
    force: bool,
) -> None:
    """Encode a file of texts, or a folder of them, into a folder of part files; see `xsent encode`.

    Every worker opens the encoder again, with as many threads; settings are those of `SentenceEncoder.encode_items`.
    """
    if output is None or file == "-":
        raise ValueError("--engine ray needs a file or a folder to read and --output, the folder of its parts")
    folder = output.absolute()
    if Path(file).resolve() in [folder.resolve(), *folder.resolve().parents]:
        raise ValueError(f"{output}: lies in the input {file}; name a folder of its own for the output")
    example = encoder.encode([], **settings)  # raises if they do not fit
    note = {
        "fingerprint": encoder.fingerprint_of(settings["space"]),
        "dim": example.shape[1],
        "precision": settings["precision"],
        "normalized": settings["normalize_embeddings"],
        "on_long": settings["on_long"],
        "clean": encoder.clean,
        "column": column,
    }
    vector = pyarrow.list_(pyarrow.from_numpy_dtype(example.dtype), example.shape[1])
    columns = {"row": pyarrow.int64(), "sentence": pyarrow.string(), "vector": vector}
    schema = pyarrow.schema(columns, {"xsent": json.dumps(note)})
    files = find_files(Path(file))
    parts = find_parts(files, column, folder)
    first = next(parts)  # raises before a folder is made if there is nothing to encode
    start_job(folder, files, note, resume=resume, force=force)
    missing = (part for part in chain([first], parts) if not is_complete(part))
    if (first_missing := next(missing, None)) is None:
        typer.echo("All parts are there; nothing was left to do.", err=True)
        return
    if done := len(list(folder.glob(PARTS))):
        typer.echo(f"Resuming after {done:,} parts; warnings count the others only.", err=True)
    try:
        with _pool(workers, encoder.threads, address, (encoder.__reduce__(), schema, settings)) as pool:
            reports = _run(pool, chain([first_missing], missing))
    except BaseException:
        if complete := len(list(folder.glob(PARTS))):
            typer.echo(f"{folder}: {complete:,} parts are complete and kept; --resume makes the others.", err=True)
        raise
    _report(reports)


@contextmanager
def _pool(workers: int | None, threads: int, address: str | None, arguments: tuple[Any, ...]) -> Iterator[ActorPool]:
    """Workers of the cluster at the address or in RAY_ADDRESS; without either, of one on this machine alone.

    A connection that this process has already is used as it is.
    """
    ours = not ray.is_initialized()
    if ours:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report its use to its maker
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        local = {"num_cpus": workers and workers * threads, "object_store_memory": STORE_BYTES}
        there = address or os.environ.get("RAY_ADDRESS")
        settings = {"address": address} if there else {"address": "local", **local}
        ray.init(**settings, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:
        cpus = int(ray.cluster_resources()["CPU"])
        workers = workers or max(1, cpus // threads)
        if workers * threads > cpus:  # Ray would wait for more, without end
            raise ValueError(f"{workers} workers of {threads} threads: there are {cpus} CPUs; give fewer --workers")
        actor = ray.remote(num_cpus=threads, max_restarts=RESTARTS, max_task_retries=RESTARTS)(Worker)
        yield ActorPool([actor.remote(*arguments) for _ in range(workers)])
    finally:
        if ours:
            ray.shutdown()


def _run(pool: ActorPool, parts: Iterable[Part]) -> list[Report]:
    """Encode all parts; raises the first error of a worker."""
    reports: list[Report] = []
    with Progress("sentences") as progress:

        def wait() -> None:
            try:
                reports.append(pool.get_next_unordered())
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            progress.advance(reports[-1].rows)

        for part in parts:
            if not pool.has_free():
                wait()
            pool.submit(lambda worker, part: worker.encode.remote(part), part)
        while pool.has_next():
            wait()
    return reports


def _report(reports: Sequence[Report]) -> None:
    """Print the speed, and the warnings of workers, one of a kind."""
    total = sum(report.rows for report in reports)
    cpu_time = sum(report.cpu_time for report in reports)
    seconds = max(report.ended for report in reports) - min(report.began for report in reports)
    seconds = max(seconds, 0.001)  # clocks jump, and those of two machines differ
    speed = f"{total:,} lines in {seconds:,.1f} s, {total / seconds:,.0f} a second"
    typer.echo(f"{speed}; {cpu_time:,.1f} s of CPU time; without the start of Ray.", err=True)
    kinds = defaultdict(list)
    for report in reports:
        for message in report.warnings:
            kinds[message.partition(" sentences ")[2]].append(f"{report.part}: {message}")
    for messages in kinds.values():
        others = f"; as in {len(messages) - 1:,} other parts" if messages[1:] else ""
        warnings.warn(f"{messages[0]}{others}", stacklevel=1)
    if empty := sum(report.empty for report in reports):
        warnings.warn(f"{empty:,} of {total:,} lines are empty; their vectors are zero", stacklevel=1)
