"""Protocols on human judgements of what is near in meaning: scores of pairs, contrasts, and words.

- STS-B: Spearman's rank correlation between the cosine of a pair and its score, from 0 (unrelated) to 5 (the same).
- Contrasts: is a sentence nearer to its translation than to a sentence with nearly the same words but another meaning?
  Changed are the word order, a negation, the names or a number. An encoder that ignores word order gets 50 per cent if
  the words stay the same.
- Words: is the nearest word the other form or the translation of a word, and not one of 50 others? Some of those are
  deliberately near: the same kind of thing, a similar spelling, "OK".
"""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, Figures, choose_languages, measure_each
from xsent.files.text import read_fields, read_lines
from xsent.open_model import SupportsEncode
from xsent.progress import Progress
from xsent.similarity import cosine_similarity, row_cosines

END = "-test.csv"
STS_NOTE = "Spearman's correlation of cosine and human score."

HEADER = ["kind", "english", "language", "translation", "changed"]  # first line of a file of contrasts
CONTRASTS_LAYOUT = "kind, English, language, translation, changed translation, separated by tabs"
CONTRASTS_NOTE = "Per cent of sentences that are nearer to their translation than to a changed one; ties count as half."

WORD_FIELDS = {"form": 5, "translation": 5, "other": 3}  # fields per line, by its kind
WORDS_LAYOUT = "'form' or 'translation', language, word, partner's language, partner; or 'other', language, word"
WORDS_NOTE = "P@1: per cent of words that are nearer to their partner than to all others; ties do not count."

_SAME = 1e-6  # a smaller difference of cosines may be rounding

Group = tuple[str, ...]  # kind, language, and for words the partner's language
Lines = list[list[str]]


def sts(encoder: SupportsEncode, folder: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """STS-B and its translations; the folder has `XX-test.csv` for each language: sentence, sentence, score."""
    found = (file.name.removesuffix(END) for file in Path(folder).glob(f"*{END}"))
    languages = choose_languages(encoder, found, languages, folder, f"an XX{END} such as en{END}")

    def measure(language: str) -> Figures:
        left, right, gold = read_sts(Path(folder) / f"{language}{END}")
        cosines = row_cosines(encoder.encode(left), encoder.encode(right))
        return {"pairs": len(gold), "spearman": spearman(cosines, gold)}

    return measure_each(languages, measure, ["spearman"], STS_NOTE)


def contrasts(encoder: SupportsEncode, file: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Measure an encoder on a file of contrasts, see `HEADER`: one row per kind of change, one column per language."""
    lines = list(read_fields(file, len(HEADER), CONTRASTS_LAYOUT))
    if not lines or lines[0] != HEADER:
        raise DataError(f"{file}: its first line must be {' '.join(HEADER)}, separated by tabs")
    wanted = choose_languages(encoder, {line[2] for line in lines[1:]}, languages, file, "lines in some language")
    groups: dict[Group, Lines] = {}
    for line in lines[1:]:
        if line[2] in wanted:
            groups.setdefault((line[0], line[2]), []).append(line)

    def right(group: Group) -> list[float]:
        english, translated, changed = (
            encoder.encode([line[column] for line in groups[group]]) for column in (1, 3, 4)
        )
        gap = row_cosines(english, translated) - row_cosines(english, changed)
        nearer: list[float] = np.where(np.abs(gap) < _SAME, 0.5, gap > 0).tolist()
        return nearer

    return _by_kind(groups, right, "sentences", CONTRASTS_NOTE)


def words(encoder: SupportsEncode, file: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Measure an encoder on a file of words, see `WORDS_LAYOUT`: one row per kind of partner, one column per language.

    The other words are in the partner's language, which must be one of the languages or English.
    """
    lines = _read_words(file)
    found = {line[1] for line in lines if line[0] != "other"}
    wanted = choose_languages(encoder, found, languages, file, "lines of words in some language")
    groups: dict[Group, Lines] = {}
    others: dict[str, list[str]] = {}  # by language
    for line in lines:
        kind, language, word = line[:3]
        if kind == "other":
            others.setdefault(language, []).append(word)
        elif language in wanted and line[3] in {*wanted, "en"}:
            groups.setdefault((kind, language, line[3]), []).append(line)
    if not groups:
        chosen = ", ".join(sorted({*wanted, "en"}))
        raise DataError(f"{file}: has no partners in {chosen}; choose the languages of the partners, too")
    if missing := sorted({code for _, _, code in groups} - set(others)):
        raise DataError(
            f"{file}: has no 'other' words in {', '.join(missing)}; expected, separated by tabs: {WORDS_LAYOUT}"
        )

    def right(group: Group) -> list[float]:
        queries, partners = (encoder.encode([line[column] for line in groups[group]]) for column in (2, 4))
        nearest_other = cosine_similarity(queries, encoder.encode(others[group[2]])).max(axis=1)
        nearer: list[float] = (row_cosines(queries, partners) > nearest_other + _SAME).astype(float).tolist()
        return nearer

    return _by_kind(groups, right, "words", WORDS_NOTE)


def read_sts(file: Path) -> tuple[list[str], list[str], list[float]]:
    """The sentences of both sides and their scores. Raises DataError unless at least two scores differ."""
    left, right, gold = [], [], []
    reader = csv.reader(f"{line}\n" for line in read_lines(file))
    try:
        for a, b, score in reader:
            if not math.isfinite(float(score)):
                raise ValueError(f"{score} is not a score")
            left.append(a)
            right.append(b)
            gold.append(float(score))
    except (ValueError, csv.Error) as error:
        raise DataError(f"{file}:{reader.line_num}: expected sentence, sentence, score, separated by commas") from error
    if len(set(gold)) < 2:
        raise DataError(f"{file}: {len(gold)} pairs with {len(set(gold))} scores; a correlation needs different ones")
    return left, right, gold


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's rank correlation of two lists of numbers; 0 if all numbers of one list are equal."""
    left, right = ranks(a), ranks(b)
    constant = np.ptp(left) == 0 or np.ptp(right) == 0
    return 0.0 if constant else float(np.corrcoef(left, right)[0, 1])


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of every number from 0; equal numbers get the mean of their ranks."""
    _, places, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[places]


def _by_kind(
    groups: Mapping[Group, Lines], right: Callable[[Group], list[float]], counted: str, note: str
) -> Evaluation:
    """One row per kind, one column per language: per cent of lines that are right; `right` returns 0 to 1 per line."""
    with Progress("languages and kinds", len(groups)) as progress:
        measured = [(group[0], group[1], right(group)) for group in progress.count(groups)]

    def shares(found: Iterable[tuple[str, str, list[float]]]) -> Figures:
        by_language: dict[str, list[float]] = {}
        for _, code, ones in sorted(found, key=itemgetter(1)):
            by_language.setdefault(code, []).extend(ones)
        # Every line has the same weight in the mean.
        everything = [one for ones in by_language.values() for one in ones]
        per_cent = {code: 100 * fmean(ones) for code, ones in [*by_language.items(), ("mean", everything)]}
        return {counted: len(everything), **per_cent}

    kinds = dict.fromkeys(kind for kind, _, _ in measured)
    scores = {kind: shares(part for part in measured if part[0] == kind) for kind in kinds}
    return Evaluation(scores, shares(measured), note, by="kind")


def _read_words(file: str | Path) -> Lines:
    lines = [line.split("\t") for line in read_lines(file)]
    for number, line in enumerate(lines, 1):
        if len(line) != WORD_FIELDS.get(line[0]) or not all(line):
            given = f"{line[0]!r} and {len(line) - 1} more fields"
            raise DataError(f"{file}:{number}: {given}; expected, separated by tabs and none empty: {WORDS_LAYOUT}")
    return lines
