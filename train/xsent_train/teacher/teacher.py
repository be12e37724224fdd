"""Teachers: frozen models whose vectors a student learns from.

`Teaches` is the interface that a training uses; `Teacher` makes it of any encoder of texts.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from xsent.bundle import file_digest
from xsent.errors import DataError, require_extra
from xsent.open_model import SupportsEncode
from xsent.similarity import Floats
from xsent_train.data.corpus import Pair

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL_FILES = {".json", ".model", ".safetensors", ".txt"}  # suffixes of files that can change a model's vectors
TOKENIZER = "tokenizer.json"


class Teaches(Protocol):
    """A source of vectors to learn from, of `dim` numbers; `identity` changes when they do."""

    dim: int

    @property
    def identity(self) -> str:
        """Identity of its vectors."""
        ...

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """The vectors that the student is to give for both sides of pairs [n, dim]."""
        ...


class Teacher:
    """An encoder as a teacher; its identity, 16 hex digits, changes when the model does."""

    def __init__(self, path: Path, encoder: SupportsEncode, identity: str) -> None:
        # The identity of the teacher whose 8-bit form it is; None where it is no such form.
        self.original: str | None = getattr(encoder, "original", None)
        self.languages = tuple(getattr(encoder, "languages", ()))  # that it knows; empty where it does not say
        self.path = path
        self.identity = identity
        self._encoder = encoder
        self.dim = int(encoder.encode(["a"]).shape[1])

    def encode(self, sentences: list[str]) -> Floats:
        """Unit vectors of sentences [n, dim]. Raises DataError if a number of the model is not finite."""
        vectors = np.asarray(self._encoder.encode(sentences), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            number = int((~np.isfinite(lengths[:, 0])).argmax())
            raise DataError(f"teacher {self.path}: its vector of {sentences[number][:80]!r} is not finite")
        unit: Floats = vectors / np.maximum(lengths, 1e-12)
        return unit

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """See `Teaches`: its vectors of the English sides."""
        return english_targets(self.encode, pairs)


def english_targets(encode: Callable[[list[str]], Floats], pairs: Sequence[Pair]) -> Floats:
    """The vectors of the English sides of pairs [n, dim]; equal sentences are encoded once."""
    places = {text: place for place, text in enumerate(dict.fromkeys(pair.english for pair in pairs))}
    return encode(list(places))[[places[pair.english] for pair in pairs]]


def files_identity(path: Path) -> str:
    """Identity of the model in a folder: a hash over names and contents of its files; under a second for 100 MB."""
    files = sorted(file for file in path.rglob("*") if file.suffix in MODEL_FILES)
    return short_hash([(file.relative_to(path).as_posix(), file_digest(file)) for file in files])


def content_identity(path: Path, names: Sequence[str]) -> str:
    """Identity of the contents of some files of a folder, whatever the folder is called."""
    return short_hash([file_digest(path / name) for name in names])


def short_hash(parts: object) -> str:
    """16 hex digits for a value that JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def read_tokenizer(file: Path) -> "Tokenizer":
    """A tokenizer, without limits of length. Raises DataError if it cannot be read."""
    with require_extra("teacher"):
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more exact
        raise DataError(f"{file}: cannot be read as a tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
