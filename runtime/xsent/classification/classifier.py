"""Linear heads: labels for frozen sentence vectors, fitted and run with only NumPy.

Shapes: n texts or pairs of texts, D dimensions, F features, K labels.
"""

import hashlib
import io
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.classification.labels import UNKNOWN, label_key, unify_labels
from xsent.classification.limit import Limit, find_limit, held_out
from xsent.classification.logistic import (
    Choice,
    cross_validate,
    distinct,
    fit_logistic,
    fit_temperature,
    log_softmax,
)
from xsent.errors import DataError, FingerprintError, real_number
from xsent.files.atomic import (
    as_data_error,
    atomic_file,
    check_output,
    file_exists_error,
    load_arrays,
    read_json,
    read_plain,
    to_json,
)
from xsent.fingerprint import same_space
from xsent.similarity import check_same_dim, unit_rows
from xsent.tasks import each_text, text_list
from xsent.words import has_words

FORMAT_VERSION = 2

ClassWeight = Literal["balanced"]

_OVERHEAD = 4096  # most bytes of an archive besides its numbers
_WORTH = 4  # a description weighs as much as this many examples; on SIB-200, 2 and 8 are within half a point
# Zero-shot heads: no label applies below this product with the nearest description; and the temperature of the
# cosines. Both values were tuned on SIB-200 news and synthetic tickets, with the same result.
_LEAST, _TEMPERATURE = 0.05, 1 / 16


@dataclass(frozen=True, eq=False, repr=False)
class LinearClassifier:
    """Multinomial logistic regression on sentence vectors; created by `fit`, `from_descriptions` or `load`.

    The features of a vector are `x = √D · v / ‖v‖`: numbers of about size one, whether it was normalised or not. The
    features of a pair are `[u; v; |u − v|; u ∘ v]` of two such vectors (Wei et al. 2020).

    Example:
        >>> texts = ["The cat sleeps.", "My dog barks.", "Birds sing.", "Taxes rise.", "Prices fall."]
        >>> labels = ["animals"] * 3 + ["money"] * 2
        >>> head = LinearClassifier.fit(encoder.encode(texts), labels, fingerprint=encoder.fingerprint)
        >>> list(head.predict(encoder.encode(["Das Pferd frisst.", "Die Preise steigen."])))
        ['animals', 'money']
    """

    fingerprint: str  #: identity of the vector space that it was fitted in
    dim: int  #: length of a vector (D)
    pairs: bool  #: whether it labels pairs of texts
    labels: tuple[str, ...]  #: in the order of the columns of `predict_proba`, sorted
    unknown: float  #: probability below which `predict` gives None
    examples: int  #: number of examples it was fitted on
    choice: Choice | None  #: the result of cross-validation; None for a zero-shot head
    #: [K, F], divided by the temperature, so that the softmax gives calibrated probabilities
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]  #: [K], also divided by the temperature
    #: [K, D], the direction of the texts of every label, see `Limit`; [0, D] for pairs
    centres: NDArray[np.float32]
    least: float  #: below this product with the nearest centre, no label applies to a text

    def __post_init__(self) -> None:
        if not isinstance(self.fingerprint, str):
            raise TypeError(f"fingerprint = {self.fingerprint!r:.80} must be a str, such as encoder.fingerprint")

    def __repr__(self) -> str:
        kind = "pairs" if self.pairs else "texts"
        return f"LinearClassifier({len(self.labels)} labels for {kind}, dim={self.dim})"

    @classmethod
    def fit(
        cls,
        vectors: ArrayLike,
        labels: Iterable[str],
        *,
        fingerprint: str,
        class_weight: ClassWeight | None = None,
        unknown: float = 0.0,
        seed: int = 0,
    ) -> "LinearClassifier":
        """Fit a head; 5-fold cross-validation chooses the strength of L2 and the temperature.

        Repeated examples are in one fold, and count once for the limit of `predict`.

        Args:
            vectors: Vectors of texts [n, D], or of pairs of texts [n, 2, D].
            labels: A label for each text or pair [n]; at least two different ones, each at least twice. Spellings that
                differ only in case, white space or invisible characters are one label, with a warning.
            fingerprint: The encoder's fingerprint; `load` requires one of the same space.
            class_weight: "balanced" gives every label the same weight, however rare, in the probabilities, too.
            unknown: Probability below which `predict` gives None; it also gives None for texts that are far from all of
                these.
            seed: Seed for the folds; fitting itself is deterministic.

        Raises:
            ValueError: There are too few examples, not one label for each, or no vectors.
        """
        if class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight = {class_weight!r} must be None or 'balanced'")
        unknown = _probability(unknown)
        rows = np.asarray(vectors)
        features = _features(rows).astype(np.float64)
        names, classes, counts = _classes(labels, len(features))
        weights = np.ones(len(classes)) if class_weight is None else len(classes) / (len(names) * counts[classes])
        choice = cross_validate(features, classes, weights, seed=seed)
        optimum = fit_logistic(features, classes, l2=choice.l2, weights=weights)
        none = Limit(np.empty((0, rows.shape[-1]), np.float32), -1.0)
        limit = find_limit(unit_rows(rows), classes) if rows.ndim == 2 else none
        return cls(
            fingerprint=fingerprint,
            dim=rows.shape[-1],
            pairs=rows.ndim == 3,
            labels=names,
            unknown=unknown,
            examples=len(classes),
            choice=choice,
            weight=(optimum.weight / choice.temperature).astype(np.float32),
            bias=(optimum.bias / choice.temperature).astype(np.float32),
            centres=limit.centres,
            least=limit.least,
        )

    @classmethod
    def from_descriptions(
        cls,
        descriptions: ArrayLike,
        labels: Iterable[str],
        *,
        fingerprint: str,
        examples: ArrayLike | None = None,
        example_labels: Iterable[str] = (),
        unknown: float = 0.0,
    ) -> "LinearClassifier":
        """Create a head from label descriptions, without training (zero-shot); a few examples refine it.

        A text gets the label whose centre is nearest: the mean of the label's descriptions, which weighs as much
        as four examples, and of its examples. It gets none if its cosine to the nearest centre, minus half of the mean
        cosine to all, is below a limit: 0.05, or with examples the value that 95% of them reach when held out.

        Args:
            descriptions: Vectors [m, D] of descriptions in any language, such as "billing: invoices, refunds".
            labels: The label of each description [m]; at least two different ones, each with one or more descriptions.
                Spellings are unified as in `fit`.
            fingerprint: The encoder's fingerprint; `load` requires one of the same space.
            examples: Vectors of examples [n, D]; repeated ones count once.
            example_labels: The label of each example [n].
            unknown: Probability below which `predict` gives None.

        Raises:
            ValueError: A description or a label is missing.

        Example:
            >>> labels = ["animals", "money"]
            >>> vectors = encoder.encode(labels)
            >>> head = LinearClassifier.from_descriptions(vectors, labels, fingerprint=encoder.fingerprint)
            >>> list(head.predict(encoder.encode(["Das Pferd frisst Gras."])))
            ['animals']
        """
        rows = np.asarray(descriptions)
        described, given = _strings(labels), _strings(example_labels)
        spelled = unify_labels([*described, *given])
        described, given = spelled[: len(described)], spelled[len(described) :]
        names, classes, _ = _classes(described, len(rows), least=1)
        sums = np.zeros((len(names), rows.shape[-1]))
        np.add.at(sums, classes, unit_rows(rows))
        sums = _WORTH * unit_rows(sums).astype(np.float64)
        if not sums.any(axis=1).all():
            raise ValueError(f"the description of {names[int(sums.any(axis=1).argmin())]!r} is empty")
        seen = np.asarray(() if examples is None else examples)
        if strange := sorted({*given} - {*names}):
            raise ValueError(f"the label {strange[0]!r} of an example has no description")
        if len(seen) != len(given):
            raise ValueError(f"{len(given):,} labels for {len(seen):,} examples; expected one per example")
        limit, temperature = Limit.plain(unit_rows(sums), _LEAST), _TEMPERATURE
        if len(seen):
            check_same_dim(seen.shape[-1], rows.shape[-1])
            own = np.array([names.index(label) for label in given])
            first, _ = distinct(seen, own)
            own, units = own[first], unit_rows(seen[first])
            np.add.at(sums, own, units)
            rows, cosines = held_out(units, own, sums)
            if len(rows):  # there are none if all examples are empty texts
                limit = Limit.measured(unit_rows(sums), cosines, own[rows])
                temperature = fit_temperature(cosines, own[rows], np.ones(len(rows)))
        centres = unit_rows(sums)
        return cls(
            fingerprint=fingerprint,
            dim=centres.shape[-1],
            pairs=False,
            labels=names,
            unknown=_probability(unknown),
            examples=len(seen),
            choice=None,
            weight=(centres / (temperature * centres.shape[-1] ** 0.5)).astype(np.float32),
            bias=np.zeros(len(names), np.float32),
            centres=limit.centres,
            least=limit.least,
        )

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the columns of `predict_proba`, as scikit-learn names them."""
        return np.array(self.labels)

    def decision_function(self, vectors: ArrayLike) -> NDArray[np.float32]:
        """Scores [n, K] whose softmax is `predict_proba`; with two labels the second's minus the first's [n].

        Raises as `predict_proba`.
        """
        scores = self._scores(self._features(np.asarray(vectors)))
        return scores[:, 1] - scores[:, 0] if len(self.labels) == 2 else scores

    def score(self, vectors: ArrayLike, labels: Iterable[str]) -> float:
        """Accuracy of `predict`, 0 to 1. Raises ValueError if there are more labels than vectors, or fewer."""
        found, labels = self.predict(vectors), _strings(labels)
        if len(found) != len(labels) or not found:
            raise ValueError(f"{len(labels):,} labels for {len(found):,} vectors; expected one per vector")
        right = (a is not None and label_key(a) == label_key(b) for a, b in zip(found, labels, strict=True))
        return sum(right) / len(found)

    def predict_proba(self, vectors: ArrayLike) -> NDArray[np.float32]:
        """Probability of every label [n, K] for vectors [n, D], or [n, 2, D] where the head is for pairs.

        Raises ValueError if their shape differs from that of the training.
        """
        return self._probabilities(self._features(np.asarray(vectors)))

    def predict(
        self, vectors: ArrayLike, *, unknown: float | None = None, texts: Iterable[str] | None = None
    ) -> list[str | None]:
        """The most probable label of every text, see `predict_proba`.

        None if its probability is below `unknown`, by default the value given to `fit`; if the text is far from all
        training texts, unless `unknown` is 0; and if the text has no words.
        """
        return [label for label, _ in self.answers(vectors, unknown=unknown, texts=texts)]

    def answers(
        self, vectors: ArrayLike, *, unknown: float | None = None, texts: Iterable[str] | None = None
    ) -> list[tuple[str | None, float | None]]:
        """The label of every text, see `predict`, and the highest probability; both None where no label applies.

        No label applies to a text that is far from all training texts, or to one without words: its vector is zero, or
        it is one like "..." or "N/A", which only `texts` can show: [n], or both texts of each pair [2n].
        """
        threshold = self.unknown if unknown is None else _probability(unknown)
        rows = np.asarray(vectors)
        features = self._features(rows)
        probabilities = self._probabilities(features)
        size = 2 if self.pairs else 1
        words = np.asarray(rows.any(axis=-1)).reshape(len(rows), size)
        if texts is not None:
            texts = text_list(texts)
            if len(texts) != words.size:
                raise ValueError(f"{len(texts):,} texts for {words.size:,} vectors; expected one per vector")
            words &= np.array([has_words(text) for text in texts], bool).reshape(words.shape)
        applies = np.asarray(words.all(axis=1))
        if len(self.centres) and unknown != 0:
            applies &= Limit(self.centres, self.least).fits(features / np.float32(self.dim**0.5))
        highest = probabilities.max(axis=1).tolist()
        return [
            ((self.labels[label] if probability >= threshold else None), probability) if fits else (None, None)
            for label, probability, fits in zip(probabilities.argmax(axis=1), highest, applies.tolist(), strict=True)
        ]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write `NAME.npz` with the numbers and `NAME.json` with the rest.

        Raises FileExistsError if one of them exists; `force` replaces it, but no other `.json` without its `.npz`.
        """
        file, beside = check_head_files(path, force=force)
        buffer = io.BytesIO()
        np.savez(buffer, weight=self.weight, bias=self.bias, centres=self.centres)
        numbers = buffer.getvalue()
        note = {"format_version": FORMAT_VERSION, "sha256": hashlib.sha256(numbers).hexdigest(), **asdict(self)}
        del note["weight"], note["bias"], note["centres"]
        with atomic_file(beside) as description, atomic_file(file) as opened:
            opened.write(numbers)
            description.write(to_json(note))

    @classmethod
    def load(cls, path: str | Path, *, fingerprint: str) -> "LinearClassifier":
        """Read a head that `save` wrote, for the encoder with this fingerprint, at any depth.

        Raises:
            FingerprintError: It was fitted on vectors of another encoder.
            DataError: One of its two files is missing or damaged.
        """
        file, beside = head_files(path)
        remedy = f"a head is two files, {file.name} and {beside.name}; if one is damaged or lost, fit the head again"
        if not file.exists() and not beside.exists():
            raise DataError(f"{file}: no such file; create one with xsent classify fit")
        with as_data_error(file, remedy):
            head = _parse(read_json(beside, remedy), file)
            if not same_space(head.fingerprint, fingerprint):
                raise FingerprintError(
                    f"{file} is for vectors of {head.fingerprint}, the model is {fingerprint}; fit the head again"
                )
        return head

    def _features(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Features [n, F] of vectors. Raises ValueError if their shape differs from that of the training."""
        expected = (2, self.dim) if self.pairs else (self.dim,)
        if rows.shape[1:] != expected or rows.ndim == 1:
            sizes = ", ".join(map(str, ("n", *expected)))
            raise ValueError(f"expected vectors [{sizes}], as the head was fitted on, got {list(rows.shape)}")
        return _features(rows)

    def _scores(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        return features @ self.weight.T + self.bias

    def _probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.exp(log_softmax(self._scores(features).astype(np.float64))).astype(np.float32)


def head_files(path: str | Path) -> tuple[Path, Path]:
    """The two files of a head, numbers and note."""
    file = Path(path)
    if file.suffix != ".npz":
        raise ValueError(f"{file}: a head's name ends in .npz")
    return file, file.with_suffix(".json")


def check_head_files(path: str | Path, *, force: bool) -> tuple[Path, Path]:
    """The two files of a head that may be written, see `LinearClassifier.save`."""
    file, beside = head_files(path)
    if beside.exists() and not file.exists() and not _is_note(beside):
        raise file_exists_error(beside, f"exists, but is not part of a head; name the head otherwise than {file.name}")
    for taken in (file, beside):
        check_output(taken, force=force)
    return file, beside


def _is_note(path: Path) -> bool:
    with suppress(DataError):
        return {"fingerprint", "sha256"} <= {*read_json(path, "")}
    return False


def _features(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Features [n, F] of vectors [n, D], or of pairs [n, 2, D]."""
    if vectors.dtype.kind not in "fi":
        raise TypeError(f"expected vectors, got {vectors.dtype}; encode texts first")
    if vectors.ndim not in (2, 3) or (vectors.ndim == 3 and vectors.shape[1] != 2):
        raise ValueError(f"expected vectors [n, D], or pairs [n, 2, D], got {list(vectors.shape)}")
    rows = vectors.astype(np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("vectors contain numbers that are infinite or NaN; encode the texts again")
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    rows *= np.float32(rows.shape[-1] ** 0.5) / np.where(norms > 0, norms, np.float32(1))
    if rows.ndim == 2:
        return rows
    u, v = rows[:, 0], rows[:, 1]
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def _classes(
    labels: Iterable[str], count: int, least: int = 2
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64]]:
    """The sorted labels, the label index of each example [n], and the number of examples per label [K]."""
    labels = _strings(labels)
    if len(labels) != count:
        raise ValueError(f"{len(labels):,} labels for {count:,} vectors; expected one per vector")
    labels = unify_labels(labels)
    if reserved := [label for label in labels if label_key(label) == UNKNOWN]:
        raise ValueError(f"the label {reserved[0]!r} is reserved for texts that no label fits; rename it")
    names, classes, counts = np.unique(np.array(labels, object), return_inverse=True, return_counts=True)
    if len(names) < 2:
        found = f"all examples are labelled {names[0]!r}" if len(names) else "no examples"
        raise ValueError(f"{found}; expected at least two different labels")
    if counts.min() < least:
        lonely = names[counts.argmin()]
        raise ValueError(
            f"only one example is labelled {lonely!r}; expected at least two per label; "
            "add one, drop it, or check which column has the labels, and that the first row is not a header"
        )
    return tuple(names), classes, counts


def _strings(labels: Iterable[str]) -> list[str]:
    """The labels of a list or column; raises TypeError if they are one str, or one is not a str."""
    every = list(each_text(labels))
    for number, label in enumerate(every, 1):
        if not isinstance(label, str):
            raise TypeError(f"label {number} (counted from 1) is {label!r:.80}; drop the row, or convert it with str")
    return every


def _probability(value: float) -> float:
    return real_number("unknown", value, 0, 1)


def _parse(note: dict[str, Any], file: Path) -> LinearClassifier:
    """Build a head from its note and the file of its numbers, which must belong together."""
    if (version := note.pop("format_version")) != FORMAT_VERSION:
        raise ValueError(f"version {version}, this xsent reads {FORMAT_VERSION}")
    shape = (len(note["labels"]), note["dim"] * (4 if note["pairs"] else 1))
    centres = (0 if note["pairs"] else shape[0], note["dim"])
    count = shape[0] * (shape[1] + 1) + centres[0] * centres[1]
    numbers = read_plain(file, np.dtype(np.float32).itemsize * count + _OVERHEAD)
    if note.pop("sha256") != hashlib.sha256(numbers).hexdigest():
        raise ValueError("the checksum of the numbers differs")
    if note["labels"] != sorted(set(map(str, note["labels"]))):
        raise ValueError("labels are not sorted and unique")
    note |= {"labels": tuple(note["labels"]), "choice": note["choice"] and Choice(**note["choice"])}
    arrays = load_arrays(numbers)
    head = LinearClassifier(**note, weight=arrays["weight"], bias=arrays["bias"], centres=arrays["centres"])
    _probability(head.unknown)
    if not -1 <= head.least <= 1:
        raise ValueError(f"least = {head.least} is not a cosine")
    if head.weight.shape != shape or head.bias.shape != shape[:1] or head.centres.shape != centres:
        raise ValueError(f"weights {list(head.weight.shape)} for {shape[0]} labels and {shape[1]} features")
    return head
