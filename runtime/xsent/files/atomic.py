"""Files and folders that appear whole or not at all; errors for full disks, damaged files and concurrent writers.

Nothing is written through a link: in someone else's folder it could point to any file of the user's.
"""

import errno
import fcntl
import glob
import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from xsent.errors import DataError, XsentError, in_one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # a full disk or quota
_LARGEST = 1 << 30  # most bytes of a file that is read whole
_LARGEST_JSON = 1 << 24  # most bytes; in memory, objects may take twenty times as much


@contextmanager
def explain_write_errors(
    path: Path,
    kept: Callable[[], str] = lambda: "",
    resume: str = "make room, then continue with --resume",
    nothing: str = "",
) -> Iterator[None]:
    """Name `path` in OSErrors, because those from writes name no file, or the temporary one.

    `kept()` describes what part of the work is kept, if any; Ctrl-C gets that as a note, or else `nothing`. On a full
    disk, the message adds what to do: `resume` if something is kept, otherwise to run it again.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if note := kept() or nothing:
            error.add_note(note)
        raise
    except OSError as error:
        if error.filename == str(path):  # already named
            raise
        reason = error.strerror
        if error.errno in _NO_ROOM:
            advice = resume if kept() else "nothing was kept; make room and run it again"
            reason = f"{os.strerror(error.errno)}; {advice}"
        elif not str(error.filename).startswith(str(path.with_name(f".{path.name}."))):
            raise
        elif error.errno == errno.ENOENT:
            _check_folder(path)
        raise OSError(error.errno, reason, str(path)) from error


@contextmanager
def as_data_error(path: Path, remedy: str) -> Iterator[None]:
    """Turn any read error into a DataError, which names the missing or damaged file and the remedy."""
    try:
        yield
    except XsentError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{error.filename or path}: missing; {remedy}") from error
    except Exception as error:  # on damaged files, parsers raise anything
        raise DataError(f"{path}: damaged ({in_one_line(error)}); {remedy}") from error


@contextmanager
def as_write_error(path: Path, remedy: str) -> Iterator[None]:
    """Turn any OSError from writing into a DataError: what cannot be written, why, and the remedy.

    `explain_write_errors` instead keeps OSErrors, and does not change those of other files.
    """
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}; {remedy}") from error


_REPLACE = "exists; --force replaces it"


def file_exists_error(path: Path, advice: str = _REPLACE) -> FileExistsError:
    """The error to raise if a file must not be replaced."""
    return FileExistsError(errno.EEXIST, advice, str(path))


def check_output(path: Path, *, force: bool = False, advice: str = _REPLACE) -> None:
    """Before long work, raise the error that its output would: the folder is missing, or the file exists already."""
    _check_folder(path)
    if path.exists() and not force:
        raise file_exists_error(path, advice)


def _check_folder(path: Path) -> None:
    """Raise FileNotFoundError if the folder in which a path should be is missing."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder; create it first", str(path.parent))


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """Read a JSON object. Raises DataError, with the remedy, if the file is missing or damaged."""
    with as_data_error(path, remedy):
        content = json.loads(read_plain(path, _LARGEST_JSON))
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, found {type(content).__name__}")
        return content


def plain_size(path: Path) -> int:
    """Size of a file in bytes. Raises ValueError for folders and pipes (reading a pipe would block)."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a regular file")
    return found.st_size


def read_plain(path: Path, most: int = _LARGEST) -> bytes:
    """The content of a regular file. Raises ValueError if it is not one, or larger than `most` or 2^30 bytes."""
    most = min(most, _LARGEST)  # the caller's limit may come from a damaged file
    if (size := plain_size(path)) > most:
        raise ValueError(f"{size:,} bytes, expected at most {most:,}")
    return path.read_bytes()


def load_arrays(archive: bytes) -> "dict[str, NDArray[Any]]":
    """The arrays that `np.savez` wrote, by name. Raises ValueError if they are compressed or not all finite numbers.

    `np.savez` never compresses, and compressed arrays could expand to any size.
    """
    import numpy as np  # here, not above: writing files needs no arrays

    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in opened.infolist()):
            raise ValueError("its arrays are compressed")
    with np.load(io.BytesIO(archive), allow_pickle=False) as found:
        arrays = dict(found)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{name} contains something other than finite numbers")
    return arrays


def open_to_write(path: Path, permissions: int = 0o666, *, flags: int = 0, buffering: int = -1) -> IO[bytes]:
    """Open a file for reading and writing, at its beginning; create it if it does not exist.

    Args:
        path: The file.
        permissions: Mode of a new file, before the umask.
        flags: More flags for `os.open`, such as `os.O_TRUNC`.
        buffering: As in `open`.

    Raises:
        DataError: It is a link, a folder, a pipe or a device.
    """
    return open(_open_without_links(path, os.O_RDWR | os.O_CREAT | flags, permissions), "r+b", buffering)


def cut(path: Path, size: int) -> None:
    """Truncate a file to `size` bytes; unlike `os.truncate`, never through a link."""
    handle = _open_without_links(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, size)
    finally:
        os.close(handle)


def refuse_links(folder: Path) -> None:
    """Raise DataError if a folder, or anything directly in it, is a link."""
    entries = [folder, *folder.iterdir()] if folder.is_dir() else [folder]
    for entry in entries:
        if entry.is_symlink():
            raise _link_error(entry)


def _link_error(path: Path) -> DataError:
    return DataError(f"{path}: a link, which xsent does not follow here; remove it, or name what it points to")


def _open_without_links(path: Path, flags: int, permissions: int = 0o666) -> int:
    """Open a file or folder without blocking; raises DataError for a link, a pipe or a device."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, permissions)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _link_error(path) from error
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise _irregular_error(path) from error
        raise
    kind = os.fstat(handle).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        os.close(handle)
        raise _irregular_error(path)
    return handle


def _irregular_error(path: Path) -> DataError:
    return DataError(f"{path}: not a regular file, so it is not written; remove it, or choose another name")


def to_json(content: Mapping[str, object] | Sequence[object]) -> bytes:
    """Serialise an object or a list to the bytes of a JSON file."""
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


@contextmanager
def atomic_file(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Write a seekable file under another name, and rename it once it is complete and on the disk.

    An error (a full disk, Ctrl-C) leaves nothing behind and does not change an older file. The next run removes what a
    killed process left. A file that replaces another one keeps its permissions.

    Args:
        path: The file.
        private: Let only the owner read a new file, for example because it contains someone's texts.
    """
    recover(path)
    make = partial(_make_file, permissions=0o600 if private else 0o666)
    with explain_write_errors(path), _claimed(path, make) as unfinished, open_to_write(unfinished) as file:
        keep_permissions(unfinished, path)
        yield file
        sync(file)
        put_in_place(unfinished, path)


@contextmanager
def atomic_folder(path: Path, *, private: bool = False, replaces: bool | None = None) -> Iterator[Path]:
    """Fill a folder under another name, then rename it, see `atomic_file`; its files get its permissions.

    Raises DataError if the path is a link, or if another process creates a folder of that name in the meantime: after
    the call, or after the caller found whether it `replaces` one.
    """
    if path.is_symlink():
        raise _link_error(path)
    recover(path)
    is_new = not (path.exists() if replaces is None else replaces)
    make = partial(Path.mkdir, mode=0o700 if private else 0o777)
    with explain_write_errors(path), _claimed(path, make) as unfinished:
        keep_permissions(unfinished, path)
        yield unfinished
        for entry in sorted(unfinished.rglob("*")):
            if entry.is_dir():
                _sync_folder(entry)
                continue
            with entry.open("rb+") as opened:
                os.fchmod(opened.fileno(), permissions_within(unfinished))  # some libraries set others
                sync(opened)
        _sync_folder(unfinished)
        if not is_new:
            replace_folder(unfinished, path)
            return
        try:
            put_in_place(unfinished, path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise _other_writer_error(path) from error
            raise


def _make_file(path: Path, permissions: int) -> None:
    open_to_write(path, permissions, flags=os.O_EXCL).close()


@contextmanager
def _claimed(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """Create a file or folder beside `path`, removed at the end; it is locked so that `recover` does not touch it."""
    while True:
        made = _beside(path, "part")
        make(made)
        try:
            handle = _open_without_links(made, os.O_RDONLY)
        except FileNotFoundError:  # another process removed it as a leftover
            continue
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if made.exists():
            break
        os.close(handle)
    try:
        yield made
    finally:
        os.close(handle)
        if made.is_dir():
            shutil.rmtree(made, ignore_errors=True)
        else:
            made.unlink(missing_ok=True)


def keep_permissions(made: Path, path: Path) -> None:
    """Give a file or folder, not a link, the permissions of the one that it will replace, if any."""
    with suppress(FileNotFoundError):
        old = path.lstat().st_mode
        if stat.S_IFMT(old) == stat.S_IFMT(made.lstat().st_mode):
            made.chmod(stat.S_IMODE(old))


def permissions_within(folder: Path) -> int:
    """Permissions of a file in a new folder: whoever may open the folder may read it."""
    return stat.S_IMODE(folder.stat().st_mode) & 0o666


def put_in_place(made: Path, path: Path) -> None:
    """Move a complete file or folder to its final name, so that it survives a power loss."""
    os.replace(made, path)
    _sync_folder(path.parent)


def replace_folder(made: Path, path: Path) -> None:
    """Replace a folder, if it exists, with a complete one; the old one is deleted last."""
    old = _beside(path, "old")
    try:
        with _locked(path) if path.exists() else nullcontext():  # so that `recover` knows that this process is alive
            if path.exists():
                path.rename(old)
            put_in_place(made, path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    if old.exists():
        with suppress(OSError):
            _discard(old, path)


def remove_folder(path: Path) -> None:
    """Delete a folder; a process killed in between never leaves a folder of that name with files missing."""
    _discard(path, path)


def recover(path: Path) -> None:
    """Restore a folder that a killed process was replacing, and remove what it left half-written."""
    for suffix in ("old", "part"):
        for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.{suffix}"):
            with suppress(OSError, DataError), _locked(left) as locked:  # a link is not touched
                if suffix == "old" and not path.exists() and locked is not False:
                    left.rename(path)
                elif locked:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()


def sweep(folder: Path) -> None:
    """Call `recover` for everything in a folder."""
    for left in [*folder.glob(".*.part"), *folder.glob(".*.old")]:
        recover(folder / left.name[1:].rsplit(".", 2)[0])


@contextmanager
def only_writer(path: Path, flags: int = os.O_RDONLY) -> Iterator[bool]:
    """Lock a file or folder against other writers, which get a DataError; yields whether there was one to lock.

    No-op on file systems without locks, or if `path` is missing and `flags` (for `os.open`) do not create it. The file
    may be renamed while it is locked.
    """
    is_there = bool(flags & os.O_CREAT) or path.exists()
    with _locked(path, flags) if is_there else nullcontext() as locked:
        if locked is False:
            raise _other_writer_error(path)
        yield is_there


def _other_writer_error(path: Path) -> DataError:
    return DataError(f"{path}: another process is writing it; wait until it is done, or choose another name")


@contextmanager
def _locked(path: Path, flags: int = os.O_RDONLY) -> Iterator[bool | None]:
    """Try to lock a file or folder; yields whether it worked, None on file systems without locks."""
    handle = _open_without_links(path, flags, 0o600)
    try:
        locked: bool | None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Not renamed since it was opened
            locked = path.exists() and os.path.samestat(os.fstat(handle), path.stat())
        except BlockingIOError:
            locked = False
        except OSError:
            locked = None
        yield locked
    finally:
        os.close(handle)


def sync(file: IO[bytes]) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk; not every file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _discard(folder: Path, path: Path) -> None:
    """Delete a folder that was at `path`, under a name that marks it as incomplete."""
    discarded = _beside(path, "part")
    folder.rename(discarded)
    shutil.rmtree(discarded)


def _beside(path: Path, suffix: str) -> Path:
    """A name that no other thread or process uses, not even a process with the same id in another container."""
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}.{suffix}")
