"""What a protocol gives, and the languages that it measures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from xsent.cli.terminal import Progress
from xsent.errors import DataError
from xsent.open_model import SupportsEncode

Figures = Mapping[str, Any]  # by name, fit for JSON


@dataclass(frozen=True)
class Evaluation:
    """The result of a protocol."""

    scores: Mapping[str, Figures]  # by language, or by kind of what is told apart
    mean: Figures
    note: str  # what to know when comparing
    by: str = "language"

    @classmethod
    def of(cls, scores: Mapping[str, Figures], averaged: Sequence[str], note: str) -> "Evaluation":
        """With the means of some figures over the languages."""
        return cls(scores, {name: fmean(row[name] for row in scores.values()) for name in averaged}, note)

    def rows(self) -> list[dict[str, Any]]:
        """A table with one row a language and one for the mean."""
        return [{self.by: name, **row} for name, row in {**self.scores, "mean": self.mean}.items()]


def measure_each(
    languages: Sequence[str], measure: Callable[[str], Figures], averaged: Sequence[str], note: str
) -> Evaluation:
    """Measure one language after the other."""
    with Progress("languages", len(languages)) as progress:
        scores = {language: measure(language) for language in progress.count(languages)}
    return Evaluation.of(scores, averaged, note)


def by_kind(right: Sequence[tuple[str, str, Sequence[float]]], counted: str, note: str) -> Evaluation:
    """A row for each kind, with a column a language, of what is right (1) and wrong (0) of a kind in a language."""

    def shares(parts: Iterable[tuple[str, str, Sequence[float]]]) -> Figures:
        by_language: dict[str, list[float]] = {}
        for _, code, ones in sorted(parts, key=itemgetter(1)):
            by_language.setdefault(code, []).extend(ones)
        everything = [one for ones in by_language.values() for one in ones]  # counts the same in the mean
        per_cent = {code: 100 * fmean(ones) for code, ones in [*by_language.items(), ("mean", everything)]}
        return {counted: len(everything), **per_cent}

    kinds = dict.fromkeys(kind for kind, _, _ in right)
    scores = {kind: shares(part for part in right if part[0] == kind) for kind in kinds}
    return Evaluation(scores, shares(right), note, by="kind")


def choose_languages(
    encoder: SupportsEncode, found: Iterable[str], asked: Sequence[str] | None, place: str | Path, expected: str
) -> list[str]:
    """The languages that are asked for; else those with a test that the encoder, if it says which, was trained for."""
    if asked is not None:
        return list(asked)
    there = sorted(found)
    known = getattr(encoder, "languages", there)
    if chosen := [language for language in there if language in known]:
        return chosen
    why = "nothing in a language of the model" if Path(place).exists() else "no such folder"
    raise DataError(f"{place}: {why}; expected {expected}")


def choose_of_file(
    encoder: SupportsEncode, found: Iterable[str], asked: Sequence[str] | None, file: str | Path
) -> list[str]:
    """The same for a file that has all languages; a DataError names those asked for that it lacks."""
    if not (there := sorted(found)):
        raise DataError(f"{file}: has nothing to measure; expected lines in some language")
    wanted = sorted(choose_languages(encoder, there, asked, file, f"one of {', '.join(there)}"))
    if missing := [code for code in wanted if code not in there]:
        raise DataError(f"{file}: has nothing in {', '.join(missing)}; it has {', '.join(there)}")
    return wanted
