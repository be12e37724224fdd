"""Appending lines to an index: what was saved outlives errors and kills."""

import errno
import os
from dataclasses import replace
from pathlib import Path

from xsent.errors import DataError
from xsent.files import sync
from xsent.lines import LineDigest
from xsent.options import Vectors
from xsent.search.database import INDEX, UNFINISHED, VECTORS, IndexDatabase, IndexState, Passage
from xsent.search.vectors import STORED, check_length

SAVE_EVERY = 10_000  # lines: about a minute's work on a Raspberry Pi
_MOST_TEXT = 1 << 22  # characters that wait to be saved


class IndexWriter:
    """Appends lines from a source to what a folder has as `base`; in the folder of a new index that is nothing."""

    def __init__(self, folder: Path, base: IndexState, source: str) -> None:
        self._base, self._source = base, source
        self._file = folder / VECTORS
        self.database = IndexDatabase(folder, create=True)
        self.close = self.database.close
        self.folder = folder
        self.state = base  # what is saved
        self.digest = LineDigest()
        self._passages: list[Passage] = []  # that wait to be saved, with their vectors
        self._vectors = bytearray()
        self._text = 0  # their characters

    def stopped(self) -> IndexState | None:
        """What a job has saved that was stopped; of a new index that has no name yet, all of it."""
        return self.database.state(UNFINISHED) or (None if self._base.rows else self.database.state(INDEX))

    def begin(self, *, resume: bool, force: bool) -> None:
        """Go on with a job that was stopped, or forget it; complains if neither is wanted."""
        stopped = self.stopped()
        if stopped and not (resume or force):
            done = f"{stopped.lines - stopped.start:,} lines"
            reason = f"holds {done} of a job that was stopped; --resume goes on with it, --force starts again"
            raise FileExistsError(errno.EEXIST, reason, str(self.folder))
        if stopped and resume:
            self.state = stopped
        else:
            self.database.forget(self.state.rows)
        if self.state.rows:
            check_length(self._file, self._saved_bytes)
        self._lines = self.state.lines

    def add(self, text: str, vector: Vectors) -> None:
        """Append a line and its vector [D]; a line whose vector is zero is counted, but never found."""
        self.digest.add(text)
        self._lines += 1
        if vector.any():
            stored = vector.astype(STORED, copy=False).tobytes()
            self._passages.append(Passage.of(self._source, self._lines, text, stored))
            self._vectors += stored
            self._text += len(text)
        if (self._lines - self._base.start) % SAVE_EVERY == 0 or self._text > _MOST_TEXT:
            self._save()

    def finish(self) -> None:
        """Save what is left."""
        if self.state.rows + len(self._passages) == self._base.rows:
            self.database.forget(self._base.rows)  # empty lines are not worth resuming
            raise DataError(f"nothing to index: of {self._lines - self._base.start:,} lines none has text")
        self._save()

    def _save(self) -> None:
        """Bring everything to the disk: first the vectors, then the state that says how many of them count."""
        try:
            with self._file.open("ab") as file:
                file.truncate(self._saved_bytes)  # without what a killed process has left
                file.write(self._vectors)
                sync(file)
        except OSError:
            os.truncate(self._file, self._saved_bytes)
            raise
        rows = self.state.rows + len(self._passages)
        state = replace(self.state, lines=self._lines, rows=rows, digest=self.digest.hex)
        self.database.save(UNFINISHED, state, self.state.rows, self._passages)
        self.state = state
        self._passages, self._vectors, self._text = [], bytearray(), 0

    @property
    def _saved_bytes(self) -> int:
        return self.state.rows * self.state.dim * STORED.itemsize
