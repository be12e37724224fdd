"""A file that is only ever appended to, with the checksum of what it holds."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from xsent.errors import DataError

_PIECE = 1 << 20  # bytes written or read at once


@dataclass(frozen=True)
class FileState:
    """How much of a file counts.

    Attributes:
        bytes: Its first so many bytes; more may follow.
        sha256: Checksum of them in hex.
    """

    bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()

    @classmethod
    def of(cls, file: Path) -> "FileState":
        """All of a file."""
        size = file.stat().st_size
        return cls(size, _digest(file, size).hexdigest())

    def check(self, file: Path) -> "hashlib._Hash":
        """Read what counts of a file, in pieces.

        Returns:
            The checksum, ready to go on.

        Raises:
            DataError: The file is not what it was.
        """
        digest = _digest(file, self.bytes)
        if digest.hexdigest() != self.sha256:
            raise DataError(f"{file}: damaged (its checksum is wrong); build the index again")
        return digest


class GrowingFile:
    """Appends to a file behind what counts of it; what follows there is dropped.

    Args:
        path: The file; made if it is not there.
        state: What counts of it.

    Raises:
        DataError: The file is not what it was.
    """

    def __init__(self, path: Path, state: FileState) -> None:
        self._path = path
        self._size = self._saved = state.bytes
        self._pending = bytearray()
        # Unbuffered, so that after a failure nothing waits to be written.
        self._file = path.open("ab", buffering=0)
        try:
            self._digest = state.check(path)
            self._file.truncate(state.bytes)
        except BaseException:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        """Bytes in it, those not yet on the disk too."""
        return self._size

    def write(self, data: bytes) -> None:
        """Append some bytes.

        Raises:
            OSError: The disk is full; names the file.
        """
        self._pending += data
        self._size += len(data)
        if len(self._pending) >= _PIECE:
            self._flush()

    def save(self) -> FileState:
        """Bring everything to the disk, and say how much there is."""
        self._flush()
        os.fsync(self._file.fileno())
        self._saved = self._size
        return FileState(self._saved, self._digest.hexdigest())

    def close(self) -> None:
        """Close the file, without what came after the last `save`."""
        self._file.truncate(self._saved)
        self._file.close()

    def _flush(self) -> None:
        self._digest.update(self._pending)
        left = memoryview(self._pending)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:  # a write knows no name
            reason = f"{error.strerror}; make room and run it again"
            raise OSError(error.errno, reason, str(self._path)) from error
        self._pending = bytearray()


def _digest(file: Path, size: int) -> "hashlib._Hash":
    """Checksum of the first `size` bytes."""
    digest = hashlib.sha256()
    with file.open("rb", buffering=0) as opened:
        while size and (piece := opened.read(min(size, _PIECE))):
            digest.update(piece)
            size -= len(piece)
    return digest
