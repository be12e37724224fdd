"""Translations found by cosine: P@1 in per cent among the sentences of the other side.

The candidate of highest cosine must be the very row of the query's translation; of equal cosines the first row counts.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, Figures, choose_languages, measure_each
from xsent.evaluation.retrieval import Retrieval, retrieve, retrieve_rows
from xsent.evaluation.sts import row_cosines
from xsent.lines import read_fields, read_lines
from xsent.models import SupportsEncode
from xsent.terminal import Progress

DIRECTIONS = ("xx_en", "en_xx")
COSINES = ("cosine_english", "cosine_across")
PAIRS, XSR_ROWS = "English, translation", "Q or C, source, English, translation"

TATOEBA_NOTE = "P@1 by cosine among the up to 1,000 sentences of the other side."
XSR_NOTE = (
    "P@1 by cosine. en_xx searches all translations and the distractors; xx_en has only the rows' English "
    "sides as candidates. The 88.8 of mao2021 is on Europarl, whose sentences are harder to tell apart."
)
SPACE_NOTE = (
    "P@1 as in tatoeba, English encoded by the other model. cosine_english: mean cosine of both models' vectors of an "
    "English sentence; cosine_across: of this model's of its translation and the other's of the English."
)


def tatoeba(
    encoder: SupportsEncode,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    show_progress_bar: bool = False,
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

    def measure(language: str) -> Figures:
        english, other = read_tatoeba(folder, language)
        gold = range(len(english))
        return _figures(retrieve(encoder, other, english, gold), retrieve(encoder, english, other, gold))

    languages = languages_of(encoder, folder, languages)
    return measure_each(languages, measure, DIRECTIONS, TATOEBA_NOTE, show_progress_bar=show_progress_bar)


def xsr(
    encoder: SupportsEncode,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    show_progress_bar: bool = False,
) -> Evaluation:
    """Cross-lingual sentence retrieval (mao2021, table 4) among about 200,000 candidates.

    Args:
        encoder: What encodes.
        folder: Has `en-XX.tsv` a language (Q or C, source, English, translation), whose rows Q are the
            queries, and `distractors.XX.txt.xz`, further candidates in the language.
        languages: As for `tatoeba`.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    languages, scores = languages_of(encoder, folder, languages), {}
    with Progress("candidates", enabled=show_progress_bar) as progress:
        for language in languages:
            file = _existing(Path(folder) / f"en-{language}.tsv", XSR_ROWS)
            distractors = _existing(Path(folder) / f"distractors.{language}.txt.xz", "one sentence a line")
            kinds, _, english, other = _columns(read_fields(file, 4, XSR_ROWS), file)
            gold = [row for row, kind in enumerate(kinds) if kind == "Q"]
            if not gold:
                raise DataError(f"{file}: no row is a query; expected {XSR_ROWS}")
            pool = progress.count(chain(other, read_lines(distractors)))
            scores[language] = _figures(
                retrieve(encoder, [other[row] for row in gold], english, gold),
                retrieve(encoder, [english[row] for row in gold], pool, gold),
            )
    return Evaluation.of(scores, DIRECTIONS, XSR_NOTE)


def space(
    encoder: SupportsEncode,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    english_by: SupportsEncode,
    show_progress_bar: bool = False,
) -> Evaluation:
    """How well an encoder's vectors lie among those of another one, which encodes English; on the files of `tatoeba`.

    The use: an index of English documents that another model made, searched in other languages by ours, and the
    reverse.

    Raises:
        DataError: A file is missing or cannot be read.
        ValueError: The vectors of the two differ in length.
    """

    def measure(language: str) -> Figures:
        english, other = map(list, read_tatoeba(folder, language))
        theirs, translated = english_by.encode(english), encoder.encode(other)
        found = retrieve_rows(translated, theirs, english), retrieve_rows(theirs, translated, other)
        near = (float(row_cosines(ours, theirs).mean()) for ours in (encoder.encode(english), translated))
        return {**_figures(*found), **dict(zip(COSINES, near, strict=True))}

    languages, averaged = languages_of(encoder, folder, languages), (*DIRECTIONS, *COSINES)
    _check_dims(encoder, english_by)
    return measure_each(languages, measure, averaged, SPACE_NOTE, show_progress_bar=show_progress_bar)


def languages_of(encoder: SupportsEncode, folder: str | Path, asked: Sequence[str] | None = None) -> list[str]:
    """The languages of a folder with an `en-XX.tsv` for each, see `choose_languages`."""
    found = (file.stem.removeprefix("en-") for file in Path(folder).glob("en-*.tsv"))
    return choose_languages(encoder, found, asked, folder, "an en-XX.tsv such as en-fr.tsv")


def read_tatoeba(folder: str | Path, language: str) -> Sequence[Sequence[str]]:
    """The English sentences and their translations, as many.

    Raises:
        DataError: The file is missing or cannot be read.
    """
    file = _existing(Path(folder) / f"en-{language}.tsv", PAIRS)
    return _columns(read_fields(file, 2, PAIRS), file)


def _figures(xx_en: Retrieval, en_xx: Retrieval) -> dict[str, float]:
    """Both directions of a language; the reading by text only where it differs."""
    figures: dict[str, float] = {"queries": en_xx.queries}
    for name, found in zip(DIRECTIONS, (xx_en, en_xx), strict=True):
        figures |= {name: found.p_at_1, f"{name}_candidates": found.candidates}
        if found.same_text != found.correct:
            figures[f"{name}_same_text"] = found.p_at_1_same_text
    return figures


def _existing(file: Path, layout: str) -> Path:
    if not file.is_file():
        raise DataError(f"{file}: no such file; expected UTF-8 lines of: {layout}")
    return file


def _columns(rows: Iterable[list[str]], file: Path) -> Sequence[Sequence[str]]:
    columns = list(zip(*rows, strict=True))
    if not columns:
        raise DataError(f"{file}: empty; expected a line a pair")
    return columns


def _check_dims(encoder: SupportsEncode, english_by: SupportsEncode) -> None:
    ours, theirs = (either.encode(["cat"]).shape[1] for either in (encoder, english_by))
    if ours != theirs:
        raise ValueError(
            f"the model's vectors have {ours} numbers, those of the model for English {theirs}; expected two of one "
            "space: `xsent info` says whose space a bundle's vectors lie in"
        )
