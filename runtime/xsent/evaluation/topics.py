"""Evaluation of classification: labelled files, and heads trained in one language and tested in others.

The protocol of MLDoc (Schwenk & Li 2018; mao2021, table 3): a linear head on frozen vectors of the training language,
tested in every language, with five seeds. Cross-validation within the training file chooses the L2 strength, so the dev
files are not read. Shapes: S seeds, K labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.classification.classifier import ClassWeight, LinearClassifier
from xsent.classification.labels import UNKNOWN, label_key, unify_labels
from xsent.classification.limit import Limit, find_limit
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, warn
from xsent.files.tables import read_rows, refuse_table
from xsent.files.text import read_lines
from xsent.open_model import SupportsEncode
from xsent.progress import Progress
from xsent.similarity import unit_rows
from xsent.words import has_words

# MLDoc's names, and a layout with one folder per language. The protocol uses the smallest of MLDoc's training files.
TRAIN_FILES = ("{}.train.1000", "{}/train.tsv")
TEST_FILES = ("{}.test", "{}/test.tsv")

# SIB-200
ENGLISH = "en"
COLUMNS = ["category", "text"]

SEEDS_NOTE = (
    "L2 is chosen by cross-validation within the training file. Fitting is deterministic: seeds only draw the folds of "
    "that choice."
)


@dataclass(frozen=True)
class Examples:
    """Labelled texts, or labelled pairs of texts."""

    source: str  # the file
    labels: list[str]  # a label for each text or pair
    texts: list[str]  # in order; both texts of each pair

    def encode(self, encoder: SupportsEncode, *, show_progress_bar: bool | None = False) -> NDArray[Any]:
        """Vectors [n, D], or [n, 2, D] of pairs; a `SentenceEncoder` splits long texts instead of cutting them."""
        if isinstance(encoder, SentenceEncoder):
            vectors = encoder.encode(self.texts, on_long="split", show_progress_bar=show_progress_bar)
        else:
            vectors = encoder.encode(self.texts)
        return vectors if len(self.texts) == len(self.labels) else vectors.reshape(len(self.labels), 2, -1)


Sets = Mapping[str, Examples]  # by name


@dataclass(frozen=True)
class Cell:
    """Heads trained on one set and tested on another."""

    train: str  # name of the training set
    test: str  # name of the test set
    # for every seed, the number of examples of a label (row) by predicted label (column); the last column is none
    confusion: NDArray[np.int64]  # [S, K, K + 1]
    # In per cent, at the default limit, which does not depend on the seed; None for pairs, which have no limit.
    lost: float | None = None  # share of the examples that are "unknown"
    # mean over labels: the share of a label's examples that are "unknown" to heads trained without it; also None if
    # less than two labels are left
    found: float | None = None

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy in per cent, by seed [S]."""
        right = self.confusion.diagonal(axis1=1, axis2=2).sum(axis=1)
        shares: NDArray[np.float64] = 100 * right / self.confusion.sum(axis=(1, 2))
        return shares

    @property
    def accuracy(self) -> float:
        """Mean over the seeds, in per cent."""
        return float(self.accuracies.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds (of a sample, n - 1), in points; 0 for one seed."""
        return float(self.accuracies.std(ddof=1)) if len(self.accuracies) > 1 else 0.0

    def row(self) -> dict[str, object]:
        """All figures, ready for JSON."""
        scores = {"accuracy": self.accuracy, "deviation": self.deviation, "accuracies": self.accuracies.tolist()}
        unknown = {"lost": self.lost, "found": self.found}
        return {"train": self.train, "test": self.test, **scores, **unknown, "confusion": self.confusion.tolist()}


def read_examples(source: str | Path, columns: Sequence[str] | None = None, *, quotes: bool = True) -> Examples:
    """Read lines of label and text (MLDoc's layout), or of label and two texts, separated by tabs.

    For a table, `columns` names the columns of the label and of one or two texts. Rows without a label or a text are
    skipped, with a warning that counts them; so are those of a text without words. Published
    measurements read tab-separated tables without `quotes`, as text.
    """
    if columns is not None and len(columns) not in (2, 3):
        raise ValueError(f"columns = {','.join(columns)}: expected the columns of the label and of one or two texts")
    rows = list(_labelled_lines(source) if columns is None else read_rows(source, columns, quotes=quotes))
    whole = [row for row in rows if label_key(row[0]) and all(map(has_words, row[1:]))]
    if not whole:
        raise DataError(f"{source}: no examples; expected lines of label and text separated by a tab, or a table")
    if skipped := len(rows) - len(whole):
        warn(f"{skipped:,} of {len(rows):,} rows have no label or no text and are skipped")
    return Examples(str(source), [row[0] for row in whole], [text for row in whole for text in row[1:]])


def _labelled_lines(source: str | Path) -> Iterator[list[str]]:
    refuse_table(source, "--columns LABEL,TEXT", tabs=True)
    width = 0
    for number, line in enumerate(read_lines(source), 1):
        fields = line.split("\t")
        width = width or len(fields)
        if width not in (2, 3):
            raise DataError(
                f"{source}:1: {width} fields, expected label and one or two texts separated by tabs; if the first "
                "line names columns, choose them with --columns"
            )
        if len(fields) != width:
            raise DataError(
                f"{source}:{number}: {len(fields)} fields, expected {width} separated by tabs, as in line 1"
            )
        yield fields


def topic_files(folder: str | Path, patterns: Sequence[str]) -> dict[str, Path]:
    """Files of a folder by language, sorted: `TRAIN_FILES` or `TEST_FILES`. Raises DataError if there are none."""
    found = {}
    for pattern in patterns:
        before, after = pattern.split("{}")
        for file in Path(folder).glob(pattern.format("*")):
            found[str(file.relative_to(folder)).removeprefix(before).removesuffix(after)] = file
    if not found:
        raise DataError(f"{folder}: no {' or '.join(pattern.format('LANG') for pattern in patterns)} in this folder")
    return dict(sorted(found.items()))


def transfer(
    encoder: SupportsEncode, train: Sets, test: Sets, *, seeds: int = 5, class_weight: ClassWeight | None = None
) -> tuple[tuple[str, ...], list[Cell]]:
    """The labels, and a cell of `seeds` heads per training and test set. Raises DataError if a set is unusable."""
    train, test = _with_common_spellings(train, test)
    labels = _common_labels(train, test)
    encoded = {name: examples.encode(encoder) for name, examples in test.items()}
    cells = []
    with Progress("heads", len(train) * seeds) as progress:
        for source, examples in train.items():
            vectors = examples.encode(encoder)
            try:
                heads = [
                    LinearClassifier.fit(vectors, examples.labels, fingerprint="", class_weight=class_weight, seed=seed)
                    for seed in progress.count(range(seeds))
                ]
            except ValueError as error:
                raise DataError(f"{examples.source}: {error}") from error
            limits = _limits(vectors, examples.labels)
            for name, one in test.items():
                confusion = _confusion(heads, one, encoded[name])
                cells.append(Cell(source, name, confusion, *_unknown(limits, one, encoded[name])))
    return labels, cells


def transfer_from_english(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> list[Cell]:
    """Train heads on SIB-200 in English and test them in all given languages that have an `XX/test.tsv`."""
    trains, files = (topic_files(folder, pattern) for pattern in (TRAIN_FILES, TEST_FILES))
    if ENGLISH not in trains:
        raise DataError(f"{folder}: no {ENGLISH}/train.tsv to train a head on")
    tests = {code: read_examples(files[code], COLUMNS, quotes=False) for code in languages if code in files}
    if not tests:
        raise DataError(f"{folder}: no test.tsv of {', '.join(languages)}")
    return transfer(encoder, {ENGLISH: read_examples(trains[ENGLISH], COLUMNS, quotes=False)}, tests)[1]


def accuracy_rows(cells: Sequence[Cell]) -> list[dict[str, object]]:
    """Accuracies in per cent: one row per training set, one column per test set, and the mean over other languages."""
    rows: dict[str, dict[str, object]] = {}
    for cell in cells:
        several = len(cell.accuracies) > 1
        value: object = f"{cell.accuracy:.1f} ±{cell.deviation:.1f}" if several else cell.accuracy
        rows.setdefault(cell.train, {"train": cell.train})[cell.test] = value
    for name, row in rows.items():
        if others := [cell.accuracy for cell in cells if cell.train == name != cell.test]:
            row["mean of others"] = float(np.mean(others))
    return list(rows.values())


def unknown_rows(cells: Sequence[Cell]) -> list[dict[str, object]]:
    """Percentages of "unknown": per training set one row of lost examples, and one of found ones."""
    rows = []
    for train in dict.fromkeys(cell.train for cell in cells):
        for kind in ("lost", "found"):
            shares = {cell.test: getattr(cell, kind) for cell in cells if cell.train == train}
            known = {test: share for test, share in shares.items() if share is not None}
            row: dict[str, object] = {"train": train, "unknown": kind, **known}
            if others := [share for test, share in known.items() if test != train]:
                row["mean of others"] = float(np.mean(others))
            if known:
                rows.append(row)
    return rows


def confusion_rows(labels: Sequence[str], cells: Sequence[Cell]) -> list[dict[str, object]]:
    """Percentages of the examples of a label (row) by predicted label (column), over all cells and seeds.

    "unknown" is a column if it was predicted. A label that no test set has is a row of zeros.
    """
    counts = np.concatenate([cell.confusion for cell in cells]).sum(axis=0)
    shares = (100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).tolist()
    answers = [*labels, UNKNOWN] if any(row[-1] for row in shares) else labels
    return [
        {"label": label, **dict(zip(answers, row, strict=False))} for label, row in zip(labels, shares, strict=True)
    ]


def _with_common_spellings(*sides: Sets) -> list[Sets]:
    """The sets with labels that are spelled the same in all of them, see `unify_labels`."""
    spelled = iter(unify_labels([label for sets in sides for one in sets.values() for label in one.labels]))
    return [
        {name: replace(one, labels=[*islice(spelled, len(one.labels))]) for name, one in sets.items()} for sets in sides
    ]


def _common_labels(train: Sets, test: Sets) -> tuple[str, ...]:
    """The labels, which every training set must share. Raises DataError if a set has another label."""
    first = next(iter(train.values()))
    labels = set(first.labels)
    checked = [(one, {*one.labels} ^ labels) for one in train.values()]
    checked += [(one, {*one.labels} - labels) for one in test.values()]
    for other, strange in checked:
        if strange:
            raise DataError(
                f"{other.source}: label {min(strange)!r} is not in both this file and {first.source}; "
                "expected training examples of every label; if you split a table, shuffle its rows first"
            )
    return tuple(sorted(labels))


def _confusion(heads: Sequence[LinearClassifier], examples: Examples, vectors: NDArray[Any]) -> NDArray[np.int64]:
    """The confusion of heads with the same labels, see `Cell`."""
    index: dict[str | None, int] = {label: number for number, label in enumerate((*heads[0].labels, None))}
    counts = np.zeros((len(heads), len(index) - 1, len(index)), np.int64)
    gold = [index[label] for label in examples.labels]
    for count, head in zip(counts, heads, strict=True):
        np.add.at(count, (gold, [index[label] for label in head.predict(vectors, unknown=0, texts=examples.texts)]), 1)
    return counts


def _limits(vectors: NDArray[Any], labels: Sequence[str]) -> dict[str | None, Limit]:
    """The limits of heads trained with all labels (None) and without each of them; empty for pairs."""
    if vectors.ndim != 2:
        return {}
    units = unit_rows(vectors)
    names, classes = np.unique(labels, return_inverse=True)
    limits: dict[str | None, Limit] = {None: find_limit(units, classes)}
    for number, name in enumerate(names.tolist() if len(names) > 2 else []):
        rest = classes != number
        limits[name] = find_limit(units[rest], np.unique(classes[rest], return_inverse=True)[1])
    return limits


def _unknown(
    limits: Mapping[str | None, Limit], examples: Examples, vectors: NDArray[Any]
) -> tuple[float | None, float | None]:
    """The percentages lost and found, see `Cell`."""
    if None not in limits:
        return None, None
    units = unit_rows(vectors)
    words = units.any(axis=1) & np.array([has_words(text) for text in examples.texts])
    far = {name: ~(words & limit.fits(units)) for name, limit in limits.items()}
    labels = np.array(examples.labels)
    shares = [far[name][labels == name].mean() for name in {*examples.labels} & {*far}]
    return 100 * float(far[None].mean()), 100 * float(np.mean(shares)) if shares else None
