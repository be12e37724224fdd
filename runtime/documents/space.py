"""What LAWDR learns of a corpus, and the folder that keeps it: subspaces and densities of some languages.

Nothing in the folder is pickled; its fingerprint covers the sentence encoder and every number.
"""

import errno
import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent.documents.density import Density
from xsent.documents.subspace import Floats, RankChoice, remove_directions
from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_folder, naming_damage, read_json, to_json

FORMAT_VERSION = 1
_ABOUT, _ARRAYS = "documents.json", "documents.npz"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class LanguageSpace:
    """What is known of a language."""

    directions: Floats  # what to remove from its sentence vectors [m, D]
    density: Density | None  # where its sentence weights come from; None weights all alike

    def document(self, sentences: Floats) -> Floats:
        """The vector [D] of a document's sentence vectors [s, D]: the weighted sum of debiased ones (equation 3)."""
        clean = remove_directions(sentences, self.directions)
        total: Floats = clean.sum(axis=0) if self.density is None else self.density.weights(sentences) @ clean
        return total


@dataclass(frozen=True)
class DocumentSpace:
    """All that was fitted."""

    encoder: str  # fingerprint of the sentence encoder
    languages: Mapping[str, LanguageSpace]  # by code
    choice: RankChoice  # how many directions are removed, and why

    @property
    def fingerprint(self) -> str:
        """Identity of the space of document vectors."""
        digest = hashlib.sha256(self.encoder.encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(f"\n{name} {array.shape} {array.dtype.str}\n".encode() + array.tobytes())
        return digest.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write a folder.

        Raises:
            FileExistsError: There is something of that name.
        """
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists; choose another name or remove it", str(path))
        about = {
            "format_version": FORMAT_VERSION,
            "encoder": self.encoder,
            "fingerprint": self.fingerprint,
            "languages": {code: known.density is not None for code, known in self.languages.items()},
            **asdict(self.choice),
        }
        with atomic_folder(path) as folder:
            (folder / _ABOUT).write_bytes(to_json(about))
            with (folder / _ARRAYS).open("wb") as file:
                np.savez(file, allow_pickle=False, **self._arrays())

    @classmethod
    def load(cls, path: Path, encoder: str) -> Self:
        """Read a folder.

        Args:
            path: The folder.
            encoder: Fingerprint of the sentence encoder that it shall belong to.

        Raises:
            DataError: The folder is missing, damaged or of an unknown version.
            FingerprintError: It belongs to another sentence encoder.
        """
        remedy = "fit the documents again"
        with naming_damage(path, remedy, zipfile.BadZipFile, zlib.error):
            about = read_json(path / _ABOUT, remedy)
            if about["format_version"] != FORMAT_VERSION:
                raise DataError(
                    f"{path}: format version {about['format_version']!r}, this version of xsent reads "
                    f"{FORMAT_VERSION}; fit the documents again"
                )
            if about["encoder"] != encoder:
                raise FingerprintError(
                    f"{path} was fitted on sentence vectors of {about['encoder']}, this model gives those of "
                    f"{encoder}: use the model it was fitted with, or fit again"
                )
            with (path / _ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                languages = {code: _language(arrays, code, weighted) for code, weighted in about["languages"].items()}
            space = cls(encoder, languages, RankChoice(about["rank"], tuple(about["accuracies"])))
            if space.fingerprint != about["fingerprint"]:
                raise ValueError("its fingerprint is not that of its content")
        return space

    def _arrays(self) -> Arrays:
        arrays: Arrays = {}
        for code, known in self.languages.items():
            arrays[f"{code}/directions"] = known.directions
            if known.density is not None:
                arrays |= {f"{code}/{name}": np.asarray(value) for name, value in vars(known.density).items()}
        return arrays


def _language(arrays: Mapping[str, NDArray[Any]], code: str, weighted: bool) -> LanguageSpace:
    density = None
    if weighted:
        center, axes, points, bandwidth, scale = (
            arrays[f"{code}/{name}"] for name in ("center", "axes", "points", "bandwidth", "scale")
        )
        density = Density(center, axes, points, float(bandwidth), float(scale))
    return LanguageSpace(arrays[f"{code}/directions"], density)
