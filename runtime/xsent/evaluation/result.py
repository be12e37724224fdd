"""The result of a protocol, and the languages that it measures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from xsent.errors import DataError
from xsent.open_model import SupportsEncode
from xsent.progress import Progress

Figures = Mapping[str, Any]  # by name, fit for JSON


@dataclass(frozen=True)
class Evaluation:
    """The result of a protocol."""

    scores: Mapping[str, Figures]  # by language, or by kind
    mean: Figures
    note: str  # what to know when comparing
    by: str = "language"

    @classmethod
    def of(cls, scores: Mapping[str, Figures], averaged: Sequence[str], note: str) -> "Evaluation":
        """A result whose mean has some figures, averaged over the languages."""
        return cls(scores, {name: fmean(row[name] for row in scores.values()) for name in averaged}, note)

    def rows(self) -> list[dict[str, Any]]:
        """A table with a row for each language, and one for the mean."""
        return [{self.by: name, **row} for name, row in {**self.scores, "mean": self.mean}.items()]


def measure_each(
    languages: Sequence[str], measure: Callable[[str], Figures], averaged: Sequence[str], note: str
) -> Evaluation:
    """Measure one language after the other."""
    with Progress("languages", len(languages)) as progress:
        scores = {language: measure(language) for language in progress.count(languages)}
    return Evaluation.of(scores, averaged, note)


def choose_languages(
    encoder: SupportsEncode, found: Iterable[str], asked: Sequence[str] | None, place: str | Path, expected: str
) -> list[str]:
    """The languages asked for; by default those with a test that the encoder names, or all if it names none.

    Raises DataError if there is none, or no test of one asked for; `place` and `expected` are named in the message.
    """
    there = sorted(found)
    if not there:
        why = "has nothing to measure" if Path(place).exists() else "no such folder"
        raise DataError(f"{place}: {why}; expected {expected}")
    chosen = [*asked] if asked is not None else [code for code in there if code in getattr(encoder, "languages", there)]
    missing = ", ".join(code for code in chosen if code not in there)
    nothing = "a language of the model" if asked is None else "the languages asked for"
    if missing or not chosen:
        raise DataError(f"{place}: has nothing in {missing or nothing}; it has {', '.join(there)}")
    return chosen
