"""Teachers: frozen encoders whose vectors a student learns from, and their vectors of the pairs of a store."""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import sentencepiece as spm
from numpy.typing import NDArray
from tqdm import tqdm

from xsent.bundle import file_digest
from xsent.errors import BundleError, DataError
from xsent.models import SupportsEncode, open_model
from xsent.train.data.corpus import Pair
from xsent.train.data.teacher_vectors import TeacherVectors

logger = logging.getLogger(__name__)

BATCH = 65_536  # vectors written at a time: what an interruption costs at most
CHUNK = 4096  # sentences encoded at a time
SIDES = ("english", "translation")
MODEL_FILES = {".json", ".model", ".safetensors", ".txt"}  # suffixes of what may move a model's vectors
VISIBLE = re.compile("[!-~]")  # no normaliser drops these


class Teaches(Protocol):
    """What gives vectors to learn from."""

    path: Path
    identity: str
    dim: int

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """Vectors of sentences [n, dim]."""
        ...


class Teacher:
    """A frozen encoder.

    Attributes:
        path: Its folder.
        identity: Hash that changes when the model does, 16 hex digits.
        dim: Length of a vector.
        original: Identity of the teacher whose 8-bit form it is; None where it is no such form.
    """

    def __init__(self, path: Path, encoder: SupportsEncode, identity: str) -> None:
        """Set up a teacher; encodes a word to see what comes."""
        self.original: str | None = getattr(encoder, "original", None)
        self.path, self.identity, self._encoder = path, identity, encoder
        self.dim = int(encoder.encode(["a"]).shape[1])

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, dim].

        Raises:
            DataError: The model gives something that is no number.
        """
        vectors = np.asarray(self._encoder.encode(sentences), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            number = int((~np.isfinite(lengths[:, 0])).argmax())
            raise DataError(f"teacher {self.path}: its vector of {sentences[number][:80]!r} is not finite")
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-12)
        return unit


def open_teacher(path: Path) -> Teacher:
    """Open a bundle, a checkpoint, or a folder of whatever kind `xsent.models.open_model` knows.

    Raises:
        DataError: It is missing, damaged, or of no known kind.
        MissingExtraError: What opens it is not installed.
    """
    try:
        encoder = open_model(path)
    except BundleError as error:
        raise DataError(f"teacher {error}") from error
    return Teacher(path, encoder, getattr(encoder, "fingerprint", None) or files_identity(path))


def files_identity(path: Path) -> str:
    """Identity of the model in a folder: a hash over names and contents of its files; under a second for 100 MB."""
    files = sorted(file for file in path.rglob("*") if file.suffix in MODEL_FILES)
    parts = [(file.relative_to(path).as_posix(), file_digest(file)) for file in files]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def teacher_vectors(
    teacher: Teaches, pairs: Iterable[Pair], needed: NDArray[np.int64], folder: Path, *, key: str, side: int = 0
) -> TeacherVectors:
    """A teacher's vectors of pairs of a store: those on disk, and what is missing is made, in constant memory.

    Args:
        teacher: The teacher.
        pairs: The pairs of the store in its order, see `kept_pairs`; read as far as needed, if at all.
        needed: Numbers of the pairs that will be drawn, each once [n].
        folder: Where caches of this store are kept; each teacher and side has its own.
        key: Identity of the store.
        side: Which side is encoded: 0 English, 1 translation.

    Raises:
        DataError: The cache is damaged or of another store, or there are fewer pairs than the store has.
    """
    name = f"teacher-{teacher.identity}" + ("" if side == 0 else f"-{SIDES[side]}")
    about = {"teacher": teacher.identity, "store": key, "side": SIDES[side]}
    vectors = TeacherVectors(folder / name, dim=teacher.dim, about=about)
    missing = vectors.missing(np.unique(needed))
    if not len(missing):
        return vectors
    there = len(needed) - len(missing)
    logger.info("%s: %d vectors are there, teacher encodes %d more", vectors.path, there, len(missing))
    texts = select_texts(pairs, missing, side)
    encoded = 0
    with tqdm(total=len(needed), initial=there, desc="teacher", unit="pair", disable=None) as bar:
        for start in range(0, len(missing), BATCH):
            numbers = missing[start : start + BATCH]
            batch = list(islice(texts, len(numbers)))
            if len(batch) < len(numbers):
                raise DataError(f"pair {numbers[len(batch)]} of the store is not in the corpus; prepare it again")
            places = {text: place for place, text in enumerate(dict.fromkeys(batch))}  # equal sentences once
            where = np.array([places[text] for text in batch])
            vectors.add(numbers, encode_texts(teacher, list(places), np.bincount(where), bar)[where])
            encoded += len(places)
    logger.info("%s: %d different sentences encoded", vectors.path, encoded)
    return vectors


def encode_texts(teacher: Teaches, texts: list[str], counts: NDArray[np.int64], bar: tqdm) -> NDArray[np.float16]:
    """Vectors of texts [n, dim], in chunks; `counts` says how many pairs each stands for on the progress bar."""
    vectors = np.empty((len(texts), teacher.dim), np.float16)
    for start in range(0, len(texts), CHUNK):
        here = slice(start, start + CHUNK)
        vectors[here] = teacher.encode(texts[here])
        bar.update(int(counts[here].sum()))
    return vectors


def select_texts(pairs: Iterable[Pair], numbers: NDArray[np.int64], side: int) -> Iterator[str]:
    """One side of those pairs of a stream that have the given numbers, which are sorted; reads no further."""
    found = 0
    for number, pair in enumerate(pairs):
        if number == numbers[found]:
            yield (pair.english, pair.translation)[side]
            found += 1
            if found == len(numbers):
                return


def kept_pairs(pairs: Iterable[Pair], tokenizer: Path) -> Iterator[Pair]:
    """Those pairs that a store built with this tokenizer holds, in its order: number i of these is its pair i.

    A store leaves out pairs with a side that the tokenizer makes nothing of. Only a side without any visible ASCII
    character is tokenised to see that.
    """
    processor = spm.SentencePieceProcessor(model_file=str(tokenizer))
    for pair in pairs:
        texts = (pair.english,) if pair.alone else (pair.english, pair.translation)
        if all(VISIBLE.search(text) or processor.encode(text) for text in texts):
            yield pair
