"""A teacher in 8 bits, as `xsent-export --format teacher` writes it: the same vectors in a third of the time."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import GRAPH, TABLE, WEIGHTS, file_digest
from xsent.errors import DataError, MissingExtraError
from xsent.onnx_backend import OnnxBackend
from xsent.similarity import unit_rows
from xsent.threads import available_cpus, ordered_map

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ABOUT, TOKENIZER = "teacher.json", "tokenizer.json"
FILES = (GRAPH, TABLE, WEIGHTS, TOKENIZER)
FORMAT_VERSION = 1
CHUNK = 16  # sentences handed to a thread at once


class QuickTeacher:
    """Runs the graph of a teacher, each sentence alone, one thread a sentence.

    Attributes:
        fingerprint: Identity of its vector space.
        original: Identity of the teacher that it was made of.

    Raises:
        BundleError: The graph cannot be loaded.
        DataError: The folder is damaged.
        MissingExtraError: The library that reads its tokenizer is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.graph_path, about = path / GRAPH, _read(path)
        self.dim, self.fingerprint, self._longest = about["dim"], about["fingerprint"], about["max_length"]
        self.original = about["teacher"]
        self._tokenizer = read_tokenizer(path)  # without specials: the graph adds the first and the last token
        self._backend = OnnxBackend(self)

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, dim]."""
        chunks = (sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK))
        vectors = list(ordered_map(self._encode, chunks, available_cpus()))
        return np.concatenate(vectors) if vectors else np.zeros((0, self.dim), np.float32)

    def _encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        read = (self._tokenizer.encode(text, add_special_tokens=False).ids for text in sentences)
        return unit_rows(np.stack([self._backend.embed(np.array(ids[: self._longest], np.int64)) for ids in read]))


def read_tokenizer(path: Path) -> "Tokenizer":
    """The tokenizer in a teacher's folder, without limits of length.

    Raises:
        DataError: It cannot be read.
        MissingExtraError: The library is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(f"{path}: needs tokenizers; pip install 'xsent[teacher]'") from error
    try:
        tokenizer = Tokenizer.from_file(str(path / TOKENIZER))
    except Exception as error:  # the library raises nothing more exact
        raise DataError(f"{path / TOKENIZER}: cannot be read as a tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def fingerprint(path: Path) -> str:
    """Identity of the vector space of a folder's files."""
    digests = [file_digest(path / name) for name in FILES]
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()[:16]


def open_quick_teacher(path: Path) -> QuickTeacher | None:
    """The teacher in a folder of `xsent-export --format teacher`, or None where the folder is something else.

    Raises:
        DataError: The folder is damaged, or of an unknown version.
        MissingExtraError: The library that reads its tokenizer is not installed.
    """
    return QuickTeacher(path) if (path / ABOUT).is_file() else None


def _read(path: Path) -> dict[str, Any]:
    """What a folder says about itself."""
    try:
        about: dict[str, Any] = json.loads((path / ABOUT).read_bytes())
        version = about["format_version"]
        whole = about["fingerprint"] == fingerprint(path)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{path}: not a readable teacher ({error}); export it again") from error
    if version != FORMAT_VERSION:
        raise DataError(f"{path}: teacher of version {version}, this xsent reads {FORMAT_VERSION}; export it again")
    if not whole:
        raise DataError(f"{path}: damaged, its files are not those that were exported; export it again")
    return about
