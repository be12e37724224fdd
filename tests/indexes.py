"""What tests of indexes share."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.search.index import SearchIndex
from xsent.search.lines import build_index
from xsent.search.store import IndexDatabase

LINES = [f"Anna sees Boris {number} times." if number % 7 else "" for number in range(1, 51)]  # 43 have text


class Stop(Exception):
    """What stops a job."""


class Replay:
    """Stands in for an encoder: a text is the number of its vector; an empty one has none."""

    fingerprint = "0123456789abcdef"
    clean = False
    max_length = 254

    def __init__(self, vectors: NDArray[Any]) -> None:
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.dim = int(vectors.shape[1])

    def dim_of(self, space: None) -> int:
        """Length of its vectors."""
        return self.dim

    def fingerprint_of(self, space: None) -> str:
        """Of its vectors, which lie in one space."""
        return self.fingerprint

    @property
    def words(self) -> "Replay":
        """What it knows about words."""
        return self

    def rarity(self, keys: tuple[str, ...]) -> float:
        """All are rare."""
        return 1

    def nearness(self, query: str, texts: list[str]) -> NDArray[Any]:
        """None is near."""
        return np.zeros(len(texts))

    def encode(self, texts: list[str], **_: object) -> NDArray[Any]:
        """Vectors [n, D]."""
        rows = [self._vectors[int(text)] if text else np.zeros(self.dim) for text in texts]
        return np.array(rows, np.float32).reshape(-1, self.dim)

    def encode_items(
        self, items: Iterable[Any], text: Callable[[Any], str] = str, **_: object
    ) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Items with their vectors [D]."""
        for item in items:
            yield item, self.encode([text(item)])[0].astype(np.float16)


def replayed(path: Path, vectors: NDArray[Any], **options: bool) -> tuple[SearchIndex, Any]:
    """An index of these vectors, and what encodes its queries."""
    encoder: Any = Replay(vectors)
    build_index(path, map(str, range(len(vectors))), encoder, **options)
    return SearchIndex(path), encoder


def until(lines: Iterable[str], count: int) -> Iterator[str]:
    """The first lines; then something goes wrong."""
    for number, line in enumerate(lines):
        if number == count:
            raise Stop
        yield line


def contents(folder: Path) -> dict[str, object]:
    """Everything in an index: its files, and instead of the database what is in that."""
    found: dict[str, object] = {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".db"}
    database = IndexDatabase(folder)
    state = database.state()
    return {**found, "state": state, "passages": database.passages(0, state.rows), "documents": database.documents()}


def overwrite(file: Path, place: int, data: bytes) -> None:
    content = bytearray(file.read_bytes())
    content[place : place + len(data)] = data
    file.write_bytes(content)


@pytest.fixture(scope="module")
def encoder(mini_bundle: Path) -> SentenceEncoder:
    return SentenceEncoder(mini_bundle, threads=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.index"


@pytest.fixture
def made(path: Path, encoder: SentenceEncoder) -> Path:
    build_index(path, LINES, encoder)
    return path
