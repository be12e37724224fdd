"""The space of document vectors fitted by LAWDR (Gong et al. 2021): subspace and density of each language.

- The subspace of a language: the dominant directions of its sentence vectors, which are removed from them;
  `choose_rank` determines how many.
- The density of a language: how common a sentence is in the corpus. Rare sentences have more weight.
- The folder that stores both.

Shapes: n sentences, D dimensions, m directions, p points of a density, d of its dimensions, K languages.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.files.atomic import (
    as_data_error,
    atomic_folder,
    file_exists_error,
    load_arrays,
    read_json,
    read_plain,
    to_json,
)
from xsent.fingerprint import same_space
from xsent.similarity import Floats

Doubles = NDArray[np.float64]

FORMAT_VERSION = 1
_ABOUT = "documents.json"
_ARRAYS = "documents.npz"

SAMPLE = 10_000  # sentence vectors kept per language
_SAMPLE_BLOCK = 1024  # vectors summed up at once

# Section 10.2 stops below 55 % for two languages: a tenth of the way from chance, 50 %, to certainty.
_ABOVE_CHANCE = 0.1
_RIDGE = 1e-3  # times the mean variance of a dimension: keeps the classifier solvable with few sentences

DIMENSIONS = 16  # of a density
FOLDS = 5
BANDWIDTHS = 20  # tried between the smallest possible and the largest useful one
_BLOCK = 512  # sentences compared with all points at once: 40 MiB with 10,000 points
_SLACK = 1 + 1e-6  # factor of a squared distance: rounding must not decide whether a pair on the edge counts
_SAME = 3e-5  # times the vectors' length: points no farther apart differ only by rounding


@dataclass(frozen=True)
class Moments:
    """Sums over sentence vectors."""

    count: int  # number of vectors
    total: Doubles  # sum of the vectors [D]
    gram: Doubles  # sum of their outer products [D, D]

    @classmethod
    def of(cls, vectors: Floats) -> "Moments":
        """The moments of vectors [n, D]."""
        rows = vectors.astype(np.float64)
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.count + other.count, self.total + other.total, self.gram + other.gram)

    def directions(self, rank: int) -> Floats:
        """The dominant directions [rank, D], best first: the right-singular vectors of the uncentred vectors."""
        return dominant_directions(self.gram, rank).astype(np.float32)


@dataclass(frozen=True)
class LanguageSurvey:
    """Statistics of a language's sentence vectors, in bounded memory."""

    train: Moments  # of the training sentences
    held_out: Moments  # of the test sentences
    sample: Floats  # random vectors of both [n, D], at most `SAMPLE`, training sentences first
    held_out_sample: Floats  # the test sentences among them


def survey(vectors: Iterable[NDArray[Any]], held_out: NDArray[np.bool_], dim: int) -> LanguageSurvey:
    """Summarise the sentence vectors [D] of a language in one pass; `held_out` [n] marks those for testing."""
    kept = np.zeros(len(held_out), bool)
    kept[np.random.default_rng(0).permutation(len(held_out))[:SAMPLE]] = True
    none = np.empty((0, dim), np.float32)
    moments = {side: Moments.of(none) for side in (False, True)}
    samples = {side: [none] for side in moments}
    stream = iter(vectors)
    for start in range(0, len(held_out), _SAMPLE_BLOCK):
        rows = np.stack(list(islice(stream, _SAMPLE_BLOCK))).astype(np.float32, copy=False)
        where = slice(start, start + len(rows))
        for side in moments:
            moments[side] += Moments.of(rows[held_out[where] == side])
            samples[side].append(rows[(held_out[where] == side) & kept[where]])
    sample = np.concatenate(samples[False] + samples[True])
    return LanguageSurvey(moments[False], moments[True], sample, np.concatenate(samples[True]))


def dominant_directions(gram: Doubles, rank: int) -> Doubles:
    """The `rank` eigenvectors of largest eigenvalue of a Gram matrix [D, D], as rows [rank, D].

    The sign is arbitrary; it is chosen so that the largest number of each is positive.
    """
    _, vectors = np.linalg.eigh(gram)  # ascending
    rows: Doubles = vectors.T[::-1][:rank]
    largest = np.abs(rows).argmax(axis=1)
    return rows * np.where(rows[np.arange(len(rows)), largest] < 0, -1.0, 1.0)[:, None]


def remove_directions(vectors: Floats, directions: Floats) -> Floats:
    """Remove the components of vectors [n, D] along orthonormal directions [m, D] (LAWDR, section 3.2)."""
    return (vectors - (vectors @ directions.T) @ directions).astype(np.float32, copy=False)


@dataclass(frozen=True)
class RankChoice:
    """How many directions to remove, and why."""

    rank: int  #: number of directions to remove (m)
    #: held-out accuracy of a linear language classifier after removing the first 0, 1, ..., m directions
    accuracies: tuple[float, ...]


def choose_rank(train: Sequence[Moments], held_out: Sequence[Floats]) -> RankChoice:
    """The fewest directions after whose removal a linear classifier cannot tell the languages apart (section 10.1).

    "Cannot tell apart" means an accuracy below a tenth of the way from chance to certainty: the paper's 55 % for two
    languages. The classifier is linear least squares on one-hot languages of equal weight, instead of the paper's
    support vector machine: the moments are enough to fit it, so every number from 0 up is tried. Raises ValueError if
    removing half of the directions is not enough.
    """
    languages = len(train)
    if languages < 2:
        return RankChoice(0, ())
    limit = min(len(train[0].total), *(moments.count for moments in train)) // 2
    bar = 1 / languages + _ABOVE_CHANCE * (1 - 1 / languages)
    grams = [moments.gram / moments.count for moments in train]
    means = np.stack([moments.total / moments.count for moments in train])
    tests = [rows.astype(np.float64) for rows in held_out]
    axes = [dominant_directions(gram, limit) for gram in grams]
    accuracies = [_language_accuracy(grams, means, tests)]
    while accuracies[-1] >= bar:
        rank = len(accuracies) - 1
        if rank == limit:
            raise ValueError(
                f"a classifier still tells the languages apart after removing {rank} directions: accuracy "
                f"{100 * min(accuracies):.1f} %, expected below {100 * bar:.1f} %; fit on more text, or set the rank"
            )
        for number in range(languages):
            axis = axes[number][rank]
            grams[number] -= (axis @ grams[number] @ axis) * np.outer(axis, axis)  # axis is an eigenvector
            means[number] -= (means[number] @ axis) * axis
            tests[number] -= np.outer(tests[number] @ axis, axis)
        accuracies.append(_language_accuracy(grams, means, tests))
    return RankChoice(len(accuracies) - 1, tuple(accuracies))


def _language_accuracy(grams: Sequence[Doubles], means: Doubles, tests: Sequence[Doubles]) -> float:
    """Fit a least-squares classifier on moments and test it; returns the mean accuracy over languages.

    With one-hot targets and languages of the same weight, the normal equations are S W = M - mean(M), up to a factor,
    where S is the covariance of all vectors and M has the languages' mean vectors.
    """
    center = means.mean(axis=0)
    covariance = np.mean(grams, axis=0) - np.outer(center, center)
    ridge = _RIDGE * np.trace(covariance) / len(center) + np.finfo(np.float64).tiny
    covariance[np.diag_indices_from(covariance)] += ridge
    weights = np.linalg.solve(covariance, (means - center).T)  # [D, K]
    found = [((rows - center) @ weights).argmax(axis=1) for rows in tests]
    return float(np.mean([np.mean(answers == number) for number, answers in enumerate(found)]))


@dataclass(frozen=True)
class Density:
    """How common a sentence is in a corpus: kernel density with a top-hat kernel (sections 4.1 and 10.2).

    The density P of a point is the share of the corpus within a ball around it. It is not divided by the ball's volume,
    which is the same everywhere and cancels in the weight of equation 3, w = b / (b + P) with b half the mean P.
    """

    center: Floats  # mean vector of the corpus [D]
    axes: Floats  # principal axes [d, D]
    points: Floats  # the corpus's sentences on these axes [p, d]
    bandwidth: float  # radius of the ball
    scale: float  # half the mean density of the points, the b of equation 3

    @classmethod
    def fit(cls, vectors: Floats) -> "Density":
        """Fit a density on sentence vectors [p, D], in O(p²) time. Raises ValueError if there are too few."""
        if len(vectors) <= DIMENSIONS:
            raise ValueError(
                f"{len(vectors)} sentences are too few to estimate a density in {DIMENSIONS} dimensions, "
                f"expected at least {DIMENSIONS + 1}; fit on more text, or without weights"
            )
        moments = Moments.of(vectors)
        mean = moments.total / moments.count
        axes = dominant_directions(moments.gram / moments.count - np.outer(mean, mean), DIMENSIONS)
        center = mean.astype(np.float32)
        axes32 = axes.astype(np.float32)
        points = _project(vectors, center, axes32).astype(np.float32)
        length = float(np.sqrt(np.trace(moments.gram) / moments.count))
        bandwidth = max(choose_bandwidth(points), _SAME * length)
        unscaled = cls(center, axes32, points, bandwidth, 0.0)
        return replace(unscaled, scale=float(unscaled.of(vectors).mean()) / 2)

    def of(self, vectors: Floats) -> Doubles:
        """Densities [n] of sentence vectors [n, D], between 0 and 1."""
        places = _project(vectors, self.center, self.axes)
        points = self.points.astype(np.float64)
        bound = _SLACK * self.bandwidth**2
        blocks = np.split(places, range(_BLOCK, len(places), _BLOCK))
        return np.concatenate([(_squared_distances(block, points) <= bound).mean(axis=1) for block in blocks])

    def weights(self, vectors: Floats) -> Floats:
        """Weights [n] of sentence vectors [n, D] (equation 3), from near 0 for common sentences to 1 for new ones."""
        weights: Doubles = self.scale / (self.scale + self.of(vectors))
        return weights.astype(np.float32)


def choose_bandwidth(points: Floats) -> float:
    """The radius of highest likelihood for at least two points [p, d], by 5-fold cross-validation (section 10.2).

    A held-out point with no other in its ball has likelihood 0. So the search starts at the largest distance of a
    held-out point to its nearest point, and ends where every ball contains all points.
    """
    rows = points.astype(np.float64)
    folds = [np.arange(fold, len(rows), FOLDS) for fold in range(min(FOLDS, len(rows)))]
    least = most = 0.0
    for distances in _held_out_distances(rows, folds):
        least = max(least, float(distances.min(axis=1).max()))
        most = max(most, float(distances.max()))
    if least == 0:  # every point has an equal one
        return 0.0
    bounds = np.geomspace(least, most, BANDWIDTHS)  # squared
    likelihood = np.zeros(BANDWIDTHS)
    for distances in _held_out_distances(rows, folds):
        for number, bound in enumerate(_SLACK * bounds):
            likelihood[number] += np.log((distances <= bound).mean(axis=1)).sum()
    likelihood -= len(rows) * points.shape[1] / 2 * np.log(bounds)  # the ball's volume grows with radius ** d
    return float(np.sqrt(bounds[likelihood.argmax()]))


def _held_out_distances(rows: Doubles, folds: list[NDArray[np.int64]]) -> Iterator[Doubles]:
    """Squared distances between each fold's points and those of the other folds, in blocks of rows."""
    for fold in folds:
        others = np.delete(rows, fold, axis=0)
        for start in range(0, len(fold), _BLOCK):
            yield _squared_distances(rows[fold[start : start + _BLOCK]], others)


def _squared_distances(a: Doubles, b: Doubles) -> Doubles:
    """Squared distance of every row of `a` to every row of `b`; never below 0."""
    squares: Doubles = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    np.maximum(squares, 0, out=squares)
    return squares


def _project(vectors: Floats, center: Floats, axes: Floats) -> Doubles:
    """Coordinates [n, d] of vectors [n, D] on the axes."""
    return (vectors.astype(np.float64) - center) @ axes.T.astype(np.float64)


@dataclass(frozen=True)
class LanguageSpace:
    """Subspace and density of a language."""

    directions: Floats  # to remove from its sentence vectors [m, D]
    density: Density | None  # for the weights of its sentences; None weights all equally

    def document(self, sentences: Floats) -> Floats:
        """The document vector [D] of sentence vectors [s, D]: the weighted sum of the debiased ones (equation 3)."""
        clean = remove_directions(sentences, self.directions)
        return clean.sum(axis=0) if self.density is None else self.density.weights(sentences) @ clean


@dataclass(frozen=True)
class DocumentSpace:
    """The fitted space of document vectors."""

    encoder: str  #: fingerprint of the sentence encoder
    languages: Mapping[str, LanguageSpace]  #: by code
    choice: RankChoice  #: how many directions are removed, and why

    @property
    def fingerprint(self) -> str:
        """Identity of the space."""
        digest = hashlib.sha256(self.encoder.encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(f"\n{name} {array.shape} {array.dtype.str}\n".encode() + array.tobytes())
        return digest.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write a new folder. Raises FileExistsError if the name is taken."""
        if path.exists():
            raise file_exists_error(path, "exists; choose another name or remove it")
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
                np.savez(file, **self._arrays())  # type: ignore[arg-type]  # no array is named like an option of savez

    @classmethod
    def load(cls, path: Path, encoder: str) -> Self:
        """Read a folder for the sentence encoder of a fingerprint; see `DocumentEncoder.load`."""
        remedy = "fit the documents again"
        with as_data_error(path, remedy):
            about = read_json(path / _ABOUT, remedy)
            if about["format_version"] != FORMAT_VERSION:
                raise DataError(
                    f"{path}: format version {about['format_version']!r}, this version of xsent reads "
                    f"{FORMAT_VERSION}; {remedy}"
                )
            if not same_space(about["encoder"], encoder):
                raise FingerprintError(
                    f"{path} was fitted on sentence vectors of {about['encoder']}, this model is "
                    f"{encoder}; use the model it was fitted with, or fit again"
                )
            arrays = load_arrays(read_plain(path / _ARRAYS))
            languages = {code: _language(arrays, code, weighted) for code, weighted in about["languages"].items()}
            space = cls(about["encoder"], languages, RankChoice(about["rank"], tuple(about["accuracies"])))
            if space.fingerprint != about["fingerprint"]:
                raise ValueError("its fingerprint does not match its content")
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
