"""Evaluation protocols on files: cross-lingual retrieval with P@1.

Works for anything that encodes; needs NumPy alone. P@1 is in percent: the candidate of highest cosine must be
the very row of the query's translation; of equal cosines the first row counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from xsent.errors import DataError
from xsent.lines import read_fields, read_lines
from xsent.progress import Progress
from xsent.retrieval import Encodes, Retrieval, retrieve

TATOEBA_NOTE = "P@1 by cosine among the up to 1,000 sentences of the other side."
XSR_NOTE = (
    "P@1 by cosine. en_xx searches all translations and the distractors; xx_en has only the rows' English "
    "sides as candidates. The 88.8 of mao2021 is on Europarl, whose sentences are harder to tell apart."
)


@dataclass(frozen=True)
class LanguageScore:
    """Both directions of one language.

    Attributes:
        language: Its code.
        xx_en: From the language to English.
        en_xx: From English to the language.
    """

    language: str
    xx_en: Retrieval
    en_xx: Retrieval

    def row(self) -> dict[str, object]:
        """One row of a table; the reading by text only where it differs."""
        row: dict[str, object] = {"language": self.language, "queries": self.en_xx.queries}
        for name, score in (("xx_en", self.xx_en), ("en_xx", self.en_xx)):
            row[name] = score.p_at_1
            row[f"{name}_candidates"] = score.candidates
            if score.same_text != score.correct:
                row[f"{name}_same_text"] = score.p_at_1_same_text
        return row

    def figures(self) -> dict[str, float]:
        """What means over languages are taken of."""
        return {"xx_en": self.xx_en.p_at_1, "en_xx": self.en_xx.p_at_1}


@dataclass(frozen=True)
class Evaluation:
    """The result of a protocol.

    Attributes:
        task: Its name.
        languages: Scores by language.
        note: What to know when comparing.
    """

    task: str
    languages: tuple[LanguageScore, ...]
    note: str

    @property
    def xx_en(self) -> float:
        """Mean P@1 towards English in percent."""
        return float(np.mean([score.xx_en.p_at_1 for score in self.languages]))

    @property
    def en_xx(self) -> float:
        """Mean P@1 from English in percent."""
        return float(np.mean([score.en_xx.p_at_1 for score in self.languages]))

    def rows(self) -> list[dict[str, object]]:
        """A table with one row a language and one for the mean; fit for JSON."""
        figures = [score.figures() for score in self.languages]
        means = {name: float(np.mean([row[name] for row in figures])) for name in figures[0]}
        return [*(score.row() for score in self.languages), {"language": "mean", **means}]


def shared_languages(encoder: Encodes, folder: str | Path) -> list[str]:
    """Languages that a folder has an `en-XX.tsv` for and that the encoder, if it says which, was trained for.

    Raises:
        DataError: There are none.
    """
    found = sorted(file.stem.removeprefix("en-") for file in Path(folder).glob("en-*.tsv"))
    known = getattr(encoder, "languages", found)
    shared = [language for language in found if language in known]
    if not shared:
        raise DataError(f"{folder}: no en-XX.tsv of a language of the model; expected e.g. en-fr.tsv")
    return shared


def tatoeba(
    encoder: Encodes, folder: str | Path, languages: Sequence[str] | None = None, *, show_progress_bar: bool = False
) -> Evaluation:
    """Tatoeba similarity search (method of LASER): up to 1,000 sentences a language, both directions.

    Args:
        encoder: What encodes.
        folder: Has `en-XX.tsv` a language: English, translation.
        languages: Codes; None takes all that the folder has and that the encoder, if it says which, was trained for.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    languages = shared_languages(encoder, folder) if languages is None else languages
    scores = []
    with Progress("languages", len(languages), enabled=show_progress_bar) as progress:
        for language in languages:
            english, other = read_tatoeba(folder, language)
            gold = range(len(english))
            scores.append(
                LanguageScore(
                    language,
                    xx_en=retrieve(encoder, other, english, gold),
                    en_xx=retrieve(encoder, english, other, gold),
                )
            )
            progress.advance()
    return Evaluation("tatoeba", tuple(scores), TATOEBA_NOTE)


def xsr(
    encoder: Encodes, folder: str | Path, languages: Sequence[str] | None = None, *, show_progress_bar: bool = False
) -> Evaluation:
    """Cross-lingual sentence retrieval (mao2021, table 4) among about 200,000 candidates.

    Args:
        encoder: What encodes.
        folder: Has `en-XX.tsv` a language (Q or C, source, English, translation), whose rows Q are the
            queries, and `distractors.XX.txt.xz`, further candidates in the language.
        languages: Codes; None takes all that the folder has and that the encoder, if it says which, was trained for.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    languages = shared_languages(encoder, folder) if languages is None else languages
    scores = []
    with Progress("candidates", enabled=show_progress_bar) as progress:
        for language in languages:
            layout = "Q or C, source, English, translation"
            file = _existing(Path(folder) / f"en-{language}.tsv", layout)
            distractors = _existing(Path(folder) / f"distractors.{language}.txt.xz", "one sentence a line")
            kinds, _, english, other = _columns(read_fields(file, 4, layout), file)
            gold = [row for row, kind in enumerate(kinds) if kind == "Q"]
            if not gold:
                raise DataError(f"{file}: no row is a query; expected {layout}")
            pool = progress.count(chain(other, read_lines(distractors)))
            scores.append(
                LanguageScore(
                    language,
                    xx_en=retrieve(encoder, [other[row] for row in gold], english, gold),
                    en_xx=retrieve(encoder, [english[row] for row in gold], pool, gold),
                )
            )
    return Evaluation("xsr", tuple(scores), XSR_NOTE)


def read_tatoeba(folder: str | Path, language: str) -> Sequence[Sequence[str]]:
    """The English sentences and their translations, as many.

    Raises:
        DataError: The file is missing or cannot be read.
    """
    file = _existing(Path(folder) / f"en-{language}.tsv", "English, translation")
    return _columns(read_fields(file, 2, "English, translation"), file)


def _existing(file: Path, layout: str) -> Path:
    if not file.is_file():
        raise DataError(f"{file}: no such file; expected UTF-8 lines of: {layout}")
    return file


def _columns(rows: Iterable[list[str]], file: Path) -> Sequence[Sequence[str]]:
    columns = list(zip(*rows, strict=True))
    if not columns:
        raise DataError(f"{file}: empty; expected a line a pair")
    return columns
