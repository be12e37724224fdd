"""A file that stays the same one for its reader, whatever takes its name."""

import os
import threading
import weakref
from pathlib import Path


class HeldFile:
    """Reads from a file that was opened once; threads and forked processes may read at the same time.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._handle)

    def read_into(self, place: int, out: memoryview) -> bool:
        """Fill memory with the bytes from `place` on; says whether there were so many."""
        out = out.cast("B")
        while out:
            if not (count := self._read_some(place, out)):
                return False
            place += count
            out = out[count:]
        return True

    def _read_some(self, place: int, out: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._handle, [out], place)
        with self._lock:  # on Windows, which knows no forks
            os.lseek(self._handle, place, os.SEEK_SET)
            data = os.read(self._handle, len(out))
        out[: len(data)] = data
        return len(data)
