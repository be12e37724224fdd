"""Files of sentence vectors: written as a stream, read as memory maps.

Beside every file lies `NAME.json` with the fingerprint of the encoder, so that vectors of different encoders
are never compared by mistake.
"""

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_file
from xsent.options import Vectors, stored_as
from xsent.parquet import arrow_to_parquet
from xsent.resume import PartFile, part_file
from xsent.writers import VectorWriter, check_format, open_writer

# Rows between two checkpoints, and in a row group of Parquet: about a second of encoding on a laptop.
STEP = 4096


@dataclass(frozen=True)
class VectorNote:
    """What lies beside a file of vectors.

    Attributes:
        fingerprint: Identity of the encoder's vector space.
        dim: Length of a vector (D).
        precision: Form of the numbers, see `xsent.SentenceEncoder.encode`.
        normalized: Whether vectors have length 1.
    """

    fingerprint: str
    dim: int
    precision: str
    normalized: bool


@dataclass(frozen=True)
class VectorFile:
    """A file of vectors, opened.

    Attributes:
        path: The file.
        note: What lies beside it.
        rows: The vectors [n, D], binary ones [n, D / 8], mapped into memory: only what is looked at is read.
    """

    path: Path
    note: VectorNote
    rows: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)


def open_vectors(path: str | Path) -> VectorFile:
    """Open vectors that `vector_file` or `xsent encode` wrote.

    Args:
        path: A `.npy` file, or raw float32 (`.f32`, the layout of LASER); its note lies beside it.

    Raises:
        DataError: The file or its note is missing or damaged, or it is of another format.
    """
    path = Path(path)
    if path.suffix not in (".npy", ".f32"):
        raise DataError(f"{path}: expected vectors in a .npy or .f32 file")
    note = _read_note(path)
    dtype, width = stored_as(note.precision, note.dim)
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False) if path.suffix == ".npy" else _map_raw(path, note.dim)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; expected vectors written by xsent encode") from error
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, EOFError) or str(error).startswith(("mmap length", "EOF")):
            raise DataError(f"{path}: cut short; encode the text again") from error
        raise DataError(f"{path}: no readable vectors ({error}); encode the text again") from error
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype != dtype:
        raise DataError(
            f"{path}: {rows.dtype} of shape {list(rows.shape)}, its note says {note.precision} of {note.dim} "
            "dimensions; encode the text again"
        )
    return VectorFile(path, note, rows)


def check_same_space(a: VectorFile, b: VectorFile) -> None:
    """See whether two files can be compared.

    Raises:
        FingerprintError: Different encoders made them; names both.
        DataError: They differ in dimension or in the type of the numbers.
    """
    if a.note.fingerprint != b.note.fingerprint:
        raise FingerprintError(
            f"{a.path} has vectors of {a.note.fingerprint}, {b.path} of {b.note.fingerprint}: use one model"
        )
    if (a.note.dim, a.note.precision) != (b.note.dim, b.note.precision):
        raise DataError(
            f"{a.path} holds {a.note.precision} of {a.note.dim} dimensions, {b.path} {b.note.precision} of "
            f"{b.note.dim}: encode both alike"
        )


@contextmanager
def vector_file(
    path: Path, note: VectorNote, *, force: bool = False, job: Mapping[str, object] | None = None, resume: bool = False
) -> Iterator["VectorOutput"]:
    """Write vectors to a file that appears, with its note, once it is complete.

    Args:
        path: The file; its ending says what it holds: `.npy`, `.jsonl`, `.parquet` or `.f32` (raw float32).
        note: What to write beside it.
        force: Replace an existing file, finished or not.
        job: What else moves the vectors, beside note and sentences. With it, what is written outlives the process
            from every `STEP` rows on.
        resume: Go on with what a process with the same job has left, if there is anything.

    Yields:
        What to write to.

    Raises:
        FileExistsError: The file exists, finished or not, and `force` is not set, nor `resume` for an unfinished one;
            `resume` replaces a finished one if the unfinished one was begun with `force`.
        OSError: It cannot be written.
        ValueError: There is no such format, or it cannot hold such vectors.
        MissingExtraError: The format's package is not installed.
        FingerprintError: The one left holds vectors of another encoder.
        DataError: The one left is of another job or damaged, or another process writes it.
    """
    check_format(path.name, note.precision)
    beside = _beside(path)
    everything = None if job is None else {**asdict(note), **job}
    with part_file(path, everything, resume=resume, force=force) as part:
        if beside.exists() and not force and not part.rows:
            raise FileExistsError(errno.EEXIST, "exists; --force replaces it", str(beside))
        output = VectorOutput(open_writer(path.suffix, part.file, note.precision, note.dim), part)
        yield output
        output.finish()
        _publish(part, path, note)


class VectorOutput:
    """Where sentences and their vectors are written to.

    Args:
        writer: Writes them.
        part: The unfinished file; None if it is none that could be gone on with.
    """

    def __init__(self, writer: VectorWriter, part: PartFile | None = None) -> None:
        self._writer = writer
        self._part = part
        self.rows = part.rows if part else 0

    @property
    def kept(self) -> int:
        """Rows that outlive this process if it stops now."""
        return self._part.kept if self._part else 0

    def remaining(self, sentences: Iterable[str]) -> Iterator[str]:
        """The sentences that are not written yet, see `xsent.resume.PartFile.remaining`."""
        return self._part.remaining(sentences) if self._part else iter(sentences)

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence and its vector, [D] or [D / 8]."""
        self._writer.write(sentence, vector)
        self.rows += 1
        if self._part:
            self._part.add(sentence)
        if self.rows % STEP == 0:
            self._writer.flush()
            if self._part:
                self._part.checkpoint()

    def finish(self) -> None:
        """Complete the file."""
        self._writer.finish(self.rows)
        if self._part:
            self._part.finish()


def _publish(part: PartFile, path: Path, note: VectorNote) -> None:
    """Give complete files their names: the note first, for vectors without one are of no use."""
    if path.suffix == ".parquet":
        with atomic_file(path) as file:
            arrow_to_parquet(part.path, file)
            _sync(file)
            _publish_note(path, note)
    else:
        _publish_note(path, note)
        os.replace(part.path, path)
    part.remove()


def _publish_note(path: Path, note: VectorNote) -> None:
    with atomic_file(_beside(path)) as file:
        file.write(json.dumps(asdict(note), indent=1).encode() + b"\n")
        _sync(file)
        path.unlink(missing_ok=True)  # older vectors must not stand beside the new note


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _read_note(path: Path) -> VectorNote:
    file = _beside(path)
    try:
        note = VectorNote(**json.loads(file.read_text(encoding="utf-8")))
        if type(note.dim) is not int or note.dim < 1:
            raise ValueError(f"dim = {note.dim!r} must be a number")
        stored_as(note.precision, note.dim)
    except FileNotFoundError as error:
        raise DataError(f"{file}: missing; it says which model made {path.name}, copy it too") from error
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file}: damaged ({error}); encode the text again") from error
    return note


def _map_raw(path: Path, dim: int) -> NDArray[Any]:
    row = 4 * dim
    if (size := path.stat().st_size) % row:
        raise DataError(f"{path}: {size:,} bytes are no whole number of vectors of {row:,}; encode the text again")
    return np.memmap(path, "<f4", "r", shape=(size // row, dim)) if size else np.empty((0, dim), "<f4")
