"""Opening whatever encodes: a bundle, or a model that another room or package knows to open.

Others offer a function under the entry-point group `xsent.encoders`. It takes a folder and returns an object
with `encode(sentences)`, or None if the folder is not of its kind. So imports keep pointing to the runtime.
"""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import MANIFEST
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, MissingExtraError

GROUP = "xsent.encoders"
# What tells the folders that others open: a checkpoint, one of sentence-transformers, and one in 8 bits.
_MARKS = ("checkpoint.json", "modules.json", "teacher.json")


class SupportsEncode(Protocol):
    """Anything that turns sentences into vectors."""

    def encode(self, sentences: list[str], /) -> NDArray[np.floating[Any]]:
        """Vectors [n, D] of n sentences."""


def open_model(path: str | Path | None = None, layers: int | None = None) -> SupportsEncode:
    """Open a bundle, by default the one that ships with the package and with all its layers, or another kind of folder.

    A BundleError says that it is of no known kind or damaged, a MissingExtraError that what might open it is missing.
    """
    if path is None or (Path(path) / MANIFEST).is_file():
        return SentenceEncoder(path, layers=layers)
    path = Path(path)
    if not path.is_dir():
        raise BundleError(f"{path}: no such folder; expected a bundle, a checkpoint or one of sentence-transformers")
    if layers is not None:
        raise BundleError(f"{path}: no bundle, and only those run fewer layers; leave layers={layers} out")
    missing: ImportError | None = None
    offered = entry_points(group=GROUP)
    for entry in offered:
        try:
            encoder: SupportsEncode | None = entry.load()(path)
        except MissingExtraError:  # it says what to install
            raise
        except ImportError as error:
            missing = error
        else:
            if encoder is not None:
                return encoder
    if missing is not None and any((path / mark).is_file() for mark in _MARKS):
        raise MissingExtraError(f"{path}: no bundle, and {missing}; pip install xsent[train]") from missing
    names = ["bundle", *(entry.name for entry in offered)]
    raise BundleError(f"{path}: no model in this folder; known kinds: {', '.join(names)}")
