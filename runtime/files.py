"""Files and folders that appear whole or not at all; what a full disk, a damaged file and a second writer say."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from xsent.errors import DataError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # what a full disk, or a full share of one, raises
_DAMAGE = (OSError, ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError)


@contextmanager
def naming_full_disk(
    path: Path, kept: Callable[[], bool] = lambda: False, resume: str = "make room, then --resume goes on"
) -> Iterator[None]:
    """Turn a full disk into one line with what was asked for: a write knows no name, or that of what is half-written.

    `kept` says whether what was done is there to go on from, `resume` how.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        advice = resume if kept() else "nothing was kept, make room and run it again"
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)}; {advice}", str(path)) from error


@contextmanager
def naming_damage(path: Path, remedy: str, *also: type[Exception]) -> Iterator[None]:
    """Turn what reading raises, `also` by other errors, into one line: the missing or damaged file, and the remedy."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{error.filename or path}: missing; {remedy}") from error
    except _DAMAGE + also as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path}: damaged ({reason}); {remedy}") from error


@contextmanager
def naming_failed_write(path: Path, remedy: str) -> Iterator[None]:
    """Turn what writing raises into one line: what cannot be written, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}; {remedy}") from error


def existing(path: Path, advice: str = "exists; --force replaces it") -> FileExistsError:
    """What to raise where something must not be replaced."""
    return FileExistsError(errno.EEXIST, advice, str(path))


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """Read an object that `to_json` wrote; a DataError says whether it is missing or damaged, and the remedy."""
    with naming_damage(path, remedy):
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, found {type(content).__name__}")
        return content


def to_json(content: Mapping[str, object] | Sequence[object]) -> bytes:
    """An object or a list as it lies in a file."""
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file, seekable, under another name and rename it once it is complete and on the disk.

    Whatever goes wrong (a full disk, Ctrl-C) leaves nothing behind, and an older file or folder as it was.
    """
    partial = _beside(path, "part")
    with naming_full_disk(path):
        try:
            with partial.open("wb") as file:
                yield file
                sync(file)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a folder beside `path` and put it in its place, see `atomic_file`."""
    partial = _beside(path, "part")
    try:
        with naming_full_disk(path):
            partial.mkdir()
            yield partial
            for file in sorted(file for file in partial.rglob("*") if file.is_file()):
                with file.open("rb+") as opened:
                    sync(opened)
            replace_folder(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_folder(partial: Path, path: Path) -> None:
    """Put a complete folder in the place of another, if there is one, which goes only once the new one is there."""
    old = _beside(path, "old")
    try:
        if path.exists():
            path.rename(old)
        partial.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Delete a folder so that a process killed in between leaves no folder of that name with files missing."""
    gone = _beside(path, "old")
    path.rename(gone)
    shutil.rmtree(gone)


def sweep(folder: Path) -> None:
    """Delete what killed processes left half-written or half-deleted in a folder."""
    for leftover in [*folder.glob(".*.part"), *folder.glob(".*.old")]:
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


@contextmanager
def only_writer(path: Path, flags: int = os.O_RDONLY) -> Iterator[None]:
    """Keep other processes from writing a file or folder, by a DataError there; without effect on Windows.

    Its name may be given up before the end. The flags are for `os.open`.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(path, flags, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = path.exists() and os.path.samestat(os.fstat(handle), path.stat())  # not renamed since it was opened
        except BlockingIOError:
            free = False
        if not free:
            raise DataError(f"{path}: another process is writing it; wait until it is done, or choose another name")
        yield
    finally:
        os.close(handle)


def sync(file: IO[bytes]) -> None:
    """Bring what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _beside(path: Path, suffix: str) -> Path:
    """A name that nobody else has, neither another thread nor a process of the same number in another container."""
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}.{suffix}")
