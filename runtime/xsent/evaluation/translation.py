"""How often a sentence finds its translation: P@1 by cosine, and the error rate by margin (xsim) as in LASER."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, Figures, choose_languages, measure_each
from xsent.files.tables import TextSource
from xsent.files.text import read_fields, read_lines
from xsent.mining.bitext import mine_bitext
from xsent.mining.margin import Margin
from xsent.open_model import SupportsEncode
from xsent.progress import Progress
from xsent.similarity import NearestSearch, nearest, row_cosines
from xsent.tasks import each_text

DIRECTIONS = ("xx_en", "en_xx")
COSINES = ("cosine_english", "cosine_across")

TATOEBA_NOTE = "P@1 by cosine among the up to 1,000 sentences of the other side."
XSR_NOTE = (
    "P@1 by cosine. en_xx searches all translations and the distractors; xx_en has only the rows' English "
    "sides as candidates. The 88.8 of mao2021 is on Europarl, whose sentences are harder to tell apart."
)
SPACE_NOTE = (
    "P@1 as in tatoeba, with English encoded by the other model. cosine_english: mean cosine of both models' vectors "
    "of an English sentence; cosine_across: of this model's vector of its translation and the other's of the English."
)

_XSR_LAYOUT = "Q or C, source, English, translation"
_BLOCK = 4096  # candidates encoded and scored at once


def tatoeba(encoder: SupportsEncode, folder: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Tatoeba similarity search (LASER's method); the folder has one `en-XX.tsv` per language: English, translation."""

    def measure(language: str) -> Figures:
        english, other = map(encoder.encode, _read_pairs(folder, language))
        return _both_ways(english, other)

    languages = languages_of(encoder, folder, languages)
    return measure_each(languages, measure, DIRECTIONS, TATOEBA_NOTE)


def xsr(encoder: SupportsEncode, folder: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Cross-lingual sentence retrieval (mao2021, table 4) among about 200,000 candidates.

    The folder has two files per language: `en-XX.tsv` (Q or C, source, English, translation), whose Q rows are
    the queries, and `distractors.XX.txt.xz` with further candidates.
    """
    scores = {}
    languages = languages_of(encoder, folder, languages)
    with Progress("candidates") as progress:
        for language in languages:
            file = Path(folder) / f"en-{language}.tsv"
            kinds, _, english, other = _columns(file, 4, _XSR_LAYOUT)
            distractors = Path(folder) / f"distractors.{language}.txt.xz"
            gold = [row for row, kind in enumerate(kinds) if kind == "Q"]
            if not gold:
                raise DataError(f"{file}: has no queries; expected {_XSR_LAYOUT}")
            pool = progress.count(chain(other, read_lines(distractors)))
            queries, in_english = (encoder.encode([side[row] for row in gold]) for side in (other, english))
            found = retrieve("xx_en", queries, encoded(encoder, english), gold)
            found |= retrieve("en_xx", in_english, encoded(encoder, pool), gold)
            scores[language] = {"queries": len(gold), **found}
    return Evaluation.of(scores, DIRECTIONS, XSR_NOTE)


def space(
    encoder: SupportsEncode,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    english_by: SupportsEncode,
) -> Evaluation:
    """Agreement with the vectors of another encoder, which encodes English; on the files of `tatoeba`.

    The better it is, the better one model can search an index that the other built. Raises ValueError if the vectors
    of the two differ in length.
    """

    def measure(language: str) -> Figures:
        english, other = _read_pairs(folder, language)
        reference = english_by.encode(english)
        translated = encoder.encode(other)
        cosines = (float(row_cosines(own, reference).mean()) for own in (encoder.encode(english), translated))
        return {**_both_ways(reference, translated), **dict(zip(COSINES, cosines, strict=True))}

    languages = languages_of(encoder, folder, languages)
    dim, reference_dim = (either.encode(["cat"]).shape[1] for either in (encoder, english_by))
    if dim != reference_dim:
        raise ValueError(
            f"the model's vectors have {dim} numbers, those of the model for English {reference_dim}; expected two of "
            "the same space, which `xsent info` shows for a bundle"
        )
    return measure_each(languages, measure, (*DIRECTIONS, *COSINES), SPACE_NOTE)


def xsim(
    encoder: SupportsEncode,
    folder: str | Path,
    languages: Sequence[str] | None = None,
    *,
    margin: Margin = "ratio",
) -> Evaluation:
    """Error rates in per cent of every language against English, in both directions; `margin` as in `mine_bitext`.

    The folder has one file of parallel lines per language, such as `en.txt` and `fr.txt`.
    """
    files = {file.stem: file for file in Path(folder).glob("*.txt")}
    asked = None if languages is None else [code for code in each_text(languages) if code != "en"]
    languages = choose_languages(encoder, files.keys() - {"en"}, asked, folder, "files beside en.txt, such as fr.txt")
    if "en" not in files:
        raise DataError(f"{folder}: no en.txt; expected one, with one sentence per line")
    english = TextSource(str(files["en"])).read()
    if margin != "absolute" and len(english) < 4:
        raise DataError(f"{files['en']}: {len(english)} lines; expected at least 4, the neighbours of a margin")
    vectors = encoder.encode(english)

    def measure(code: str) -> Figures:
        texts = TextSource(str(files[code])).read()
        if len(texts) != len(english):
            raise DataError(f"{files[code]}: {len(texts):,} lines, en.txt {len(english):,}; expected parallel lines")
        other = encoder.encode(texts)
        errors = (xsim_errors(*sides, margin=margin) for sides in ((other, vectors), (vectors, other)))
        rates = (100 * count / len(texts) for count in errors)
        return {"sentences": len(texts), **dict(zip(DIRECTIONS, rates, strict=True))}

    note = f"Error rate in percent of retrieval by margin ({margin}, k = 4); lower is better."
    return measure_each(languages, measure, DIRECTIONS, note)


def xsim_errors(src: ArrayLike, trg: ArrayLike, *, margin: Margin = "ratio", k: int = 4) -> int:
    """Count source vectors [n, D] that are zero or whose best target by margin is not in the same row."""
    n, m = len(np.asanyarray(src)), len(np.asanyarray(trg))
    if n != m:
        raise ValueError(f"{n:,} and {m:,} sentences are not parallel; expected equally many on both sides")
    found = mine_bitext(src, trg, margin=margin, retrieval="fwd", k=k, least_mean=-1)
    return n - int((found.src == found.trg).sum())


def languages_of(encoder: SupportsEncode, folder: str | Path, asked: Sequence[str] | None = None) -> list[str]:
    """The languages of a folder with one `en-XX.tsv` per language, see `choose_languages`."""
    found = (file.stem.removeprefix("en-") for file in Path(folder).glob("en-*.tsv"))
    return choose_languages(encoder, found, asked, folder, "an en-XX.tsv such as en-fr.tsv")


def retrieve(
    name: str, queries: ArrayLike, candidates: Iterable[NDArray[Any]], gold: Sequence[int]
) -> dict[str, float]:
    """Find the nearest candidate of every query vector [q, D]; `gold` has the indices of their translations [q].

    Candidates, vectors [c, D], come in blocks that are not kept.

    Returns:
        `name`: per cent of queries whose nearest candidate is the gold one; `name_candidates`: their number.
    """
    search, count = NearestSearch(queries), 0
    for vectors in candidates:
        search.add(vectors)
        count += len(vectors)
    correct = int((search.indices[:, 0] == np.asarray(gold)).sum())
    return {name: 100 * correct / len(gold), f"{name}_candidates": count}


def finds_gold(queries: ArrayLike, candidates: ArrayLike, gold: Sequence[int]) -> NDArray[np.bool_]:
    """Whether the nearest candidate [c, D] of each query [q, D] is the gold one [q], by cosine; the mean is P@1."""
    found: NDArray[np.bool_] = nearest(queries, candidates)[0][:, 0] == np.asarray(gold)
    return found


def encoded(encoder: SupportsEncode, sentences: Iterable[str]) -> Iterator[NDArray[Any]]:
    """The vectors of sentences, in blocks."""
    source = iter(sentences)
    while block := list(islice(source, _BLOCK)):
        yield encoder.encode(block)


def _both_ways(english: NDArray[Any], other: NDArray[Any]) -> Figures:
    """Retrieve in both directions."""
    gold = range(len(english))
    found = retrieve("xx_en", other, [english], gold) | retrieve("en_xx", english, [other], gold)
    return {"queries": len(gold), **found}


def _read_pairs(folder: str | Path, language: str) -> list[list[str]]:
    """The English sentences and their translations, the two columns of `en-XX.tsv`."""
    return _columns(Path(folder) / f"en-{language}.tsv", 2, "English, translation")


def _columns(file: Path, count: int, layout: str) -> list[list[str]]:
    columns = list(map(list, zip(*read_fields(file, count, layout), strict=True)))
    if not columns:
        raise DataError(f"{file}: empty; expected one pair per line")
    return columns
