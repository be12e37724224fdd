"""xsim: how often retrieval by margin misses the translation, on parallel sentences.

The error rate of LASER's xsim: for every source sentence, the best by margin among its k nearest targets must be
the sentence of the same place. Works for anything that encodes; needs NumPy alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from xsent.errors import DataError
from xsent.lines import read_lines
from xsent.mining.bitext import mine_bitext
from xsent.mining.margin import Margin
from xsent.progress import Progress
from xsent.retrieval import Encodes

_SUFFIXES = (".txt", ".dev", ".devtest")


@dataclass(frozen=True)
class XsimScore:
    """Both directions of one language against the pivot.

    Attributes:
        language: Its code.
        pivot: The code of the other side.
        sentences: Pairs of sentences.
        to_pivot: Sources of the language whose best target is another sentence than the translation.
        from_pivot: The same from the pivot to the language.
    """

    language: str
    pivot: str
    sentences: int
    to_pivot: int
    from_pivot: int

    def rates(self) -> dict[str, float]:
        """Error rates in percent by direction."""
        both = {f"xx_{self.pivot}": self.to_pivot, f"{self.pivot}_xx": self.from_pivot}
        return {direction: 100 * errors / self.sentences for direction, errors in both.items()}


@dataclass(frozen=True)
class Xsim:
    """Error rates of several languages.

    Attributes:
        languages: By language.
        note: What to know when comparing.
    """

    languages: tuple[XsimScore, ...]
    note: str

    def rows(self) -> list[dict[str, object]]:
        """A table with one row a language and one for the mean; fit for JSON."""
        rates = [score.rates() for score in self.languages]
        rows: list[dict[str, object]] = [
            {"language": score.language, "sentences": score.sentences, **rate}
            for score, rate in zip(self.languages, rates, strict=True)
        ]
        return [*rows, {"language": "mean"} | {name: fmean(rate[name] for rate in rates) for name in rates[0]}]


def xsim_errors(src: ArrayLike, trg: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> int:
    """Count the source vectors whose best target by margin is not the one of the same row.

    Args:
        src: Vectors [n, D]; a zero vector is an error.
        trg: Vectors of the translations [n, D].
        margin: See `margin_scores`.
        k: Neighbours that are candidates, and that a score is compared with.

    Raises:
        ValueError: The sides differ in number, or as `mine_bitext`.
    """
    n, m = len(np.asanyarray(src)), len(np.asanyarray(trg))
    if n != m:
        raise ValueError(f"{n:,} and {m:,} sentences are not parallel; expected as many on both sides")
    found = mine_bitext(src, trg, margin=margin, retrieval="fwd", k=k)
    return n - int((found.src == found.trg).sum())


def xsim(
    encoder: Encodes, sources: Sequence[str], targets: Sequence[str], *, margin: Margin = "ratio", k: int = 4
) -> float:
    """Error rate in percent from sources to targets.

    Args:
        encoder: What encodes.
        sources: n sentences.
        targets: Their translations, in the same order.
        margin: See `margin_scores`.
        k: Neighbours that are candidates, and that a score is compared with.

    Raises:
        ValueError: See `xsim_errors`.
    """
    src, trg = encoder.encode(list(sources)), encoder.encode(list(targets))
    return 100 * xsim_errors(src, trg, margin=margin, k=k) / len(sources)


def xsim_folder(
    encoder: Encodes,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    pivot: str = "en",
    margin: Margin = "ratio",
    k: int = 4,
    show_progress_bar: bool = False,
) -> Xsim:
    """Error rates of every language against one, both directions.

    Args:
        encoder: What encodes.
        folder: One file of parallel lines a language, as FLORES and NTREX have them; the code is the file's name
            without its ending (`fr.txt`, `fra_Latn.devtest`), after the last dot in it (`newstest2019-ref.fra.txt`).
        languages: Codes; None takes all that the folder has and that the encoder, if it says which, was trained for.
        pivot: Code of the language that the others are compared with.
        margin: See `margin_scores`.
        k: Neighbours that are candidates, and that a score is compared with.
        show_progress_bar: Report progress on standard error.

    Raises:
        DataError: A file is missing, empty or of another number of lines than the pivot's, or there is no language.
    """
    files = {file.stem.rpartition(".")[2]: file for file in sorted(Path(folder).glob("*")) if file.suffix in _SUFFIXES}
    known = getattr(encoder, "languages", files)
    if languages is None:
        languages = [code for code in files if code in known]
    languages = [code for code in languages if code != pivot]
    if not languages:
        raise DataError(f"{folder}: no file of a language of the model beside {pivot}; expected e.g. fr.txt")
    anchor = _sentences(files, folder, pivot)
    vectors = encoder.encode(anchor)
    scores = []
    with Progress("languages", len(languages), enabled=show_progress_bar) as progress:
        for code in languages:
            texts = _sentences(files, folder, code)
            if len(texts) != len(anchor):
                lengths = f"{len(texts):,} lines, {files[pivot].name} {len(anchor):,}"
                raise DataError(f"{files[code]}: {lengths}; expected parallel lines")
            other = encoder.encode(texts)
            to_pivot = xsim_errors(other, vectors, margin=margin, k=k)
            from_pivot = xsim_errors(vectors, other, margin=margin, k=k)
            scores.append(XsimScore(code, pivot, len(texts), to_pivot, from_pivot))
            progress.advance()
    return Xsim(tuple(scores), f"Error rate in percent of retrieval by margin ({margin}, k = {k}); lower is better.")


def _sentences(files: dict[str, Path], folder: str | Path, code: str) -> list[str]:
    if code not in files:
        raise DataError(f"{folder}: no file of {code}; expected e.g. {code}.txt with one sentence a line")
    if not (sentences := list(read_lines(files[code]))):
        raise DataError(f"{files[code]}: empty; expected one sentence a line")
    return sentences
