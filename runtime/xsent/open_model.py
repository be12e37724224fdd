"""Opening anything that encodes: a bundle, or another kind of folder that a room of ours can open."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import MANIFEST
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, MissingExtraError

# Openers by the kind of folder, imported when one is no bundle: the runtime imports no other room. An opener takes a
# folder and returns an object with `encode(sentences)`, or None if the folder is not of its kind.
OPENERS = {
    "checkpoint": "xsent_train.checkpoint:open_encoder",
    "teacher": "xsent_train.teacher.teacher:open_int8_teacher",
    "sentence-transformers": "xsent_train.teacher.bert:open_sentence_transformer",
}
# Files that tell such folders.
_MARKS = ("checkpoint.json", "teacher.json", "modules.json")


class SupportsEncode(Protocol):
    """Anything that turns sentences into vectors."""

    def encode(self, sentences: list[str], /) -> NDArray[np.floating[Any]]:
        """Vectors [n, D] of n sentences."""


def open_model(path: str | Path | None = None, layers: int | None = None, threads: int | None = None) -> SupportsEncode:
    """Open a bundle, by default the built-in one and with all its layers, or another kind of folder.

    Raises BundleError if the folder is of no known kind or damaged, MissingExtraError if the package that opens it is
    not installed.
    """
    if path is None or (Path(path) / MANIFEST).is_file():
        return SentenceEncoder(path, layers=layers, threads=threads)
    path = Path(path)
    if not path.is_dir():
        raise BundleError(f"{path}: no such folder; expected a bundle, a checkpoint or one of sentence-transformers")
    if (layers, threads) != (None, None):
        advice = f"leave layers={layers} and threads={threads} out"
        raise BundleError(f"{path}: no bundle, and only those have a choice of layers and threads; {advice}")
    missing: ImportError | None = None
    for opener in OPENERS.values():
        try:
            encoder: SupportsEncode | None = resolve_name(opener)(path)
        except MissingExtraError:  # it says what to install
            raise
        except ImportError as error:
            missing = error
        else:
            if encoder is not None:
                return encoder
    if missing is not None and any((path / mark).is_file() for mark in _MARKS):
        raise MissingExtraError(f"{path}: no bundle, and {missing}; pip install xsent[train]") from missing
    raise BundleError(f"{path}: no model in this folder; known kinds: {', '.join(['bundle', *OPENERS])}")
