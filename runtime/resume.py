"""Files in the making that outlive the process that writes them."""

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO

from xsent.errors import DataError, FingerprintError
from xsent.files import NO_ROOM

_LOCKS = find_spec("fcntl") is not None  # not on Windows, which does not let two processes rename a file either


@dataclass(frozen=True)
class Checkpoint:
    """How far an unfinished file is.

    Attributes:
        job: Everything that moves its content, but for the sentences.
        rows: Rows that are on the disk.
        bytes: Length of the file with them.
        digest: SHA-256 of their sentences.
        replaces: Whether it was begun to replace an older file.
    """

    job: Mapping[str, object]
    rows: int
    bytes: int
    digest: str
    replaces: bool = False


class PartFile:
    """`.NAME.part`, which becomes NAME once it is complete; a journal beside it holds the last checkpoint.

    Args:
        path: The file that it shall become.
        job: See `part_file`, like the rest.
        resume: Whether to go on.
        force: Whether to start over.

    Attributes:
        path: The unfinished file.
        file: The same, open and at its end.
        rows: Rows that it has.
    """

    def __init__(self, path: Path, job: Mapping[str, object] | None, *, resume: bool, force: bool) -> None:
        self.path = path.with_name(f".{path.name}.part")
        self._name = path
        self._journal = path.with_name(f"{self.path.name}.json")
        self._job = job
        self._digest = hashlib.sha256()
        self._last: Checkpoint | None = None
        self._force = force
        self._removed = False
        self.rows = 0
        # Both before it is opened, so that nothing is left, and once nobody else can publish it any more.
        self._find(resume=resume)
        self.file = _open_locked(self.path)
        try:
            self._last = self._find(resume=resume)
            self._cut()
        except BaseException:
            self.file.close()
            raise

    @property
    def kept(self) -> int:
        """Rows that outlive this process if it stops now."""
        return self._last.rows if self._last else 0

    def remaining(self, sentences: Iterable[str]) -> Iterator[str]:
        """The sentences that have no row yet.

        Args:
            sentences: All of them; those with rows are read and compared with what the earlier process read.

        Raises:
            DataError: They are others.
        """
        source = iter(sentences)
        for sentence in islice(source, self.rows):
            self._hash(sentence)
        if self._last and self._digest.hexdigest() != self._last.digest:
            raise DataError(
                f"{self._name}: cannot be gone on with: its first {self.rows:,} lines had another text, the input has "
                "changed; --force starts over"
            )
        return source

    def add(self, sentence: str) -> None:
        """Count a row that was written, of this sentence."""
        self._hash(sentence)
        self.rows += 1

    def checkpoint(self) -> None:
        """Put everything on the disk and note it in the journal, if there is one."""
        if self._job is None:
            return
        self._sync()
        last = Checkpoint(self._job, self.rows, self.file.tell(), self._digest.hexdigest(), self._force)
        fresh = self._journal.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(asdict(last), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._journal)
        self._last = last

    def finish(self) -> None:
        """Put everything on the disk; the file stays open, and so locked, until it is removed or given up."""
        self._sync()
        if not _LOCKS:
            self.file.close()

    def remove(self) -> None:
        """Delete what is left of it, but nothing that another process has begun since it was renamed."""
        self._removed = True
        if not _LOCKS or _is_at(self.file, self.path):
            if not _LOCKS:
                self._close()
            self._unlink()
            self._close()
            return
        self._close()
        with suppress(DataError), _open_locked(self.path):  # another process writes one, or left a damaged journal
            if self._read_journal() in (None, self._last):
                self._unlink()

    def give_up(self) -> None:
        """Close the file; without a checkpoint nothing of it stays."""
        if self._removed:
            return
        if self._last:
            self._close()
        else:
            self.remove()

    def no_room(self, error: OSError) -> OSError:
        """A full disk with the name that was asked for and what to do: a write knows neither."""
        advice = "make room, then --resume goes on" if self._last else "nothing was kept, make room and run it again"
        return OSError(error.errno, f"{os.strerror(error.errno or 0)}; {advice}", str(self._name))

    def _hash(self, sentence: str) -> None:
        self._digest.update(sentence.encode() + b"\n")

    def _sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def _read_journal(self) -> Checkpoint | None:
        try:
            last = Checkpoint(**json.loads(self._journal.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{self._journal}: damaged ({error}); --force starts over") from error
        return last

    def _find(self, *, resume: bool) -> Checkpoint | None:
        """The checkpoint to go on from; complains about what must not be overwritten."""
        last = None if self._job is None or (self._force and not resume) else self._read_journal()
        goes_on = resume and last is not None and last.replaces and self.path.exists()
        if self._name.exists() and not self._force and not goes_on:
            advice = "complete already; there is nothing to resume" if resume else "exists; --force replaces it"
            raise FileExistsError(errno.EEXIST, advice, str(self._name))
        if last and not resume:
            advice = f"an unfinished run got to line {last.rows:,}; --resume goes on, --force starts over"
            raise FileExistsError(errno.EEXIST, advice, str(self._name))
        if last:
            self._check_job(last.job)
        return last

    def _cut(self) -> None:
        """Go to the last checkpoint, or to the start and forget an older journal."""
        end = 0
        if self._last:
            self.rows, end = self._last.rows, self._last.bytes
            self._force = self._force or self._last.replaces
        if self.file.seek(0, os.SEEK_END) < end:
            raise DataError(f"{self.path}: shorter than its journal says; --force starts over")
        if not self._last:
            self._journal.unlink(missing_ok=True)
        self.file.truncate(end)
        self.file.seek(end)

    def _unlink(self) -> None:
        for left in (self._journal, self._journal.with_suffix(".new"), self.path):  # it last: with it goes the lock
            left.unlink(missing_ok=True)

    def _close(self) -> None:
        with suppress(OSError):  # what could not be written either
            self.file.close()

    def _check_job(self, old: Mapping[str, object]) -> None:
        new = self._job or {}
        for key in {**new, **old}:  # the fingerprint first
            if old.get(key) != new.get(key):
                raise (FingerprintError if key == "fingerprint" else DataError)(
                    f"{self._name}: cannot be gone on with: {key} was {old.get(key)}, is now {new.get(key)}; "
                    "give the same, or --force to start over"
                )


@contextmanager
def part_file(
    path: Path, job: Mapping[str, object] | None, *, resume: bool = False, force: bool = False
) -> Iterator[PartFile]:
    """Open an unfinished file; what its last checkpoint covers outlives errors and kills, the rest does not.

    Args:
        path: The file that it shall become; one process can write it at a time.
        job: Everything that moves its content, but for the sentences; None keeps no journal.
        resume: Go on from the last checkpoint of an earlier process, if there is one.
        force: Drop what an earlier process left, unless `resume` is set.

    Raises:
        FileExistsError: An earlier process left one, and neither `resume` nor `force` is set; or `path` exists, `force`
            is not set, and was not when the one left was begun.
        FingerprintError: The one left holds vectors of another encoder.
        DataError: The one left is of another job or damaged, or another process writes it.
        OSError: It cannot be written.
    """
    part = PartFile(path, job, resume=resume, force=force)
    try:
        yield part
    except OSError as error:
        if error.errno in NO_ROOM:
            raise part.no_room(error) from error
        raise
    finally:
        part.give_up()


def _open_locked(path: Path) -> IO[bytes]:
    while True:
        file = open(path, "r+b", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o666))
        if not _LOCKS:
            return file
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise DataError(f"{path}: another process is writing it; wait for it, or give another name") from error
        if _is_at(file, path):
            return file
        file.close()  # between the two lines another process has published or deleted it


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
