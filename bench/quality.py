"""How good an encoder is: published protocols on files, for anything that encodes.

They only measure: nothing is ever chosen by them, except a probe's regularisation, by an English development split.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from xsent.errors import DataError
from xsent.evaluation import LanguageScore, tatoeba
from xsent.lines import read_fields, read_lines
from xsent.retrieval import Encodes, retrieve

PROBE_STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # inverse regularisation; unit vectors want little of it
XSR_LAYOUT = "Q or C, source, English, translation"


@dataclass(frozen=True)
class Topics:
    """A linear topic probe, trained in one language and tested in several.

    Attributes:
        accuracy: Share of right topics in per cent, by language.
        by_class: The mean over the topics of each topic's share of right answers, in per cent, by language.
        strength: Inverse regularisation that the development split chose.
    """

    accuracy: Mapping[str, float]
    by_class: Mapping[str, float]
    strength: float


def small_xsr(encoder: Encodes, folder: Path, language: str, *, distractors: int = 20_000) -> LanguageScore:
    """Cross-lingual sentence retrieval (mao2021, table 4) among fewer candidates than the 200,000 of the protocol.

    Args:
        encoder: What encodes.
        folder: Has `en-XX.tsv` (Q or C, source, English, translation) and `distractors.XX.txt.xz`.
        language: Code of the other language.
        distractors: How many of the distractors, from the first, join the rows' translations as candidates for
            English queries. The other direction has the rows' English sides alone.

    Raises:
        DataError: A file is missing, cannot be read, or has no query.
    """
    file = existing(folder / f"en-{language}.tsv", XSR_LAYOUT)
    more = existing(folder / f"distractors.{language}.txt.xz", "one sentence a line")
    rows = list(read_fields(file, 4, XSR_LAYOUT))
    gold = [row for row, fields in enumerate(rows) if fields[0] == "Q"]
    if not gold:
        raise DataError(f"{file}: no row is a query; expected {XSR_LAYOUT}")
    english, other = [fields[2] for fields in rows], [fields[3] for fields in rows]
    pool = chain(other, islice(read_lines(more), distractors))
    return LanguageScore(
        language,
        xx_en=retrieve(encoder, [other[row] for row in gold], english, gold),
        en_xx=retrieve(encoder, [english[row] for row in gold], pool, gold),
    )


def topics(encoder: Encodes, folder: Path, languages: Sequence[str], *, source: str = "en") -> Topics:
    """Zero-shot topic classification (the protocol of mao2021's table 3, on SIB-200): a linear head on frozen vectors.

    Args:
        encoder: What encodes.
        folder: Has `XX/{train,dev,test}.tsv` a language, with a heading: number, topic, text.
        languages: Languages to test in.
        source: Language that the head is trained in, and whose development split chooses its regularisation.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    labels, vectors = _topic_split(encoder, folder / source / "train.tsv")
    dev_labels, dev_vectors = _topic_split(encoder, folder / source / "dev.tsv")
    heads = [LogisticRegression(C=strength, max_iter=5000).fit(vectors, labels) for strength in PROBE_STRENGTHS]
    scores = [head.score(dev_vectors, dev_labels) for head in heads]
    best = int(np.argmax(scores))  # of equals the most regularised one
    accuracy, by_class = {}, {}
    for language in languages:
        gold, test = _topic_split(encoder, folder / language / "test.tsv")
        found = heads[best].predict(test)
        accuracy[language] = 100 * float(np.mean(found == gold))
        by_class[language] = 100 * float(np.mean([np.mean(found[gold == topic] == topic) for topic in set(gold)]))
    return Topics(accuracy, by_class, PROBE_STRENGTHS[best])


def text_similarity(encoder: Encodes, file: Path) -> float:
    """Semantic textual similarity (STS-B): Spearman's correlation of cosines with people's judgements, times 100.

    Args:
        encoder: What encodes.
        file: CSV of sentence, sentence, similarity.

    Raises:
        DataError: The file is missing or cannot be read.
    """
    with existing(file, "sentence, sentence, similarity").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    try:
        gold = [float(similarity) for _, _, similarity in rows]
    except ValueError as error:
        raise DataError(f"{file}: expected CSV lines of sentence, sentence, similarity: {error}") from error
    a, b = (unit(encoder.encode([row[side] for row in rows])) for side in (0, 1))
    cosines = (a * b).sum(axis=1)
    if np.ptp(cosines) == 0:  # an encoder that has collapsed has no order to correlate
        return 0.0
    return 100 * float(spearmanr(cosines, gold).statistic)


def measure(encoder: Encodes, data: Path, languages: Sequence[str], *, distractors: int = 20_000) -> dict[str, float]:
    """Every protocol, as the ablation reports them: a number by name, in per cent.

    Args:
        encoder: What encodes.
        data: Folder that has `tatoeba`, `xsr`, `sib200` and `stsb`.
        languages: Languages beside English; XSR and STS-B are for the first one alone.
        distractors: See `small_xsr`.
    """
    first = languages[0]
    scores = {}
    for score in tatoeba(encoder, data / "tatoeba", languages).languages:
        scores[f"Tatoeba {score.language}→en"] = score.xx_en.p_at_1
        scores[f"Tatoeba en→{score.language}"] = score.en_xx.p_at_1
    xsr = small_xsr(encoder, data / "xsr", first, distractors=distractors)
    scores |= {f"XSR en→{first}": xsr.en_xx.p_at_1, f"XSR {first}→en": xsr.xx_en.p_at_1}
    found = topics(encoder, data / "sib200", ["en", *languages])
    scores |= {f"SIB en→{language}": share for language, share in found.accuracy.items()}
    scores |= {f"SIB en→{language} by class": share for language, share in found.by_class.items()}
    for language in ("en", first):
        scores[f"STS {language}"] = text_similarity(encoder, data / "stsb" / f"{language}-test.csv")
    return scores


def unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Vectors of length 1; the zero vector stays."""
    rows = vectors.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def existing(file: Path, layout: str) -> Path:
    """The file itself.

    Raises:
        DataError: There is none.
    """
    if not file.is_file():
        raise DataError(f"{file}: no such file; expected UTF-8 lines of: {layout}")
    return file


def _topic_split(encoder: Encodes, file: Path) -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    """Topics [n] and unit vectors [n, D] of a split."""
    rows: Iterable[list[str]] = read_fields(existing(file, "number, topic, text"), 3, "number, topic, text")
    _, labels, texts = zip(*islice(rows, 1, None), strict=True)
    return np.array(labels), unit(encoder.encode(list(texts)))
