"""Files in the making that outlive the process that writes them."""

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from xsent.errors import DataError, FingerprintError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Checkpoint:
    """How far an unfinished file is.

    Attributes:
        job: Everything that moves its content, but for the sentences.
        rows: Rows that are on the disk.
        bytes: Length of the file with them.
        digest: SHA-256 of their sentences.
    """

    job: Mapping[str, object]
    rows: int
    bytes: int
    digest: str


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
        self._last = None if job is None or (force and not resume) else self._read_journal()
        if self._last and not resume:
            advice = f"an unfinished run got to line {self._last.rows:,}; --resume goes on, --force starts over"
            raise FileExistsError(errno.EEXIST, advice, str(path))
        if self._last:
            self._check_job(self._last.job)
        self.rows = self._last.rows if self._last else 0
        self.file = _open_locked(self.path)
        self._cut()

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
        self._last = Checkpoint(self._job, self.rows, self.file.tell(), self._digest.hexdigest())
        fresh = self._journal.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(asdict(self._last), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._journal)

    def finish(self) -> None:
        """Put everything on the disk and close the file."""
        self._sync()
        self.file.close()

    def remove(self) -> None:
        """Delete what is left of it."""
        for left in (self.path, self._journal, self._journal.with_suffix(".new")):
            left.unlink(missing_ok=True)

    def give_up(self) -> None:
        """Close the file; without a checkpoint nothing of it stays."""
        with suppress(OSError):  # what could not be written either
            self.file.close()
        if not self._last:
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

    def _cut(self) -> None:
        """Go to the last checkpoint, or to the start and forget an older journal."""
        end = self._last.bytes if self._last else 0
        if self.file.seek(0, os.SEEK_END) < end:
            self.file.close()
            raise DataError(f"{self.path}: shorter than its journal says; --force starts over")
        if not self._last:
            self._journal.unlink(missing_ok=True)
        self.file.truncate(end)
        self.file.seek(end)

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
        FileExistsError: An earlier process left one, and neither `resume` nor `force` is set.
        FingerprintError: The one left holds vectors of another encoder.
        DataError: The one left is of another job or damaged, or another process writes it.
        OSError: It cannot be written.
    """
    part = PartFile(path, job, resume=resume, force=force)
    try:
        yield part
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:
            raise part.no_room(error) from error
        raise
    finally:
        part.give_up()


def _open_locked(path: Path) -> IO[bytes]:
    file = open(path, "r+b", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o666))
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows, which does not let two processes rename it either
        pass
    except BlockingIOError as error:
        file.close()
        raise DataError(f"{path}: another process is writing it; wait for it, or give another name") from error
    return file
