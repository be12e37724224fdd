"""Reads and writes files of vectors, each with a note beside it that names the encoder.

`.npy` and `.f32` are memory-mapped; `.jsonl` and `.parquet` also hold the texts, and the ids of a table. An interrupted
job can be resumed.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.files.atomic import (
    as_data_error,
    as_write_error,
    atomic_file,
    cut,
    explain_write_errors,
    file_exists_error,
    keep_permissions,
    only_writer,
    open_to_write,
    plain_size,
    put_in_place,
    read_json,
    sync,
    to_json,
)
from xsent.files.row_writers import ENDINGS, FORMATS, TABLES, check_format
from xsent.files.tables import import_pyarrow, read_vectors
from xsent.files.text import LineDigest
from xsent.fingerprint import same_space
from xsent.precision import Vectors, stored_as

# Rows between two milestones of a job, and per Parquet row group: about a second of encoding on a laptop.
STEP = 4096

_REMEDY = "encode the text again"
_PRIVATE = 0o600  # much of a sentence can be recovered from its vector


@dataclass(frozen=True)
class VectorMeta:
    """The note beside a file of vectors: how they were computed."""

    fingerprint: str  # identity of the encoder's vector space
    dim: int  # length of a vector (D)
    precision: str  # form of the numbers, see `xsent.SentenceEncoder.encode`
    normalized: bool  # whether vectors have length 1


@dataclass(frozen=True)
class VectorFile:
    """An opened file of vectors."""

    path: Path
    note: VectorMeta
    rows: NDArray[Any]  # [n, D], binary ones [n, D / 8]; memory-mapped: only rows that are used are read

    def check_cosines(self, fingerprint: str | None = None) -> None:
        """Raise DataError if its vectors have no cosines, FingerprintError if they have none with an encoder's."""
        if self.note.precision == "binary":
            raise DataError(f"{self.path}: binary vectors have no cosines; encode as float32, float16 or int8")
        if fingerprint is not None and not same_space(self.note.fingerprint, fingerprint):
            raise FingerprintError(
                f"{self.path} has vectors of {self.note.fingerprint}, the model is {fingerprint}; use --model with the "
                "model that computed them"
            )


def open_vectors(path: str | Path) -> VectorFile:
    """Open a file of vectors that `vector_file` wrote. Raises DataError if it or its note is missing or damaged."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise DataError(f"{path}: expected vectors in a file that ends in {ENDINGS}")
    if not path.exists():
        raise DataError(f"{path}: no such file; create it with xsent encode")
    note = _read_note(path)
    dtype, width = stored_as(note.precision, note.dim)
    with as_data_error(path, _REMEDY):
        size = plain_size(path)
        if path.suffix in TABLES:
            rows = map_rows(read_vectors(path), note)
        elif path.suffix == ".npy":
            rows = np.lib.format.open_memmap(path, mode="r")
        elif size % (4 * note.dim):
            raise ValueError(f"{size:,} bytes are not a multiple of the {4 * note.dim:,} bytes per vector")
        else:
            shape = (size // (4 * note.dim), note.dim)
            rows = np.memmap(path, "<f4", "r", shape=shape) if size else np.empty(shape, "<f4")
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype != dtype:
        raise DataError(
            f"{path}: {rows.dtype} of shape {list(rows.shape)}, but its note has {note.precision} of {note.dim} "
            f"dimensions; {_REMEDY}"
        )
    return VectorFile(path, note, rows)


def check_same_space(a: VectorFile, b: VectorFile) -> None:
    """Raise FingerprintError or DataError if the vectors of two files cannot be compared."""
    if not same_space(a.note.fingerprint, b.note.fingerprint):
        raise FingerprintError(
            f"{a.path} has vectors of {a.note.fingerprint}, {b.path} of {b.note.fingerprint}; use one model for both"
        )
    if (a.note.dim, a.note.precision) != (b.note.dim, b.note.precision):
        raise DataError(
            f"{a.path} holds {a.note.precision} of {a.note.dim} dimensions, {b.path} {b.note.precision} of "
            f"{b.note.dim}; encode both the same way"
        )


def note_file(path: Path) -> Path:
    """Path of the note beside a file of vectors."""
    return path.with_name(f"{path.name}.json")


def _read_note(path: Path) -> VectorMeta:
    file = note_file(path)
    if not file.exists():
        raise DataError(f"{file}: missing; it names the model of {path.name}, so copy it, too")
    with as_data_error(file, _REMEDY):
        note = VectorMeta(**read_json(file, _REMEDY))
        if type(note.dim) is not int or note.dim < 1:
            raise ValueError(f"dim = {note.dim!r} must be a number")
        if type(note.fingerprint) is not str:
            raise ValueError(f"fingerprint = {note.fingerprint!r:.80} must be text")
        stored_as(note.precision, note.dim)
    return note


def map_rows(vectors: Iterable[Any], note: VectorMeta) -> NDArray[Any]:
    """Write vectors to an unnamed temporary file and memory-map it, so that they need not fit into memory."""
    dtype, width = stored_as(note.precision, note.dim)
    with TemporaryFile() as file:
        for number, row in enumerate(vectors, 1):
            vector = np.array(row, dtype)
            if vector.shape != (width,):
                raise ValueError(f"row {number:,}: {list(vector.shape)} numbers, expected {width}")
            with _in_temporary_folder():
                file.write(vector.data)
        with _in_temporary_folder():
            file.flush()
        rows = file.tell() // (dtype.itemsize * width)
        return np.memmap(file, dtype, "r", shape=(rows, width)) if rows else np.empty((0, width), dtype)


def _in_temporary_folder() -> AbstractContextManager[None]:
    """Name the temporary folder in write errors, because the temporary file has no name."""
    return as_write_error(Path(gettempdir()), "make room, or set TMPDIR to another folder")


def arrow_to_parquet(stream: Path, file: IO[bytes], note: VectorMeta) -> None:
    """Convert an `ArrowWriter`'s file to Parquet, with the note in its metadata; each batch becomes a row group."""
    arrow = import_pyarrow()
    with stream.open("rb") as source:
        batches = arrow.ipc.open_stream(source)
        schema = batches.schema.with_metadata({"xsent": json.dumps(asdict(note))})
        with arrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer:
            for batch in batches:
                writer.write_batch(batch)


@dataclass(frozen=True)
class Milestone:
    """How much of an unfinished file is on the disk."""

    # Everything that determines its content, except the sentences
    job: Mapping[str, object] = field(default_factory=dict)
    rows: int = 0  # rows on the disk
    bytes: int = 0  # length of the file with these rows
    digest: str = ""  # hash of their sentences
    replaces: bool = False  # whether the job was started to replace an older file


@contextmanager
def vector_file(
    path: Path, note: VectorMeta, *, force: bool = False, job: Mapping[str, object] | None = None, resume: bool = False
) -> Iterator["VectorOutput"]:
    """Write vectors to a file that appears, with its note, once it is complete; one process can write it at a time.

    Args:
        path: The file; its suffix is one of `FORMATS`.
        note: The note beside it.
        force: Replace an existing file, and discard the unfinished file of an interrupted job.
        job: Everything except note and sentences that determines the vectors. If given, rows survive errors and kills
            in steps of `STEP` rows, and the job can be resumed.
        resume: Continue the unfinished file of the same job, if any; replaces a finished file only if the job was
            started with `force`.

    Raises:
        FileExistsError: The file exists, finished or not, and neither `force` nor `resume` is given.
        FingerprintError: The unfinished file is of another encoder.
        DataError: The unfinished file is of another job or damaged, or another process is writing it.
    """
    check_format(path.name, note.precision)
    part, journal = _unfinished(path)
    output: VectorOutput | None = None

    def kept() -> str:
        if not (journal.exists() and journal.stat().st_size):
            return ""
        rows = f"{output.kept:,}" if output else "earlier"
        return f"{path}: {rows} lines are encoded and kept; continue with --resume."

    nothing = "No line is kept yet; run the same command again."
    with explain_write_errors(path, kept, nothing=nothing), only_writer(journal, os.O_RDWR | os.O_CREAT):
        try:
            with closing(VectorOutput(path, note, job, resume=resume, force=force)) as output:
                yield output
                output.publish()
        finally:
            if not kept():
                part.unlink(missing_ok=True)
                journal.unlink(missing_ok=True)  # last: it holds the lock


def is_complete(path: Path, note: VectorMeta, count: Callable[[], int | None] = lambda: None) -> bool:
    """Whether a job has nothing to resume: its file is there, and no interrupted one was to replace it.

    Raises DataError if the file has other vectors than this job would write, or not one for each of the texts that
    `count` counts, if it can.
    """
    part, journal = _unfinished(path)
    if not path.exists() or (part.exists() and _last_milestone(journal).replaces):
        return False
    vectors = open_vectors(path)
    if (found := vectors.note) != note:
        other = next(name for name, value in asdict(note).items() if getattr(found, name) != value)
        raise DataError(
            f"{path}: complete, but of another job: its {other} is {getattr(found, other)}, not "
            f"{getattr(note, other)}; use the same, or start over with --force"
        )
    if (texts := count()) is not None and texts != len(vectors.rows):
        raise DataError(
            f"{path}: complete, but the input had {len(vectors.rows):,} texts, and now {texts:,}; encode all of them "
            "with --force"
        )
    return True


class VectorOutput:
    """An unfinished file of vectors, see `vector_file`.

    Rows are written to `.NAME.part`, which becomes NAME; `.NAME.part.json` is the journal, one milestone per line.
    """

    def __init__(
        self, path: Path, note: VectorMeta, job: Mapping[str, object] | None, *, resume: bool, force: bool
    ) -> None:
        self._path = path
        self._note = note
        self._part, self._journal = _unfinished(path)
        self._job = None if job is None else {**asdict(note), **job}
        self._digest = LineDigest()
        self._last = self._find_milestone(resume=resume, force=force)
        if not self._last.rows:
            cut(self._journal, 0)
        self._replaces = force or self._last.replaces
        self.rows = self.kept  # rows written
        self._file = open_to_write(self._part, _PRIVATE)
        self._file.truncate(self._last.bytes)
        self._file.seek(0, os.SEEK_END)
        self._writer = FORMATS[path.suffix](self._file, note.precision, note.dim)

    @property
    def kept(self) -> int:
        """Rows that survive if this process stops now."""
        return self._last.rows

    def remaining(self, sentences: Iterable[str]) -> Iterator[str]:
        """The sentences without a row yet; raises DataError if the earlier ones do not match the rows."""
        return self._digest.skip(sentences, self._last.rows, self._last.digest, self._path)

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence and its vector, [D] or [D / 8]."""
        self._writer.write(sentence, vector)
        self._digest.add(sentence)
        self.rows += 1
        if self.rows % STEP == 0:
            self._writer.flush()
            if self._job is not None:
                sync(self._file)
                milestone = Milestone(self._job, self.rows, self._file.tell(), self._digest.hex, self._replaces)
                self._append_milestone(milestone)

    def publish(self) -> None:
        """Give the complete file its name, after its note, because vectors without a note cannot be used."""
        self._writer.finish(self.rows)
        sync(self._file)
        self._file.close()
        if self._path.suffix == ".parquet":
            if self.kept:  # a kill may leave both files; then the named one is from this job
                self._append_milestone(replace(self._last, replaces=True))
            with atomic_file(self._path, private=True) as file:
                arrow_to_parquet(self._part, file, self._note)
                sync(file)
                self._publish_note()
        else:
            keep_permissions(self._part, self._path)  # first: a new note removes the older file
            self._publish_note()
            put_in_place(self._part, self._path)
        cut(self._journal, 0)

    def close(self) -> None:
        """Close the file, even if buffered rows cannot be written."""
        with suppress(OSError):
            self._file.close()

    def _publish_note(self) -> None:
        if self._has_note():  # an older file can stay until the new one replaces it
            return
        with atomic_file(note_file(self._path), private=True) as file:
            file.write(to_json(asdict(self._note)))
            sync(file)
            self._path.unlink(missing_ok=True)  # the new note does not describe an older file

    def _has_note(self) -> bool:
        """Whether this note exists, from an older file or from a process that was killed before it finished."""
        note = note_file(self._path)
        return note.is_file() and note.read_bytes() == to_json(asdict(self._note))

    def _append_milestone(self, milestone: Milestone) -> None:
        before = self._journal.stat().st_size
        try:
            with open_to_write(self._journal, flags=os.O_APPEND) as journal:
                journal.write(json.dumps(asdict(milestone)).encode() + b"\n")
                sync(journal)
        except OSError:
            cut(self._journal, before)
            raise
        self._last = milestone

    def _find_milestone(self, *, resume: bool, force: bool) -> Milestone:
        """Find the milestone to continue from; raises an error if a file or a job would be lost."""
        last = Milestone() if self._job is None or (force and not resume) else self._read_journal()
        if self._path.exists() and not (force or (resume and last.replaces)):
            advice = "already complete; there is nothing to resume" if resume else "exists; --force replaces it"
            raise file_exists_error(self._path, advice)
        if last.rows and not resume:
            advice = (
                f"an unfinished run stopped at line {last.rows:,}; continue with --resume or overwrite with --force"
            )
            raise file_exists_error(self._path, advice)
        if last.rows:
            check_same_job(self._path, last.job, self._job or {})
            if self._part.stat().st_size < last.bytes:
                raise DataError(f"{self._part}: shorter than its journal records; start over with --force")
        elif note_file(self._path).exists() and not (force or self._has_note()):
            raise file_exists_error(note_file(self._path))
        return last

    def _read_journal(self) -> Milestone:
        if not self._part.exists():  # the process was killed right after the file got its name
            cut(self._journal, 0)
            return Milestone()
        last = _last_milestone(self._journal)
        cut(self._journal, self._journal.read_bytes().rfind(b"\n") + 1)  # a kill may have truncated the last line
        return last


def _last_milestone(journal: Path) -> Milestone:
    """The last complete line of a journal. Raises DataError if it is damaged."""
    with as_data_error(journal, "start over with --force"):
        whole = journal.read_bytes().rpartition(b"\n")[0]
        return Milestone(**json.loads(whole.rpartition(b"\n")[2])) if whole else Milestone()


def check_same_job(path: Path, old: Mapping[str, object], new: Mapping[str, object]) -> None:
    """Raise FingerprintError or DataError if the job to resume, of file `path`, differs from the new one."""
    for key in {**new, **old}:  # the fingerprint first
        if old.get(key) != new.get(key):
            raise (FingerprintError if key == "fingerprint" else DataError)(
                f"{path}: unfinished file of another job: {key} was {old.get(key)}, is now {new.get(key)}; "
                "use the same, or start over with --force"
            )


def _unfinished(path: Path) -> tuple[Path, Path]:
    """The unfinished file and its journal."""
    return path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.part.json")
