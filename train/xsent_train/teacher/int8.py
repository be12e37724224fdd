"""A teacher in 8 bits, as `xsent-export --format teacher` writes it: nearly the same vectors in a third of the time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xsent.backends.onnx import OnnxBackend
from xsent.backends.threads import available_cpus, ordered_map
from xsent.bundle import GRAPH, TABLE, WEIGHTS
from xsent.errors import DataError
from xsent.files.atomic import as_data_error, read_json
from xsent.similarity import Floats, unit_rows
from xsent_train.teacher.teacher import TOKENIZER, content_identity, read_tokenizer

ABOUT = "teacher.json"
FILES = (GRAPH, TABLE, WEIGHTS, TOKENIZER)
FORMAT_VERSION = 1
REMEDY = "export it again"
SENTENCES_AT_ONCE = 16  # that a thread encodes


class Int8Teacher:
    """A teacher in 8 bits: runs its graph, each sentence alone, one thread a sentence."""

    def __init__(self, path: Path) -> None:
        about = read_json(path / ABOUT, REMEDY)
        if (version := about.get("format_version")) != FORMAT_VERSION:
            raise DataError(f"{path}: teacher of version {version}, this xsent reads {FORMAT_VERSION}; {REMEDY}")
        with as_data_error(path, REMEDY):
            if about["fingerprint"] != content_identity(path, FILES):
                raise ValueError("its files are not those that were exported")
        self.path = path
        self.dim = about["dim"]
        self.fingerprint = about["fingerprint"]
        self.original = about["teacher"]  # identity of the teacher that it was made of
        self._longest = about["max_length"]
        # Without specials: the graph adds the first and the last token.
        self._tokenizer = read_tokenizer(path / TOKENIZER)
        self._backend = OnnxBackend(self)

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Unit vectors of sentences [n, dim]."""
        starts = range(0, len(sentences), SENTENCES_AT_ONCE)
        chunks = (sentences[start : start + SENTENCES_AT_ONCE] for start in starts)
        vectors = list(ordered_map(self._encode, chunks, available_cpus()))
        return np.concatenate(vectors) if vectors else np.zeros((0, self.dim), np.float32)

    def _encode(self, sentences: Sequence[str]) -> Floats:
        read = (self._tokenizer.encode(text, add_special_tokens=False).ids for text in sentences)
        return unit_rows(np.stack([self._backend.embed(np.array(ids[: self._longest], np.int64)) for ids in read]))


def open_int8_teacher(path: Path) -> Int8Teacher | None:
    """The 8-bit teacher in a folder, or None if there is none. Raises DataError or BundleError if it is damaged."""
    return Int8Teacher(path) if (path / ABOUT).is_file() else None
