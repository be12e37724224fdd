"""Vectors on their way to a file that outlives the process which writes it, until it is complete."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_file, existing, naming_damage, naming_full_disk, only_writer, put_in_place, sync, to_json
from xsent.lines import LineDigest
from xsent.options import Vectors
from xsent.vectors import FORMATS, VectorNote, arrow_to_parquet, check_format, note_file

# Rows between two checkpoints, and in a row group of Parquet: about a second of encoding on a laptop.
STEP = 4096


@dataclass(frozen=True)
class Milestone:
    """How far an unfinished file is."""

    job: Mapping[str, object] = field(default_factory=dict)  # all that moves its content, but for the sentences
    rows: int = 0  # that are on the disk
    bytes: int = 0  # length of the file with them
    digest: str = ""  # of their sentences
    replaces: bool = False  # whether it was begun to replace an older file


class VectorOutput:
    """`.NAME.part`, which becomes NAME; `.NAME.part.json` has its checkpoints, a line each. See `vector_file`."""

    def __init__(
        self, path: Path, note: VectorNote, job: Mapping[str, object] | None, *, resume: bool, force: bool
    ) -> None:
        self._path, self._note = path, note
        self._part, self._journal = _parts(path)
        self._job = None if job is None else {**asdict(note), **job}
        self._digest = LineDigest()
        self._last = self._find(resume=resume, force=force)
        if not self._last.rows:
            self._journal.write_bytes(b"")
            self._part.write_bytes(b"")
        self._replaces = force or self._last.replaces
        self.rows = self.kept  # that it has
        self._file = self._part.open("r+b")
        self._file.truncate(self._last.bytes)
        self._file.seek(0, os.SEEK_END)
        self._writer = FORMATS[path.suffix](self._file, note.precision, note.dim)

    @property
    def kept(self) -> int:
        """Rows that outlive this process if it stops now."""
        return self._last.rows

    def remaining(self, sentences: Iterable[str]) -> Iterator[str]:
        """The sentences that have no row yet; a DataError says that the others are not those that have one."""
        return self._digest.skip(sentences, self._last.rows, self._last.digest, self._path)

    def write(self, sentence: str, vector: Vectors) -> None:
        """Append one sentence and its vector, [D] or [D / 8]."""
        self._writer.write(sentence, vector)
        self._digest.add(sentence)
        self.rows += 1
        if self.rows % STEP == 0:
            self._writer.flush()
            if self._job is not None:
                self._checkpoint(self._job)

    def publish(self) -> None:
        """Give the complete file its name: the note first, for vectors without one are of no use."""
        self._writer.finish(self.rows)
        sync(self._file)
        self._file.close()
        if self._path.suffix == ".parquet":
            if self.kept:  # a kill may leave both files: then the one of that name is our own
                self._note_down(replace(self._last, replaces=True))
            with atomic_file(self._path) as file:
                arrow_to_parquet(self._part, file, self._note)
                sync(file)
                self._publish_note()
        else:
            self._publish_note()
            put_in_place(self._part, self._path)
        os.truncate(self._journal, 0)

    def close(self) -> None:
        """Close the file, whether or not what waits to be written can be."""
        with suppress(OSError):
            self._file.close()

    def _publish_note(self) -> None:
        if self._has_note():  # then older vectors may stay until the new ones are there
            return
        with atomic_file(note_file(self._path)) as file:
            file.write(to_json(asdict(self._note)))
            sync(file)
            self._path.unlink(missing_ok=True)  # older vectors must not stand beside the new note

    def _has_note(self) -> bool:
        """Whether the right note is there: of older vectors, or of a process that was killed before its own came."""
        note = note_file(self._path)
        return note.is_file() and note.read_bytes() == to_json(asdict(self._note))

    def _checkpoint(self, job: Mapping[str, object]) -> None:
        """Put everything on the disk and note it."""
        sync(self._file)
        self._note_down(Milestone(job, self.rows, self._file.tell(), self._digest.hex, self._replaces))

    def _note_down(self, last: Milestone) -> None:
        before = self._journal.stat().st_size
        try:
            with self._journal.open("ab") as journal:
                journal.write(json.dumps(asdict(last)).encode() + b"\n")
                sync(journal)
        except OSError:
            os.truncate(self._journal, before)
            raise
        self._last = last

    def _find(self, *, resume: bool, force: bool) -> Milestone:
        """The checkpoint to go on from; complains about what must not be overwritten."""
        last = Milestone() if self._job is None or (force and not resume) else self._read()
        if self._path.exists() and not (force or (resume and last.replaces)):
            advice = "complete already; there is nothing to resume" if resume else "exists; --force replaces it"
            raise existing(self._path, advice)
        if last.rows and not resume:
            advice = f"an unfinished run got to line {last.rows:,}; --resume goes on, --force starts over"
            raise existing(self._path, advice)
        if last.rows:
            self._check(last)
        elif note_file(self._path).exists() and not (force or self._has_note()):
            raise existing(note_file(self._path))
        return last

    def _read(self) -> Milestone:
        if not self._part.exists():  # it has got its name, and the process was killed right after that
            os.truncate(self._journal, 0)
            return Milestone()
        with naming_damage(self._journal, "--force starts over"):
            whole, end, _ = self._journal.read_bytes().rpartition(b"\n")
            last = Milestone(**json.loads(whole.rpartition(b"\n")[2])) if whole else Milestone()
            os.truncate(self._journal, len(whole + end))  # a kill may have cut the last line
            return last

    def _check(self, last: Milestone) -> None:
        """See that the job is still the same, and the file is what its checkpoint says."""
        new, old = self._job or {}, last.job
        for key in {**new, **old}:  # the fingerprint first
            if old.get(key) != new.get(key):
                raise (FingerprintError if key == "fingerprint" else DataError)(
                    f"{self._path}: of another job: {key} was {old.get(key)}, is now {new.get(key)}; "
                    "give the same, or --force to start over"
                )
        if self._part.stat().st_size < last.bytes:
            raise DataError(f"{self._part}: shorter than its journal says; --force starts over")


@contextmanager
def vector_file(
    path: Path, note: VectorNote, *, force: bool = False, job: Mapping[str, object] | None = None, resume: bool = False
) -> Iterator[VectorOutput]:
    """Write vectors to a file that appears, with its note, once it is complete; one process can write it at a time.

    `job` is what else moves the vectors, beside note and sentences: with it, what is written outlives errors and kills
    from every `STEP` rows on, and `resume` goes on with what the same job has left, if there is anything.

    A FileExistsError says that the file exists, finished or not, and that neither `force` nor `resume` tells what to do
    with it; `resume` replaces a finished one if the unfinished one was begun with `force`. A FingerprintError or a
    DataError says that what is left is of another job or damaged, or that another process writes it.
    """
    check_format(path.name, note.precision)
    part, journal = _parts(path)

    def kept() -> bool:
        return journal.exists() and journal.stat().st_size > 0

    with naming_full_disk(path, kept), only_writer(journal, os.O_RDWR | os.O_CREAT):
        try:
            with closing(VectorOutput(path, note, job, resume=resume, force=force)) as output:
                yield output
                output.publish()
        finally:
            if not kept():
                part.unlink(missing_ok=True)
                journal.unlink(missing_ok=True)  # last: it holds the lock


def _parts(path: Path) -> tuple[Path, Path]:
    return path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.part.json")
