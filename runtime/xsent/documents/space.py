"""What DNR learns of a corpus: subspaces and densities of some languages, and the folder that keeps them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent.bundle import same_space
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

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# Section 10.2 stops under 55 % for two languages: a tenth of the way from chance, 50 %, to certainty.
_TENTH = 0.1
SAMPLE = 10_000  # sentences of a language that are kept as they are
_SAMPLE_BLOCK = 1024  # vectors summed up at once
_RIDGE = 1e-3  # of the mean variance of a dimension: keeps the classifier solvable with few sentences


@dataclass(frozen=True)
class Moments:
    """Sums over sentence vectors that are seen once."""

    count: int  # vectors seen
    total: Doubles  # their sum [D]
    gram: Doubles  # the sum of their outer products [D, D]

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
    """What one pass over a language's sentences leaves, however many there are."""

    train: Moments  # moments of the sentences to learn from
    held_out: Moments  # moments of the sentences to test with
    sample: Floats  # some of all, at random [n, D], at most `SAMPLE`, those to learn from first
    held_out_sample: Floats  # those of them to test with


def survey(vectors: Iterable[NDArray[Any]], held_out: NDArray[np.bool_], dim: int) -> LanguageSurvey:
    """Pass once over the sentence vectors [D] of a language; `held_out` says whether each is for testing [n]."""
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
    sample, held_out_sample = np.concatenate(samples[False] + samples[True]), np.concatenate(samples[True])
    return LanguageSurvey(moments[False], moments[True], sample, held_out_sample)


def dominant_directions(gram: Doubles, rank: int) -> Doubles:
    """The `rank` eigenvectors of largest eigenvalue of a Gram matrix [D, D], as rows [rank, D].

    Their sign, which means nothing, makes the largest number of each positive.
    """
    _, vectors = np.linalg.eigh(gram)  # ascending
    rows: Doubles = vectors.T[::-1][:rank]
    largest = np.abs(rows).argmax(axis=1)
    return rows * np.where(rows[np.arange(len(rows)), largest] < 0, -1.0, 1.0)[:, None]


def remove_directions(vectors: Floats, directions: Floats) -> Floats:
    """Debiased vectors [n, D]: without what lies along orthonormal directions [m, D] (LAWDR, section 3.2)."""
    return (vectors - (vectors @ directions.T) @ directions).astype(np.float32, copy=False)


@dataclass(frozen=True)
class RankChoice:
    """How many directions to remove, and why."""

    rank: int  #: that many (m)
    #: share of held-out sentences whose language a linear classifier tells, balanced over the languages, without the
    #: first 0, 1, ..., m directions
    accuracies: tuple[float, ...]


def choose_rank(train: Sequence[Moments], held_out: Sequence[Floats]) -> RankChoice:
    """The smallest number of directions without which a linear classifier cannot tell the languages (section 10.1).

    "Cannot" is less than a tenth of the way from chance to certainty: the paper's 55 % for two languages. The
    classifier is linear least squares on one-hot languages, each language of the same weight, in place of the paper's
    support vector machine: it follows from the moments alone, so every number from 0 up is tried. A ValueError says
    that half of the directions are not enough.
    """
    languages = len(train)
    if languages < 2:  # nothing to tell apart
        return RankChoice(0, ())
    limit = min(len(train[0].total), *(moments.count for moments in train)) // 2
    bar = 1 / languages + _TENTH * (1 - 1 / languages)
    grams = [moments.gram / moments.count for moments in train]
    means = np.stack([moments.total / moments.count for moments in train])
    tests = [rows.astype(np.float64) for rows in held_out]
    axes = [dominant_directions(gram, limit) for gram in grams]
    accuracies = [_language_accuracy(grams, means, tests)]
    while accuracies[-1] >= bar:
        rank = len(accuracies) - 1
        if rank == limit:
            raise ValueError(
                f"languages still show after removing {rank} directions: {100 * min(accuracies):.1f} % at best, the "
                f"rule wants under {100 * bar:.1f} %; fit on more text, or give the rank"
            )
        for number in range(languages):
            axis = axes[number][rank]
            grams[number] -= (axis @ grams[number] @ axis) * np.outer(axis, axis)  # axis is an eigenvector
            means[number] -= (means[number] @ axis) * axis
            tests[number] -= np.outer(tests[number] @ axis, axis)
        accuracies.append(_language_accuracy(grams, means, tests))
    return RankChoice(len(accuracies) - 1, tuple(accuracies))


def _language_accuracy(grams: Sequence[Doubles], means: Doubles, tests: Sequence[Doubles]) -> float:
    """Fit a least-squares classifier on moments and test it; the mean of the languages' shares of right answers.

    With targets that are one-hot and languages of the same weight, the normal equations are S W = M - mean(M), up to
    a factor, where S is the covariance of all vectors and M holds the languages' mean vectors.
    """
    center = means.mean(axis=0)
    covariance = np.mean(grams, axis=0) - np.outer(center, center)
    ridge = _RIDGE * np.trace(covariance) / len(center) + np.finfo(np.float64).tiny
    covariance[np.diag_indices_from(covariance)] += ridge
    weights = np.linalg.solve(covariance, (means - center).T)  # [D, K]
    found = [((rows - center) @ weights).argmax(axis=1) for rows in tests]
    return float(np.mean([np.mean(answers == number) for number, answers in enumerate(found)]))


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
                np.savez(file, **self._arrays())  # type: ignore[arg-type]  # none is called as its options

    @classmethod
    def load(cls, path: Path, encoder: str) -> Self:
        """Read a folder that belongs to the encoder of a fingerprint; see `DocumentEncoder.load`."""
        remedy = "fit the documents again"
        with as_data_error(path, remedy):
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
