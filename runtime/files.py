"""Files and folders that appear whole or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # what a full disk, or a full share of one, raises


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file under another name and rename it once it is complete and on the disk.

    Whatever goes wrong (a full disk, Ctrl-C) leaves nothing behind, and an older file as it was.

    Args:
        path: Where the file shall be; its folder must exist.

    Yields:
        The file to write to, seekable.

    Raises:
        OSError: It cannot be written; names `path` also when the disk is full.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    partial = Path(name)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o666 & ~_umask())
        os.replace(partial, path)
    except OSError as error:
        if error.errno in NO_ROOM and error.filename is None:  # of a file within, it has that one's name
            raise _no_room(error, path) from error
        raise
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a folder beside `path` and put it in its place once it is complete and on the disk.

    Whatever goes wrong (a full disk, Ctrl-C) leaves nothing behind, and an older folder as it was.

    Args:
        path: Where the folder shall be; its parent must exist; an older folder there is replaced.

    Yields:
        An empty folder to fill.
    """
    partial = _beside(path, "part")
    try:
        partial.mkdir()
        yield partial
        for file in sorted(file for file in partial.rglob("*") if file.is_file()):
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
        replace_folder(partial, path)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise _no_room(error, path) from error
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Delete a folder so that a process killed in between leaves no folder of that name with files missing."""
    gone = _beside(path, "old")
    path.rename(gone)
    shutil.rmtree(gone)


def sweep(folder: Path) -> None:
    """Delete what killed processes left half-written or half-deleted in a folder."""
    for leftover in [*folder.glob(".*.part"), *folder.glob(".*.old")]:
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def replace_folder(partial: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes only once the new one is there.

    Args:
        partial: The new folder, complete and beside the old one.
        path: Where it shall be; there need not be an old one.

    Raises:
        OSError: A rename failed; the old folder is where it was.
    """
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


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{suffix}")


def _no_room(error: OSError, path: Path) -> OSError:
    """A full disk with the name that was asked for: a write knows none, or that of what is half-written."""
    reason = os.strerror(error.errno or 0)
    return OSError(error.errno, f"{reason}; nothing was kept, make room and run it again", str(path))


def _umask() -> int:
    """The permissions that new files do not get; those of mkstemp are for the user alone."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
