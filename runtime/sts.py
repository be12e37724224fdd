"""Semantic textual similarity: how well cosines follow what people say of two sentences.

The protocol of STS-B: Spearman's rank correlation between the cosine of a pair and its score, from 0 (unrelated) to 5
(the same meaning).
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError
from xsent.lines import read_lines
from xsent.progress import Progress
from xsent.retrieval import Encodes

NOTE = "Spearman's correlation of cosine and human score."


@dataclass(frozen=True)
class StsScore:
    """One language.

    Attributes:
        language: Its code.
        pairs: Pairs of sentences.
        spearman: Correlation from -1 to 1.
    """

    language: str
    pairs: int
    spearman: float


@dataclass(frozen=True)
class StsEvaluation:
    """The result of the protocol.

    Attributes:
        languages: Scores by language.
        note: What to know when comparing.
    """

    languages: tuple[StsScore, ...]
    note: str = NOTE

    def rows(self) -> list[dict[str, object]]:
        """A table with one row a language and one for the mean; fit for JSON."""
        rows: list[dict[str, object]] = [vars(score) for score in self.languages]
        mean = float(np.mean([score.spearman for score in self.languages]))
        return [*rows, {"language": "mean", "spearman": mean}]


def sts_languages(encoder: Encodes, folder: str | Path, split: str = "test") -> list[str]:
    """Languages that a folder has an `XX-SPLIT.csv` for and that the encoder, if it says which, was trained for.

    Raises:
        DataError: There are none.
    """
    found = sorted(file.name.removesuffix(f"-{split}.csv") for file in Path(folder).glob(f"*-{split}.csv"))
    known = getattr(encoder, "languages", found)
    shared = [language for language in found if language in known]
    if not shared:
        raise DataError(f"{folder}: no XX-{split}.csv of a language of the model; expected e.g. en-{split}.csv")
    return shared


def sts(
    encoder: Encodes,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    split: str = "test",
    show_progress_bar: bool = False,
) -> StsEvaluation:
    """STS-B and its translations.

    Args:
        encoder: What encodes.
        folder: Has `XX-SPLIT.csv` a language: sentence, sentence, score.
        languages: Codes; None takes all that the folder has and that the encoder, if it says which, was trained for.
        split: "test" or "dev".
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    languages = sts_languages(encoder, folder, split) if languages is None else languages
    scores = []
    with Progress("languages", len(languages), enabled=show_progress_bar) as progress:
        for language in languages:
            left, right, gold = read_sts(Path(folder) / f"{language}-{split}.csv")
            cosines = row_cosines(encoder.encode(left), encoder.encode(right))
            scores.append(StsScore(language, len(gold), spearman(cosines, gold)))
            progress.advance()
    return StsEvaluation(tuple(scores))


def read_sts(file: Path) -> tuple[list[str], list[str], list[float]]:
    """The sentences of both sides and their scores.

    Raises:
        DataError: The file is missing, has no two different scores, or a line is no pair with a score.
    """
    left, right, gold = [], [], []
    reader = csv.reader(f"{line}\n" for line in read_lines(file))
    try:
        for a, b, score in reader:
            if not math.isfinite(float(score)):
                raise ValueError(f"{score} is no score")
            left.append(a)
            right.append(b)
            gold.append(float(score))
    except (ValueError, csv.Error) as error:
        raise DataError(f"{file}:{reader.line_num}: expected sentence, sentence, score with commas between") from error
    if len(set(gold)) < 2:
        raise DataError(f"{file}: {len(gold)} pairs with {len(set(gold))} scores; a correlation needs different ones")
    return left, right, gold


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's rank correlation of two lists of numbers; equal numbers share the mean of their ranks."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of every number from 0; equal numbers get the mean of theirs."""
    _, places, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: NDArray[np.float64] = (last - (counts + 1) / 2)[places]
    return means


def row_cosines(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """The cosine of every row of `a` [n, D] with the same row of `b`; 0 with a row of zeros."""
    left, right = (np.asarray(side, np.float64) for side in (a, b))
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: NDArray[np.float64] = np.einsum("nd,nd->n", left, right) / np.where(lengths > 0, lengths, 1.0)
    return cosines
