"""Semantic textual similarity: how well cosines follow what people say of two sentences.

The protocol of STS-B: Spearman's rank correlation between the cosine of a pair and its score, from 0 (unrelated) to 5
(the same meaning).
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, Figures, choose_languages, measure_each
from xsent.files.text import read_lines
from xsent.open_model import SupportsEncode

END = "-test.csv"
NOTE = "Spearman's correlation of cosine and human score."


def sts(encoder: SupportsEncode, folder: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """STS-B and its translations; the folder has `XX-test.csv` a language: sentence, sentence, score."""
    found = (file.name.removesuffix(END) for file in Path(folder).glob(f"*{END}"))
    languages = choose_languages(encoder, found, languages, folder, f"an XX{END} such as en{END}")

    def measure(language: str) -> Figures:
        left, right, gold = read_sts(Path(folder) / f"{language}{END}")
        cosines = row_cosines(encoder.encode(left), encoder.encode(right))
        return {"pairs": len(gold), "spearman": spearman(cosines, gold)}

    return measure_each(languages, measure, ["spearman"], NOTE)


def read_sts(file: Path) -> tuple[list[str], list[str], list[float]]:
    """The sentences of both sides and their scores, at least two different ones."""
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
    """Spearman's rank correlation of two lists of numbers; 0 where all of one are equal."""
    left, right = ranks(a), ranks(b)
    collapsed = np.ptp(left) == 0 or np.ptp(right) == 0  # such an encoder has no order to correlate
    return 0.0 if collapsed else float(np.corrcoef(left, right)[0, 1])


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of every number from 0; equal numbers get the mean of theirs."""
    _, places, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = (np.cumsum(counts) - (counts + 1) / 2)[places]
    return means


def row_cosines(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """The cosine of every row of `a` [n, D] with the same row of `b`; 0 with a row of zeros."""
    left, right = (np.asarray(side, np.float64) for side in (a, b))
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: NDArray[np.float64] = np.einsum("nd,nd->n", left, right) / np.where(lengths > 0, lengths, 1.0)
    return cosines
