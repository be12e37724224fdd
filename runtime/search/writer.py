"""Appending lines to the folder of an index."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from xsent.errors import DataError
from xsent.options import Vectors
from xsent.search.growing_file import GrowingFile
from xsent.search.manifest import GROWING, ROW_TYPE, ROWS, TEXTS, VECTORS, IndexManifest
from xsent.search.vectors import STORED


class IndexWriter:
    """Appends lines with their vectors; a context manager, whose end drops what was not saved.

    Args:
        folder: The index, or the folder where a new one grows.
        state: What is there; its lines after `state.start` are of this addition.

    Attributes:
        lines: Lines in the index by now.
        rows: Those that have a vector.

    Raises:
        DataError: A file is not what it was.
    """

    def __init__(self, folder: Path, state: IndexManifest) -> None:
        self._folder = folder
        self._state = state
        self.lines = state.lines
        self.rows = state.rows
        self._input = hashlib.sha256()
        with ExitStack() as stack:
            self._files = {
                name: stack.enter_context(closing(GrowingFile(folder / name, state.files[name]))) for name in GROWING
            }
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def skip_known(self, texts: Iterable[str]) -> Iterator[str]:
        """Pass over the lines that were saved before the job was stopped.

        Args:
            texts: The lines of this addition, from the first.

        Yields:
            Those that are still to be added.

        Raises:
            DataError: The first lines are not those that were saved.
        """
        source = iter(texts)
        known = self._state.lines - self._state.start
        for _, text in zip(range(known), source, strict=False):  # the range first: it must not cost a line more
            self._note(text)
        if self._input.hexdigest() != self._state.input:
            raise DataError(
                f"{self._folder}: the input does not begin with the {known:,} lines that were read before it was "
                "stopped; resume with the same input, or start again with --force"
            )
        yield from source

    def add(self, text: str, vector: Vectors) -> None:
        """Append a line and its vector [D]; a line whose vector is zero is counted, but never found."""
        self._note(text)
        self.lines += 1
        if vector.any():
            self.rows += 1
            self._files[TEXTS].write(f"{text}\n".encode())
            self._files[VECTORS].write(vector.astype(STORED, copy=False).tobytes())
            self._files[ROWS].write(np.array([self.lines, self._files[TEXTS].size], ROW_TYPE).tobytes())

    def save(self) -> IndexManifest:
        """Bring everything to the disk; a manifest that is written next makes it part of the index."""
        return replace(
            self._state,
            lines=self.lines,
            rows=self.rows,
            input=self._input.hexdigest(),
            files={**self._state.files, **{name: file.save() for name, file in self._files.items()}},
        )

    def _note(self, text: str) -> None:
        self._input.update(f"{text}\n".encode())
