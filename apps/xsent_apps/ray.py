"""`xsent encode --engine ray`: the same vectors from many processes and machines, by Ray Data, as Parquet."""

import hashlib
import json
import logging
import os
import platform
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import typer
from numpy.typing import NDArray

from xsent import FingerprintError, SentenceEncoder, XsentError
from xsent.cli.terminal import Progress
from xsent.errors import DataError, require_extra
from xsent.files.atomic import as_data_error, atomic_file, file_exists_error, sweep

ROWS = 16_384  # of a partition at least, but for the last of a file: less than a minute of encoding

_BOM = b"\xef\xbb\xbf"
_ONE = "expected a text or Parquet file, or a folder of them"


@dataclass(frozen=True)
class Partition:
    """Consecutive rows of one file."""

    number: int  # among all partitions
    row: int  # its first, counted over all files
    rows: int
    source: str  # absolute path
    size: int  # of the source, in bytes
    changed: int  # when the source was, in nanoseconds
    line: int  # its first row, counted in the source
    start: int  # in the source: byte of a text, row group of a Parquet file
    stop: int  # the first that is not its own
    column: str  # of a Parquet file, the one with the text; empty for a text file

    @property
    def digest(self) -> str:
        """Of its bounds and of what is known of its source without reading it; the source may move as a whole."""
        facts = {**asdict(self), "source": Path(self.source).name}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def sentences(self) -> Iterator[str]:
        """Its rows, as `xsent encode` reads them; a DataError names the line that cannot be read.

        What is null becomes an empty sentence.
        """
        yield from _parquet_rows(self) if self.column else _text_rows(self)
        if _state(Path(self.source)) != (self.size, self.changed):
            raise DataError(f"{self.source}: changed while it was read; run it again once the file is complete")


def find_partitions(path: Path, column: str) -> list[Partition]:
    """Divide a file, or all files in a folder but for those with names in . or _, in the order of their names.

    A DataError says what cannot be divided, and that there is nothing to encode.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; {_ONE}")
    found: list[Partition] = []
    for source in _sources(path):
        for part in _divide(source.absolute(), column):
            row = found[-1].row + found[-1].rows if found else 0
            found.append(replace(part, number=len(found), row=row))
    if not found:
        raise DataError(f"{path}: empty; {_ONE}")
    return found


def _sources(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    inside = ((file, file.relative_to(path).parts) for file in path.rglob("*") if file.is_file())
    return sorted(file for file, names in inside if not any(name.startswith((".", "_")) for name in names))


def _divide(source: Path, column: str) -> Iterator[Partition]:
    """Partitions of one file, numbered from 0."""
    if source.suffix in (".gz", ".xz"):
        raise DataError(f"{source}: a packed file cannot be divided; unpack it, or leave --engine out")
    size, changed = _state(source)
    parquet = source.suffix == ".parquet"
    line = start = 0
    for rows, stop in _parquet_bounds(source, column) if parquet else _text_bounds(source):
        yield Partition(0, 0, rows, str(source), size, changed, line, start, stop, column if parquet else "")
        line, start = line + rows, stop


def _text_bounds(source: Path) -> Iterator[tuple[int, int]]:
    """Number of lines, and the byte behind them."""
    stop = 0
    with source.open("rb") as file:
        while lengths := [len(line) for line in islice(file, ROWS)]:
            stop += sum(lengths)
            yield len(lengths), stop


def _parquet_bounds(source: Path, column: str) -> Iterator[tuple[int, int]]:
    """Number of rows, and the row group behind them."""
    with _opened(source) as file:
        names = file.schema_arrow.names
        if column not in names:
            raise DataError(f"{source}: no column {column!r}; name one with --column: {', '.join(names)}")
        kind = file.schema_arrow.field(column).type
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise DataError(f"{source}: column {column!r} holds {kind}, expected text; name another with --column")
        groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    done = 0
    for stop, rows in enumerate(accumulate(groups), 1):
        if rows > done and (rows - done >= ROWS or stop == len(groups)):
            yield rows - done, stop
            done = rows


def _text_rows(part: Partition) -> Iterator[str]:
    with Path(part.source).open("rb") as file:
        file.seek(part.start)
        for number, line in enumerate(islice(file, part.rows), part.line + 1):
            try:  # only a line feed ends a line, and a carriage return before it is dropped
                text = (line.removeprefix(_BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                raise DataError(f"{part.source}:{number}: not UTF-8; convert the file to UTF-8") from error
            yield text.removesuffix("\n").removesuffix("\r")


def _parquet_rows(part: Partition) -> Iterator[str]:
    with _opened(Path(part.source)) as file:
        groups = list(range(part.start, part.stop))
        for batch in file.iter_batches(batch_size=1024, row_groups=groups, columns=[part.column]):
            for text in batch.column(0).to_pylist():
                yield "" if text is None else text


@contextmanager
def _opened(source: Path) -> Iterator["pyarrow.parquet.ParquetFile"]:
    with as_data_error(source, "write it again"), pyarrow.parquet.ParquetFile(source) as file:
        yield file


def _state(source: Path) -> tuple[int, int]:
    found = source.stat()
    return found.st_size, found.st_mtime_ns


GROUP = 4096  # rows of a row group, all that is held in memory

Note = Mapping[str, object]
Pairs = Iterable[tuple[str, NDArray[Any]]]  # sentences with their vectors


def part_path(folder: Path, partition: Partition) -> Path:
    """Where a partition goes: the order of names is that of rows."""
    return folder / f"part-{partition.number:06}.parquet"


def missing_parts(folder: Path, partitions: Sequence[Partition], note: Note) -> list[Partition]:
    """Those that have no part yet, or a damaged one.

    A FingerprintError or a DataError says that a part is of another job.
    """
    names = {part_path(folder, partition).name for partition in partitions}
    for path in whole_parts(folder):
        if path.name not in names:
            raise DataError(f"{path}: of another input; give the same, or --force to start over")
    return [partition for partition in partitions if not _is_done(part_path(folder, partition), partition, note)]


def whole_parts(folder: Path) -> list[Path]:
    """Parts that a folder has, of whatever job."""
    return sorted(folder.glob("part-*.parquet"))


def prepare_folder(folder: Path, *, resume: bool, force: bool) -> None:
    """Make the folder, and take away what killed workers left half-written, and with `force` whole parts.

    A FileExistsError says that there are parts, and that neither `resume` nor `force` tells what to do with them.
    """
    if whole_parts(folder) and not (resume or force):
        raise file_exists_error(folder, "has parts; --resume goes on, --force starts over")
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    for path in whole_parts(folder) if force else []:
        path.unlink(missing_ok=True)


def write_part(folder: Path, partition: Partition, note: Note, pairs: Pairs, schema: "pyarrow.Schema") -> None:
    """Write a part, which appears once it is complete and on the disk."""
    facts = {**note, "source": Path(partition.source).name, "digest": partition.digest}
    schema = schema.with_metadata({"xsent": json.dumps(facts)})
    with (
        atomic_file(part_path(folder, partition)) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        for batch in _batches(partition.row, iter(pairs), schema):
            writer.write_batch(batch)


def part_schema(vectors: NDArray[Any]) -> "pyarrow.Schema":
    """Columns of a part, with vectors like these [n, D]."""
    vector = pyarrow.list_(pyarrow.from_numpy_dtype(vectors.dtype), vectors.shape[1])
    return pyarrow.schema([("row", pyarrow.int64()), ("sentence", pyarrow.string()), ("vector", vector)])


def _batches(row: int, pairs: Iterator[tuple[str, NDArray[Any]]], schema: "pyarrow.Schema") -> Iterator[Any]:
    while group := list(islice(pairs, GROUP)):
        rows = np.arange(row, row + len(group))
        sentences = pyarrow.array([sentence for sentence, _ in group], pyarrow.string())
        numbers = pyarrow.array(np.concatenate([vector for _, vector in group]))
        vectors = pyarrow.FixedSizeListArray.from_arrays(numbers, schema.field("vector").type.list_size)
        yield pyarrow.record_batch([pyarrow.array(rows), sentences, vectors], schema=schema)
        row += len(group)


def _is_done(path: Path, partition: Partition, note: Note) -> bool:
    """Whether a part is there; complains if it is of another job."""
    try:
        known = dict(json.loads((pyarrow.parquet.read_schema(path).metadata or {})[b"xsent"]))
    except Exception:  # it is missing, or damaged, which brings a parser to raise anything
        return False
    for key, value in {**note, "digest": partition.digest}.items():  # the fingerprint first
        if known.get(key) != value:
            change = f"{key} was {known.get(key)}, is now {value}" if key != "digest" else "the input is another"
            raise (FingerprintError if key == "fingerprint" else DataError)(
                f"{path}: of another job: {change}; give the same, or --force to start over"
            )
    return True


with require_extra("ray"):
    import pyarrow
    import ray
    import ray.data


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
        sentences = partition.sentences()
        encoded = self._encoder.encode_items(sentences, start=partition.line, **self._job.options)

        def pairs() -> Iterator[tuple[str, Any]]:
            nonlocal empty
            for text, vector in encoded:
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
