"""How well an encoder's vectors lie in the space of another one, whose vectors they are compared with.

The use: an index of English documents that another model made, searched in other languages by ours, and the reverse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xsent.evaluation import Evaluation, LanguageScore, read_tatoeba, shared_languages
from xsent.progress import Progress
from xsent.retrieval import Encodes, retrieve_rows
from xsent.sts import row_cosines

NOTE = (
    "P@1 as in tatoeba, English encoded by the other model. cosine_english: mean cosine of both models' vectors of an "
    "English sentence; cosine_across: of this model's of its translation and the other's of the English."
)


@dataclass(frozen=True)
class SpaceScore(LanguageScore):
    """Both directions of one language, English by the other encoder.

    Attributes:
        english: Mean cosine of both encoders' vectors of an English sentence.
        across: Mean cosine of the encoder's vector of its translation and the other's of the English.
    """

    english: float
    across: float

    def row(self) -> dict[str, object]:
        """One row of a table."""
        return {**super().row(), **self._cosines()}

    def figures(self) -> dict[str, float]:
        """What means over languages are taken of."""
        return {**super().figures(), **self._cosines()}

    def _cosines(self) -> dict[str, float]:
        return {"cosine_english": self.english, "cosine_across": self.across}


def space(
    encoder: Encodes,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    english_by: Encodes,
    show_progress_bar: bool = False,
) -> Evaluation:
    """Search between an encoder's vectors and English ones of another encoder; on the files of `tatoeba`.

    Args:
        encoder: What encodes the other languages.
        folder: Has `en-XX.tsv` a language: English, translation.
        languages: Codes; None takes all that the folder has and that the encoder, if it says which, was trained for.
        english_by: What encodes English.
        show_progress_bar: Report progress on standard error.

    Returns:
        An evaluation whose scores are of `SpaceScore`.

    Raises:
        DataError: A file is missing or cannot be read.
        ValueError: The vectors of the two differ in length.
    """
    languages = shared_languages(encoder, folder) if languages is None else languages
    _check_dims(encoder, english_by)
    scores = []
    with Progress("languages", len(languages), enabled=show_progress_bar) as progress:
        for language in languages:
            english, other = map(list, read_tatoeba(folder, language))
            theirs, translated = english_by.encode(english), encoder.encode(other)
            scores.append(
                SpaceScore(
                    language,
                    xx_en=retrieve_rows(translated, theirs, english),
                    en_xx=retrieve_rows(theirs, translated, other),
                    english=float(row_cosines(encoder.encode(english), theirs).mean()),
                    across=float(row_cosines(translated, theirs).mean()),
                )
            )
            progress.advance()
    return Evaluation("space", tuple(scores), NOTE)


def _check_dims(encoder: Encodes, english_by: Encodes) -> None:
    ours, theirs = (either.encode(["cat"]).shape[1] for either in (encoder, english_by))
    if ours != theirs:
        raise ValueError(
            f"the model's vectors have {ours} numbers, those of the model for English {theirs}; expected two of one "
            "space: `xsent info` says whose space a bundle's vectors lie in"
        )
