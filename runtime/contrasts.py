"""Contrasts: does a sentence lie nearer to its translation than to one of nearly the same words and another meaning?

What changes is the order of the words, a negation, who does what to whom, or a number. An encoder that only collects
words is at 50 per cent where the words stay the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xsent.errors import DataError
from xsent.lines import read_fields
from xsent.progress import Progress
from xsent.retrieval import Encodes
from xsent.sts import row_cosines

HEADER = ["kind", "english", "language", "translation", "changed"]
LAYOUT = "kind, English, language, translation, changed translation with tabs between"
SAME = 1e-6  # cosines that differ by less are equal but for rounding
NOTE = "Per cent of sentences that lie nearer to their translation than to a changed one; equally near counts half."


@dataclass(frozen=True)
class ContrastScore:
    """One kind of change in one language.

    Attributes:
        kind: What was changed.
        language: Code of the language of the translations.
        sentences: Sentences.
        accuracy: Share of them that lie nearer to their translation, in per cent.
    """

    kind: str
    language: str
    sentences: int
    accuracy: float


@dataclass(frozen=True)
class ContrastEvaluation:
    """The result of the protocol.

    Attributes:
        scores: A score for every kind and language.
        note: What to know when comparing.
    """

    scores: tuple[ContrastScore, ...]
    note: str = NOTE

    def rows(self) -> list[dict[str, object]]:
        """A table with one row a kind, one column a language, and means; fit for JSON."""
        kinds = list(dict.fromkeys(score.kind for score in self.scores))
        table = [self._row(kind, [score for score in self.scores if score.kind == kind]) for kind in kinds]
        return [*table, self._row("mean", self.scores)]

    @staticmethod
    def _row(name: str, scores: Sequence[ContrastScore]) -> dict[str, object]:
        languages = sorted({score.language for score in scores})
        cells = {code: _mean([score for score in scores if score.language == code]) for code in languages}
        return {"kind": name, "sentences": sum(score.sentences for score in scores), **cells, "mean": _mean(scores)}


def contrasts(
    encoder: Encodes,
    file: str | Path,
    languages: Sequence[str] | None = None,
    *,
    show_progress_bar: bool = False,
) -> ContrastEvaluation:
    """Measure an encoder on contrasts.

    Args:
        encoder: What encodes.
        file: Tab-separated: kind, English, language, translation, changed translation, under a line with these names.
        languages: Codes; None takes all that the file has and that the encoder, if it says which, was trained for.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: The file is missing or of another form, or has none of the languages.
    """
    lines = list(read_fields(file, len(HEADER), LAYOUT))
    if not lines or lines[0] != HEADER:
        raise DataError(f"{file}: its first line must be {' '.join(HEADER)}, with tabs between")
    found = sorted({line[2] for line in lines[1:]})
    known = getattr(encoder, "languages", found) if languages is None else languages
    wanted = [code for code in found if code in known]
    if missing := [code for code in languages or () if code not in found]:
        raise DataError(f"{file}: has no sentences in {', '.join(missing)}; it has {', '.join(found)}")
    if not wanted:
        raise DataError(f"{file}: no sentences in a language of the model")
    cells = [(kind, code) for kind in dict.fromkeys(line[0] for line in lines[1:]) for code in wanted]
    scores = []
    with Progress("languages and kinds", len(cells), enabled=show_progress_bar) as progress:
        for kind, code in cells:
            texts = [line for line in lines[1:] if (line[0], line[2]) == (kind, code)]
            if texts:
                scores.append(ContrastScore(kind, code, len(texts), _accuracy(encoder, texts)))
            progress.advance()
    return ContrastEvaluation(tuple(scores))


def _accuracy(encoder: Encodes, lines: Sequence[Sequence[str]]) -> float:
    english, right, wrong = (encoder.encode([line[column] for line in lines]) for column in (1, 3, 4))
    gap = row_cosines(english, right) - row_cosines(english, wrong)
    return float(100 * np.where(np.abs(gap) < SAME, 0.5, gap > 0).mean())


def _mean(scores: Sequence[ContrastScore]) -> float:
    """Every sentence counts the same."""
    return sum(score.accuracy * score.sentences for score in scores) / sum(score.sentences for score in scores)
