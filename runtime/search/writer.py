"""How an index grows: passages and their vectors wait in memory, and are saved together."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from xsent.files import sync
from xsent.options import Vectors
from xsent.search.database import INDEX, VECTORS, IndexDatabase
from xsent.search.records import IndexState, Passage, StoredDocument
from xsent.search.vectors import STORED, check_length

SAVE_EVERY = 10_000  # passages: about a minute's work on a Raspberry Pi

_MOST_TEXT = 1 << 22  # characters that wait to be saved


class IndexWriter:
    """Appends passages to what a folder has; what was saved outlives errors and kills."""

    def __init__(self, folder: Path, state: IndexState) -> None:
        self.folder = folder
        self.database = IndexDatabase(folder, create=True)
        self.close = self.database.close
        self._file = folder / VECTORS
        self._clear(state)

    @property
    def rows(self) -> int:
        """Those that are saved, and those that wait."""
        return self.state.rows + len(self._passages)

    @property
    def is_full(self) -> bool:
        """Whether enough waits to be saved."""
        return self._waiting >= SAVE_EVERY or self._text > _MOST_TEXT

    def begin(self, state: IndexState) -> None:
        """Go on from a state."""
        self._clear(state)
        if state.rows:
            check_length(self._file, self._saved_bytes)

    def append(self, source: str, line: int, text: str, vector: Vectors) -> None:
        """Add a passage and its vector [D]; one whose vector is zero would never be found and is left out."""
        self._waiting += 1
        if vector.any():
            stored = vector.astype(STORED, copy=False).tobytes()
            self._vectors += stored  # before the passage: a vector too many is no harm
            self._passages.append(Passage.of(source, line, text, stored))
            self._text += len(text)

    def save(
        self,
        state: IndexState,
        name: str = INDEX,
        *,
        documents: Iterable[StoredDocument] = (),
        remove: Iterable[str] = (),
    ) -> None:
        """Bring everything to the disk: first the vectors, then the state, which says how many of them count."""
        try:
            with self._file.open("ab") as file:
                file.truncate(self._saved_bytes)  # without what a killed process has left
                file.write(self._vectors)
                sync(file)
        except OSError:
            os.truncate(self._file, self._saved_bytes)
            raise
        state = replace(state, rows=self.rows)
        self.database.save(
            state, name, first=self.state.rows, passages=self._passages, documents=documents, remove=remove
        )
        self._clear(state)

    def _clear(self, state: IndexState) -> None:
        self.state = state  # what is saved
        self._passages: list[Passage] = []  # that wait, with their vectors
        self._vectors = bytearray()
        self._text = self._waiting = 0  # their characters; how many came

    @property
    def _saved_bytes(self) -> int:
        return self.state.rows * self.state.dim * STORED.itemsize
