"""Files and folders that appear whole or not at all; what a full disk, a damaged file and a second writer say."""

import errno
import glob
import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from xsent.errors import DataError, XsentError, in_one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # what a full disk, or a full share of one, raises
_LARGEST = 1 << 30  # bytes of what is read whole
_LARGEST_JSON = 1 << 24  # bytes; what it says may take twenty times as much in memory


@contextmanager
def explain_write_errors(
    path: Path, kept: Callable[[], bool] = lambda: False, resume: str = "make room, then --resume goes on"
) -> Iterator[None]:
    """Turn a full disk into one line with what was asked for: a write knows no name, or that of what is half-written.

    Of other failures only such a name is replaced. `kept` says whether what was done is there to go on from, `resume`
    how.
    """
    try:
        yield
    except OSError as error:
        if error.filename == str(path):  # it was said already
            raise
        reason = error.strerror
        if error.errno in _NO_ROOM:
            reason = (
                f"{os.strerror(error.errno)}; {resume if kept() else 'nothing was kept, make room and run it again'}"
            )
        elif not str(error.filename).startswith(str(path.with_name(f".{path.name}."))):
            raise
        raise OSError(error.errno, reason, str(path)) from error


@contextmanager
def as_data_error(path: Path, remedy: str) -> Iterator[None]:
    """Turn whatever reading raises into one line: the missing or damaged file, and the remedy."""
    try:
        yield
    except XsentError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{error.filename or path}: missing; {remedy}") from error
    except Exception as error:  # a damaged file brings a parser to raise anything
        raise DataError(f"{path}: damaged ({in_one_line(error)}); {remedy}") from error


@contextmanager
def as_write_error(path: Path, remedy: str) -> Iterator[None]:
    """Turn what writing raises into one line: what cannot be written, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}; {remedy}") from error


def file_exists_error(path: Path, advice: str = "exists; --force replaces it") -> FileExistsError:
    """What to raise where something must not be replaced."""
    return FileExistsError(errno.EEXIST, advice, str(path))


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """Read an object that `to_json` wrote; a DataError says whether it is missing or damaged, and the remedy."""
    with as_data_error(path, remedy):
        content = json.loads(read_plain(path, _LARGEST_JSON))
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, found {type(content).__name__}")
        return content


def plain_size(path: Path) -> int:
    """Size of a file in bytes; a ValueError says that it is a folder, or a pipe, which a reader would wait for."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("no plain file")
    return found.st_size


def read_plain(path: Path, most: int = _LARGEST) -> bytes:
    """The content of a plain file; a ValueError says that it is none, or has more bytes, of which 2^30 are too many."""
    if (size := plain_size(path)) > min(most, _LARGEST):
        raise ValueError(f"{size:,} bytes, expected at most {min(most, _LARGEST):,}")
    return path.read_bytes()


def load_arrays(archive: bytes) -> "dict[str, NDArray[Any]]":
    """The arrays that `np.savez` wrote, by name; a ValueError says that they are packed or not of finite numbers.

    It never packs them, and packed ones could be of any size.
    """
    import numpy as np  # here, not above: what writes and moves files does without

    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in opened.infolist()):
            raise ValueError("its arrays are packed")
    with np.load(io.BytesIO(archive), allow_pickle=False) as found:
        arrays = dict(found)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{name} holds other things than finite numbers")
    return arrays


def to_json(content: Mapping[str, object] | Sequence[object]) -> bytes:
    """An object or a list as it lies in a file."""
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file, seekable, under another name and rename it once it is complete and on the disk.

    Whatever goes wrong (a full disk, Ctrl-C) leaves nothing behind, and an older file or folder as it was. What a kill
    leaves behind goes the next time.
    """
    recover(path)
    partial = _beside(path, "part")
    with explain_write_errors(path):
        try:
            partial.touch()
            with _locked(partial):
                with partial.open("wb") as file:
                    yield file
                    sync(file)
                put_in_place(partial, path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a folder beside `path` and put it in its place, see `atomic_file`."""
    recover(path)
    partial = _beside(path, "part")
    try:
        with explain_write_errors(path):
            partial.mkdir()
            with _locked(partial):
                yield partial
                for entry in sorted(partial.rglob("*")):
                    if entry.is_dir():
                        _sync_folder(entry)
                        continue
                    with entry.open("rb+") as opened:
                        sync(opened)
                _sync_folder(partial)
                replace_folder(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def put_in_place(partial: Path, path: Path) -> None:
    """Give a file or folder that is complete its name; whoever pulls the plug after that finds it there."""
    os.replace(partial, path)
    _sync_folder(path.parent)


def replace_folder(partial: Path, path: Path) -> None:
    """Put a complete folder in the place of another, if there is one, which goes only once the new one is there."""
    old = _beside(path, "old")
    try:
        if path.exists():
            path.rename(old)
        put_in_place(partial, path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    if old.exists():
        with suppress(OSError):
            _discard(old, path)


def remove_folder(path: Path) -> None:
    """Delete a folder so that a process killed in between leaves no folder of that name with files missing."""
    _discard(path, path)


def recover(path: Path) -> None:
    """Put back a folder that a killed process was about to replace, and clear away what it left half-written."""
    for suffix in ("old", "part"):
        for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.{suffix}"):
            with suppress(OSError), _locked(left) as ours:
                if suffix == "old" and not path.exists():
                    left.rename(path)
                elif ours:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()


def sweep(folder: Path) -> None:
    """`recover` whatever may lie in a folder."""
    for left in [*folder.glob(".*.part"), *folder.glob(".*.old")]:
        recover(folder / left.name[1:].rsplit(".", 2)[0])


@contextmanager
def only_writer(path: Path, flags: int = os.O_RDONLY) -> Iterator[None]:
    """Keep other processes from writing a file or folder, by a DataError there.

    Without effect where locks are unknown, or where nothing is there and the flags, those of `os.open`, do not make it.
    Its name may be given up before the end.
    """
    if not (flags & os.O_CREAT or path.exists()):
        yield
        return
    with _locked(path, flags) as ours:
        if ours is False:
            raise DataError(f"{path}: another process is writing it; wait until it is done, or choose another name")
        yield


@contextmanager
def _locked(path: Path, flags: int = os.O_RDONLY) -> Iterator[bool | None]:
    """Whether a file or folder is ours alone until the end; None on Windows and on disks that know no locks."""
    try:
        import fcntl
    except ImportError:
        yield None
        return
    handle = os.open(path, flags, 0o666)
    try:
        ours: bool | None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = path.exists() and os.path.samestat(os.fstat(handle), path.stat())  # not renamed since it was opened
        except BlockingIOError:
            ours = False
        except OSError:
            ours = None
        yield ours
    finally:
        os.close(handle)


def sync(file: IO[bytes]) -> None:
    """Bring what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; some systems have no such thing."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _discard(folder: Path, path: Path) -> None:
    """Delete a folder that was at `path`, under a name that says that it is not whole."""
    gone = _beside(path, "part")
    folder.rename(gone)
    shutil.rmtree(gone)


def _beside(path: Path, suffix: str) -> Path:
    """A name that nobody else has, neither another thread nor a process of the same number in another container."""
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}.{suffix}")
