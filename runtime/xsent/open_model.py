"""Open anything that encodes: a bundle, or a folder that another xsent package can open.

An opener takes a folder and returns an object with `encode(sentences)`, or None if the folder is not of its kind.
"""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import MANIFEST
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, MissingExtraError, in_one_line, install_advice

# Openers in xsent's other packages, imported only for folders that are not bundles: the runtime depends on none.
OPENERS = {
    "checkpoint": "xsent_train.checkpoint:open_encoder",
    "teacher": "xsent_train.teacher.open:open_int8_teacher",
    "sentence-transformers": "xsent_train.teacher.bert:open_sentence_transformer",
}
# Files that identify such folders.
_MARKS = ("checkpoint.json", "teacher.json", "modules.json")


class SupportsEncode(Protocol):
    """Anything that turns sentences into vectors."""

    def encode(self, sentences: list[str], /) -> NDArray[np.floating[Any]]:
        """Vectors [n, D] of n sentences."""


def open_model(path: str | Path | None = None, layers: int | None = None, threads: int | None = None) -> SupportsEncode:
    """Open a bundle (by default the built-in one, with all its layers) or another kind of folder.

    Raises BundleError if the folder is damaged or of an unknown kind, MissingExtraError if the package that opens it
    is not installed.
    """
    if path is None or (Path(path) / MANIFEST).is_file():
        return SentenceEncoder(path, layers=layers, threads=threads)
    path = Path(path)
    if not path.is_dir():
        raise BundleError(f"{path}: no such folder; expected a bundle, a checkpoint or a sentence-transformers model")
    if (layers, threads) != (None, None):
        advice = f"omit layers={layers} and threads={threads}"
        raise BundleError(f"{path}: not a bundle, and only bundles let you choose layers and threads; {advice}")
    missing: ImportError | None = None
    for opener in OPENERS.values():
        try:
            encoder: SupportsEncode | None = resolve_name(opener)(path)
        except MissingExtraError:  # its message names the package to install
            raise
        except ImportError as error:
            missing = error
        else:
            if encoder is not None:
                return encoder
    if missing is not None and any((path / mark).is_file() for mark in _MARKS):
        raise MissingExtraError(
            f"{path}: not a bundle, and {in_one_line(missing)}; {install_advice('train')}"
        ) from missing
    raise BundleError(f"{path}: no model in this folder; known kinds: {', '.join(['bundle', *OPENERS])}")
