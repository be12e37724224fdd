"""The result of a protocol, and the languages that it measures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from xsent.errors import DataError
from xsent.open_model import SupportsEncode
from xsent.progress import Progress
from xsent.tasks import each_text

Figures = Mapping[str, Any]  # by name, fit for JSON


@dataclass(frozen=True)
class Evaluation:
    """The result of a protocol."""

    scores: Mapping[str, Figures]  # by language, or by kind
    mean: Figures
    note: str  # what to know when comparing results
    by: str = "language"

    @classmethod
    def of(cls, scores: Mapping[str, Figures], averaged: Sequence[str], note: str) -> "Evaluation":
        """A result whose mean averages some figures over the languages."""
        return cls(scores, {name: fmean(row[name] for row in scores.values()) for name in averaged}, note)

    def rows(self) -> list[dict[str, Any]]:
        """A table with one row per language, and one for the mean."""
        return [{self.by: name, **row} for name, row in {**self.scores, "mean": self.mean}.items()]


def measure_each(
    languages: Sequence[str], measure: Callable[[str], Figures], averaged: Sequence[str], note: str
) -> Evaluation:
    """Measure one language after another."""
    with Progress("languages", len(languages)) as progress:
        scores = {language: measure(language) for language in progress.count(languages)}
    return Evaluation.of(scores, averaged, note)


def choose_languages(
    encoder: SupportsEncode, found: Iterable[str], asked: Sequence[str] | None, place: str | Path, expected: str
) -> list[str]:
    """The requested languages; by default those with a test that the encoder was trained for, if it lists them.

    Raises DataError if there are none, or a requested one has no test; the message names `place` and `expected`.
    """
    there = sorted(found)
    if not there:
        why = "has nothing to measure" if Path(place).exists() else "no such folder"
        raise DataError(f"{place}: {why}; expected {expected}")
    chosen = (
        [*each_text(asked)]
        if asked is not None
        else [code for code in there if code in getattr(encoder, "languages", there)]
    )
    missing = ", ".join(code for code in chosen if code not in there)
    nothing = "a language of the model" if asked is None else "the requested languages"
    if missing or not chosen:
        raise DataError(f"{place}: has nothing in {missing or nothing}; available: {', '.join(there)}")
    return chosen
