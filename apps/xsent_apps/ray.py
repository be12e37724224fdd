"""`xsent encode --engine ray`: the same vectors from many processes and machines, as a folder of Parquet files.

The input is divided into partitions. Ray's workers encode each of them into one part file, which appears once it is
complete.
"""

import codecs
import json
import logging
import os
import platform
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import typer
from numpy.typing import NDArray

from xsent import FingerprintError, SentenceEncoder, XsentError
from xsent.cli.terminal import Progress
from xsent.errors import DataError, require_extra
from xsent.files.atomic import as_data_error, atomic_file, file_exists_error, read_json, sweep, to_json
from xsent.files.text import can_be_divided

with require_extra("ray"):
    import pyarrow
    import pyarrow.parquet
    import ray
    import ray.data

ROWS = 16_384  # of a partition, but whole row groups of Parquet: less than a minute of encoding
ROW_GROUP = 4096  # rows of a part file that are in memory at once
STORE_BYTES = 128 * 2**20  # memory that processes of a local Ray share: no vectors pass through it
EXPECTED = "expected a text or Parquet file, or a folder of them"
JOB = "_job.json"  # in the folder of part files: what a resumed job must have in common with it
PARTS = "part-*.parquet"

Note = Mapping[str, object]  # what the metadata of part files say of the vectors


@dataclass(frozen=True)
class Partition:
    """Consecutive rows of one input file."""

    part: str  # name of its part file
    row: int  # number of the first row, counted over all files
    rows: int
    source: Path
    state: tuple[int, int]  # size of the file in bytes, and its modification time in nanoseconds
    line: int  # rows of the file before the first
    start: int  # first byte in a text file; first row group in a Parquet file
    column: str  # with the text, in a Parquet file; empty for a text file

    def sentences(self) -> Iterator[str]:
        """Yield the rows as `xsent encode` reads them, null as an empty sentence.

        Raises DataError if a row cannot be read or the file has changed.
        """
        yield from self._parquet_rows() if self.column else self._text_lines()
        if _state(self.source) != self.state:
            raise DataError(f"{self.source}: changed while it was read; run it again once the file is complete")

    def _text_lines(self) -> Iterator[str]:
        with self.source.open("rb") as file:
            file.seek(self.start)
            for number, line in enumerate(islice(file, self.rows), self.line + 1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                try:
                    yield line.decode().removesuffix("\n").removesuffix("\r")
                except UnicodeDecodeError as error:
                    raise DataError(f"{self.source}:{number}: not UTF-8; convert the file to UTF-8") from error

    def _parquet_rows(self) -> Iterator[str]:
        with _open_parquet(self.source) as file:
            groups = range(self.start, file.num_row_groups)
            batches = file.iter_batches(batch_size=1024, row_groups=groups, columns=[self.column])
            rows = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
            yield from (text or "" for text in islice(rows, self.rows))


def find_partitions(path: Path, column: str) -> list[Partition]:
    """Divide a file, or all files of a folder in the order of their names, except names that begin with . or _.

    Raises DataError if a file cannot be divided or there is nothing to encode.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; {EXPECTED}")
    sources = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    found: list[Partition] = []
    row = 0
    for source in sources:
        if any(name.startswith((".", "_")) for name in source.relative_to(path).parts):
            continue
        if source.suffix != ".parquet" and not can_be_divided(source):
            raise DataError(
                f"{source}: a file that is compressed or has no line feeds cannot be divided; unpack it and end its "
                "lines in line feeds, or leave --engine out"
            )
        state = _state(source)
        text_column = column if source.suffix == ".parquet" else ""
        line = 0
        for start, rows in _row_groups(source, column) if text_column else _line_groups(source):
            part = f"part-{len(found):06}.parquet"
            found.append(Partition(part, row, rows, source.absolute(), state, line, start, text_column))
            row += rows
            line += rows
    if not found:
        raise DataError(f"{path}: empty; {EXPECTED}")
    return found


def _line_groups(source: Path) -> Iterator[tuple[int, int]]:
    """Yield the first byte of each partition of a text file, and its number of lines."""
    start = 0
    with source.open("rb") as file:
        while lengths := [len(line) for line in islice(file, ROWS)]:
            yield start, len(lengths)
            start += sum(lengths)


def _row_groups(source: Path, column: str) -> Iterator[tuple[int, int]]:
    """Yield the first row group of each partition of a Parquet file, and its number of rows."""
    with _open_parquet(source) as file:
        schema = file.schema_arrow
        if column not in schema.names:
            raise DataError(f"{source}: no column {column!r}; name one with --column: {', '.join(schema.names)}")
        kind = schema.field(column).type
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise DataError(f"{source}: column {column!r} holds {kind}, expected text; name another with --column")
        start = 0
        rows = 0
        for group in range(file.num_row_groups):
            rows += file.metadata.row_group(group).num_rows
            if rows >= ROWS or (rows and group == file.num_row_groups - 1):
                yield start, rows
                start = group + 1
                rows = 0


@contextmanager
def _open_parquet(source: Path) -> Iterator["pyarrow.parquet.ParquetFile"]:
    with as_data_error(source, "write it again"), pyarrow.parquet.ParquetFile(source) as file:
        yield file


def _state(source: Path) -> tuple[int, int]:
    found = source.stat()
    return found.st_size, found.st_mtime_ns


def start_job(
    folder: Path, partitions: Sequence[Partition], note: Note, *, resume: bool, force: bool
) -> list[Partition]:
    """Prepare the folder of part files; return the partitions whose part file is missing or damaged.

    Raises FileExistsError if there are part files and the options do not say what to do with them. Raises
    FingerprintError or DataError if the job to resume is another one.
    """
    parts = list(folder.glob(PARTS))
    if parts and not (resume or force):
        raise file_exists_error(folder, "has parts; --resume makes the others, --force starts over")
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)  # half-written files of killed workers
    inputs = {partition.source: partition.state for partition in partitions}
    job = {**note, "parts": len(partitions), "input": [[path.name, *state] for path, state in inputs.items()]}
    if parts and not force:
        before = read_json(folder / JOB, "--force starts over")
        for key, value in job.items():  # the fingerprint first
            if before.get(key) != value:
                change = f"{key} was {before.get(key)}, is now {value}" if key in note else "the input is another"
                kind = FingerprintError if key == "fingerprint" else DataError
                raise kind(f"{folder}: of another job: {change}; give the same, or --force to start over")
        return [partition for partition in partitions if not _is_complete(folder / partition.part)]
    for path in parts:
        path.unlink(missing_ok=True)
    with atomic_file(folder / JOB) as file:
        file.write(to_json(job))
    return list(partitions)


def _is_complete(part: Path) -> bool:
    try:
        pyarrow.parquet.read_metadata(part)
    except Exception:  # a parser of a damaged file raises anything
        return False
    return True


def write_part(
    folder: Path, partition: Partition, pairs: Iterator[tuple[str, NDArray[Any]]], schema: "pyarrow.Schema"
) -> int:
    """Write sentences with their vectors into the part file of a partition; return how many vectors are zero."""
    row = partition.row
    empty = 0
    with (
        atomic_file(folder / partition.part) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        while group := list(islice(pairs, ROW_GROUP)):
            sentences, vectors = zip(*group, strict=True)
            rows = range(row, row + len(group))
            writer.write_batch(pyarrow.record_batch([rows, sentences, vectors], schema=schema))
            row += len(group)
            empty += sum(not vector.any() for vector in vectors)
    return empty


@dataclass
class Worker:
    """Encodes partitions in a process of Ray's, with one encoder."""

    model: Path | None  # absolute; None for the built-in bundle
    layers: int | None
    threads: int
    folder: Path  # of the part files
    note: Note  # of the part files
    schema: "pyarrow.Schema"  # of the part files
    options: dict[str, Any]  # of `SentenceEncoder.encode_items`
    partitions: Sequence[Partition]

    def __call__(self, row: dict[str, int]) -> dict[str, Any]:
        """Encode the partition with this `id`; return what there is to say, errors too, since Ray would bury them."""
        partition = self.partitions[row["id"]]
        empty = 0
        failure = ""
        began = time.time()
        cpu_time = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                pairs = self._encoder.encode_items(partition.sentences(), str, start=partition.line, **self.options)
                empty = write_part(self.folder, partition, pairs, self.schema)
            except (XsentError, ValueError, OSError) as error:
                failure = str(error)
        messages = "\n".join(str(warning.message) for warning in caught)
        result = {
            "part": partition.part,
            "rows": partition.rows,
            "empty": empty,
            "error": failure,
            "warnings": messages,
        }
        return {**result, "began": began, "ended": time.time(), "cpu_time": time.process_time() - cpu_time}

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        encoder = SentenceEncoder(self.model, layers=self.layers, threads=self.threads)
        found = encoder.fingerprint_of(self.options["space"])
        if found != self.note["fingerprint"]:
            where = f"{encoder.bundle.path} on {platform.node()}"
            expected = f"expected {self.note['fingerprint']}; put the same bundle there"
            raise FingerprintError(f"{where} has fingerprint {found}, {expected}")
        return encoder


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
    **options: Any,  # noqa: ANN401  of `SentenceEncoder.encode_items`
) -> None:
    """Encode a text or Parquet file, or a folder of them, into a folder of part files; see `xsent encode`."""
    if output is None or file == "-":
        raise ValueError("--engine ray needs a file or a folder to read and --output, the folder of its parts")
    folder = output.absolute()
    if Path(file).resolve() in [folder.resolve(), *folder.resolve().parents]:
        raise ValueError(f"{output}: lies in the input {file}; name a folder of its own for the output")
    encoder = SentenceEncoder(model, layers=layers, threads=1)
    example = encoder.encode([], **options)  # raises if the options do not fit
    note = {
        "fingerprint": encoder.fingerprint_of(options["space"]),
        "dim": example.shape[1],
        "precision": options["precision"],
        "normalized": options["normalize_embeddings"],
        "on_long": options["on_long"],
    }
    vector = pyarrow.list_(pyarrow.from_numpy_dtype(example.dtype), example.shape[1])
    columns = {"row": pyarrow.int64(), "sentence": pyarrow.string(), "vector": vector}
    schema = pyarrow.schema(columns, {"xsent": json.dumps(note)})
    partitions = find_partitions(Path(file), column or "text")
    missing = start_job(folder, partitions, note, resume=resume, force=force)
    if not missing:
        typer.echo("All parts are there; nothing was left to do.", err=True)
        return
    if done := len(partitions) - len(missing):
        typer.echo(f"Resuming after {done:,} of {len(partitions):,} parts; warnings count the others only.", err=True)
    path = None if model is None else model.absolute()
    worker = Worker(path, layers, threads or 1, folder, note, schema, options, missing)
    try:
        with _cluster(workers, worker.threads, address):
            results = _run(worker, workers)
    except BaseException:
        if complete := len(list(folder.glob(PARTS))):
            typer.echo(f"{folder}: {complete:,} parts are complete and kept; --resume makes the others.", err=True)
        raise
    _report(results)


@contextmanager
def _cluster(workers: int | None, threads: int, address: str | None) -> Iterator[None]:
    """Connect to the cluster at the address or in RAY_ADDRESS; without either start one on this machine alone.

    A connection that this process has already is used as it is.
    """
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
        ray.init("local", num_cpus=cpus, object_store_memory=STORE_BYTES, **quiet)
    try:
        yield
    finally:
        ray.shutdown()


def _run(worker: Worker, workers: int | None) -> list[dict[str, Any]]:
    """Encode all partitions; return what the workers have to say. Raises DataError with the first error."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # whatever goes wrong, we report
    cpus = int(ray.cluster_resources()["CPU"])
    workers = workers or max(1, cpus // worker.threads)
    if workers * worker.threads > cpus:  # Ray would wait for more, without end
        raise ValueError(f"{workers} workers of {worker.threads} threads: there are {cpus} CPUs; give fewer --workers")
    count = len(worker.partitions)
    pool = ray.data.ActorPoolStrategy(size=min(workers, count))
    settings = {"fn_constructor_kwargs": vars(worker), "compute": pool, "num_cpus": worker.threads}
    results = []
    with Progress("sentences", sum(partition.rows for partition in worker.partitions)) as progress:
        for result in ray.data.range(count, override_num_blocks=count).map(type(worker), **settings).iter_rows():
            if result["error"]:
                raise DataError(result["error"])
            results.append(result)
            progress.advance(result["rows"])
    return results


def _report(results: Sequence[Mapping[str, Any]]) -> None:
    """Print the speed, and the warnings of workers, one of a kind."""
    total = sum(result["rows"] for result in results)
    cpu_time = sum(result["cpu_time"] for result in results)
    seconds = max(result["ended"] for result in results) - min(result["began"] for result in results)
    seconds = max(seconds, 0.001)  # clocks jump, and those of two machines differ
    speed = f"{total:,} lines in {seconds:,.1f} s, {total / seconds:,.0f} a second"
    typer.echo(f"{speed}; {cpu_time:,.1f} s of CPU time; without the start of Ray.", err=True)
    kinds = defaultdict(list)
    for result in results:
        for message in result["warnings"].splitlines():
            kinds[message.partition(" sentences ")[2]].append(f"{result['part']}: {message}")
    for messages in kinds.values():
        others = f"; as in {len(messages) - 1:,} other parts" if messages[1:] else ""
        warnings.warn(f"{messages[0]}{others}", stacklevel=1)
    if empty := sum(result["empty"] for result in results):
        warnings.warn(f"{empty:,} of {total:,} lines are empty; their vectors are zero", stacklevel=1)
