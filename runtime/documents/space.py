"""What LAWDR learns of a corpus, and the folder that keeps it: subspaces and densities of some languages.

Gong et al. 2021, "LAWDR: Language-Agnostic Weighted Document Representations from Pre-trained Models". Nothing in the
folder is pickled; its fingerprint covers the sentence encoder and every number. Shapes: n sentences, p points of the
corpus, D dimensions, d = 16 of them left.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import same_space
from xsent.documents.subspace import Doubles, Floats, Moments, RankChoice, dominant_directions, remove_directions
from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_folder, existing, load_arrays, naming_damage, read_json, read_plain, to_json

FORMAT_VERSION = 1
_ABOUT, _ARRAYS = "documents.json", "documents.npz"

DIMENSIONS = 16
FOLDS = 5
BANDWIDTHS = 20  # tried between the smallest possible and the largest useful one
_BLOCK = 512  # sentences compared with all points at once: 40 MiB with 10,000 points
_SLACK = 1 + 1e-6  # of a squared distance: rounding must not decide whether a pair on the edge counts
_SAME = 3e-5  # of the vectors' length: points no further apart differ by rounding alone


@dataclass(frozen=True)
class Density:
    """How common a sentence is in a corpus: kernel density with a top-hat kernel (sections 4.1 and 10.2).

    The density of a point is the share of the corpus within a ball around it, over the ball's volume, which is the same
    everywhere and cancels in the weight of equation 3, w = b / (b + P) with b half the mean P: here it is the share.
    """

    center: Floats  # mean vector of the corpus [D]
    axes: Floats  # principal axes [d, D]
    points: Floats  # the corpus's sentences on these axes [p, d]
    bandwidth: float  # radius of the ball
    scale: float  # half the mean density of the points, the b of equation 3

    @classmethod
    def fit(cls, vectors: Floats) -> "Density":
        """Fit a density on sentence vectors [p, D], enough of them; takes time that grows with the square of p."""
        if len(vectors) <= DIMENSIONS:
            raise ValueError(
                f"{len(vectors)} sentences are too few to estimate a density in {DIMENSIONS} dimensions, at least "
                f"{DIMENSIONS + 1} are needed; fit on more text, or without weights (--no-weights)"
            )
        moments = Moments.of(vectors)
        mean = moments.total / moments.count
        axes = dominant_directions(moments.gram / moments.count - np.outer(mean, mean), DIMENSIONS)
        center, axes32 = mean.astype(np.float32), axes.astype(np.float32)
        points = _project(vectors, center, axes32).astype(np.float32)
        length = float(np.sqrt(np.trace(moments.gram) / moments.count))
        bandwidth = max(choose_bandwidth(points), _SAME * length)
        unscaled = cls(center, axes32, points, bandwidth, 0.0)
        return replace(unscaled, scale=float(unscaled.of(vectors).mean()) / 2)

    def of(self, vectors: Floats) -> Doubles:
        """Densities [n] of sentence vectors [n, D]: the share of the corpus that is near, between 0 and 1."""
        places = _project(vectors, self.center, self.axes)
        points = self.points.astype(np.float64)
        bound = _SLACK * self.bandwidth**2
        blocks = np.split(places, range(_BLOCK, len(places), _BLOCK))
        return np.concatenate([(_squared_distances(block, points) <= bound).mean(axis=1) for block in blocks])

    def weights(self, vectors: Floats) -> Floats:
        """Weights [n] of sentence vectors [n, D] (equation 3): from near 0 for what is common to 1 for what is new."""
        weights: Doubles = self.scale / (self.scale + self.of(vectors))
        return weights.astype(np.float32)


def choose_bandwidth(points: Floats) -> float:
    """The radius under which held-out points [p, d], more than one, are most likely, by 5-fold cross-validation (10.2).

    A held-out point with no other in its ball has no likelihood at all, so no radius below the largest distance from
    a held-out point to its nearest is possible: the search begins there, and ends where every ball holds everything.
    """
    rows = points.astype(np.float64)
    folds = [np.arange(fold, len(rows), FOLDS) for fold in range(min(FOLDS, len(rows)))]
    least = most = 0.0
    for distances in _held_out_distances(rows, folds):
        least, most = max(least, float(distances.min(axis=1).max())), max(most, float(distances.max()))
    if least == 0:  # every point has a twin
        return 0.0
    bounds = np.geomspace(least, most, BANDWIDTHS)  # squared
    likelihood = np.zeros(BANDWIDTHS)
    for distances in _held_out_distances(rows, folds):
        for number, bound in enumerate(_SLACK * bounds):
            likelihood[number] += np.log((distances <= bound).mean(axis=1)).sum()
    likelihood -= len(rows) * points.shape[1] / 2 * np.log(bounds)  # the ball's volume grows with radius ** d
    return float(np.sqrt(bounds[likelihood.argmax()]))


def _held_out_distances(rows: Doubles, folds: list[NDArray[np.int64]]) -> Iterator[Doubles]:
    """Squared distances [block, p - fold] of each fold's points to those of the other folds, in blocks."""
    for fold in folds:
        others = np.delete(rows, fold, axis=0)
        for start in range(0, len(fold), _BLOCK):
            yield _squared_distances(rows[fold[start : start + _BLOCK]], others)


def _squared_distances(a: Doubles, b: Doubles) -> Doubles:
    """Of every row of `a` to every row of `b`, in double precision; never below 0."""
    squares: Doubles = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    np.maximum(squares, 0, out=squares)
    return squares


def _project(vectors: Floats, center: Floats, axes: Floats) -> Doubles:
    """Places of vectors [n, D] on the axes [n, d]."""
    places: Doubles = (vectors.astype(np.float64) - center) @ axes.T.astype(np.float64)
    return places


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

    encoder: str  #: fingerprint of the sentence encoder
    languages: Mapping[str, LanguageSpace]  #: by code
    choice: RankChoice  #: how many directions are removed, and why

    @property
    def fingerprint(self) -> str:
        """Identity of the space of document vectors."""
        digest = hashlib.sha256(self.encoder.encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(f"\n{name} {array.shape} {array.dtype.str}\n".encode() + array.tobytes())
        return digest.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write a folder; a FileExistsError says that there is something of that name."""
        if path.exists():
            raise existing(path, "exists; choose another name or remove it")
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
                np.savez(file, **self._arrays())  # type: ignore[arg-type]  # none is called as its options

    @classmethod
    def load(cls, path: Path, encoder: str) -> Self:
        """Read a folder that belongs to the encoder of a fingerprint; see `DocumentEncoder.load`."""
        remedy = "fit the documents again"
        with naming_damage(path, remedy):
            about = read_json(path / _ABOUT, remedy)
            if about["format_version"] != FORMAT_VERSION:
                raise DataError(
                    f"{path}: format version {about['format_version']!r}, this version of xsent reads "
                    f"{FORMAT_VERSION}; fit the documents again"
                )
            if not same_space(about["encoder"], encoder):
                raise FingerprintError(
                    f"{path} was fitted on sentence vectors of {about['encoder']}, this model gives those of "
                    f"{encoder}: use the model it was fitted with, or fit again"
                )
            arrays = load_arrays(read_plain(path / _ARRAYS))
            languages = {code: _language(arrays, code, weighted) for code, weighted in about["languages"].items()}
            space = cls(about["encoder"], languages, RankChoice(about["rank"], tuple(about["accuracies"])))
            if space.fingerprint != about["fingerprint"]:
                raise ValueError("its fingerprint is not that of its content")
        return space

    def _arrays(self) -> dict[str, NDArray[Any]]:
        parts = {
            code: {"directions": known.directions, **(vars(known.density) if known.density else {})}
            for code, known in self.languages.items()
        }
        return {f"{code}/{name}": np.asarray(value) for code, part in parts.items() for name, value in part.items()}


def _language(arrays: Mapping[str, NDArray[Any]], code: str, weighted: bool) -> LanguageSpace:
    density = None
    if weighted:
        center, axes, points, bandwidth, scale = (arrays[f"{code}/{name}"] for name in Density.__annotations__)
        density = Density(center, axes, points, float(bandwidth), float(scale))
    return LanguageSpace(arrays[f"{code}/directions"], density)
