"""Contrasts: does a sentence lie nearer to its translation than to one of nearly the same words and another meaning?

What changes is the order of the words, a negation, who does what to whom, or a number. An encoder that only collects
words is at 50 per cent where the words stay the same.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xsent.cli.terminal import Progress
from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, by_kind, choose_of_file
from xsent.evaluation.sts import row_cosines
from xsent.files.text import read_fields
from xsent.open_model import SupportsEncode

HEADER = ["kind", "english", "language", "translation", "changed"]
LAYOUT = "kind, English, language, translation, changed translation with tabs between"
SAME = 1e-6  # cosines that differ by less are equal but for rounding
NOTE = "Per cent of sentences that lie nearer to their translation than to a changed one; equally near counts half."


def contrasts(encoder: SupportsEncode, file: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Measure an encoder on a file of contrasts, see `HEADER`: a row for each kind of change, a column a language."""
    lines = list(read_fields(file, len(HEADER), LAYOUT))
    if not lines or lines[0] != HEADER:
        raise DataError(f"{file}: its first line must be {' '.join(HEADER)}, with tabs between")
    wanted = choose_of_file(encoder, {line[2] for line in lines[1:]}, languages, file)
    parts: dict[tuple[str, str], list[list[str]]] = {}  # of the file, by kind and language
    for line in lines[1:]:
        if line[2] in wanted:
            parts.setdefault((line[0], line[2]), []).append(line)
    with Progress("languages and kinds", len(parts)) as progress:
        right = [(kind, code, _right(encoder, parts[kind, code])) for kind, code in progress.count(parts)]
    return by_kind(right, "sentences", NOTE)


def _right(encoder: SupportsEncode, lines: Sequence[Sequence[str]]) -> list[float]:
    """For each sentence 1 if it lies nearer to its translation, 0 if to the changed one."""
    english, right, wrong = (encoder.encode([line[column] for line in lines]) for column in (1, 3, 4))
    gap = row_cosines(english, right) - row_cosines(english, wrong)
    nearer: list[float] = np.where(np.abs(gap) < SAME, 0.5, gap > 0).tolist()
    return nearer
