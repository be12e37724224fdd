"""How often a question finds the passage that answers it, in its own language and in others.

A query has one right passage, so nDCG@10 is 1 / log2(1 + rank) if its rank is at most 10, and otherwise 0.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation.result import Evaluation, Figures, choose_languages
from xsent.files.text import read_fields
from xsent.open_model import SupportsEncode
from xsent.progress import Progress
from xsent.search.index import SearchIndex
from xsent.search.store import IndexState
from xsent.search.writer import IndexWriter
from xsent.similarity import nearest
from xsent.words import word_keys

RANKED = 100  # passages per query
SHARED = 5  # fewest languages that have the answer to a query of the pool
K1, B = 1.5, 0.75  # of BM25

RETRIEVAL_NOTE = (
    "Per cent. ndcg, p1, recall: nDCG@10, P@1 and recall@100 by vectors among the passages of the query's language. "
    "bm25, both: nDCG@10 by BM25, and by vectors and words together, as in xsent search. to_en, from_en: nDCG@10 by "
    "vectors among English passages, and of English queries. own, own_bm25, own_both: queries whose answer is in at "
    f"least {SHARED} languages and whose first hit, among the passages of all, is in their own language; own_share: "
    "how many would be if the language did not matter."
)


@dataclass(frozen=True)
class Queries:
    """Queries of one language."""

    texts: list[str]
    answers: list[str]  # the id of each query's passage
    vectors: NDArray[np.float32]  # [q, D]

    def with_answers(self, ids: Collection[str]) -> "Queries":
        """The queries whose passage is one of these."""
        kept = [row for row, answer in enumerate(self.answers) if answer in ids]
        return Queries([self.texts[row] for row in kept], [self.answers[row] for row in kept], self.vectors[kept])


@dataclass(frozen=True)
class Passages:
    """Passages of one language, or of all."""

    ids: list[str]
    texts: list[str]
    vectors: NDArray[np.float32]  # [n, D]


Rank = Callable[[Queries, Passages, int], Sequence[Sequence[int]]]  # rows of the best passages, best first


def retrieval(encoder: SupportsEncode, folder: str | Path, languages: Sequence[str] | None = None) -> Evaluation:
    """Find passages for questions; the folder has two files per language.

    `XX.tsv` has queries, each with the id of its passage, and `XX.passages.tsv` has ids and passages. Passages in
    different languages with the same id are translations.
    """
    folder = Path(folder)
    found = (file.stem for file in folder.glob("*.tsv") if "." not in file.stem)
    languages = choose_languages(encoder, found, languages, folder, "XX.tsv and XX.passages.tsv, such as en.tsv")
    ways: dict[str, Rank] = {"vectors": rank_by_vectors, "bm25": rank_by_bm25}
    if isinstance(encoder, SentenceEncoder):
        ways["both"] = partial(rank_by_both, encoder)
    with Progress("languages", len(languages)) as progress:
        tests = {language: read_test(encoder, folder, language) for language in progress.count(languages)}
    scores = {language: _measure(ways, *test, tests.get("en")) for language, test in tests.items()}
    for language, figures in _measure_pool(ways, tests).items():
        scores[language].update(figures)
    names = dict.fromkeys(name for row in scores.values() for name in row if name != "queries")
    mean = {name: float(np.mean([row[name] for row in scores.values() if name in row])) for name in names}
    return Evaluation(scores, mean, RETRIEVAL_NOTE)


def rank_by_vectors(queries: Queries, passages: Passages, k: int) -> Sequence[Sequence[int]]:
    """The passages of highest cosine."""
    rows: list[list[int]] = nearest(queries.vectors, passages.vectors, k)[0].tolist()
    return rows


def rank_by_bm25(queries: Queries, passages: Passages, k: int) -> Sequence[Sequence[int]]:
    """The passages of highest score by BM25 (Robertson & Zaragoza 2009, equation 3.15), over the words of `word_keys`.

    Passages without a word of the query are skipped.
    """
    counts = [Counter(keys[0] for keys in word_keys(text)) for text in passages.texts]
    lengths = np.array([count.total() for count in counts])
    having = defaultdict[str, list[int]](list)
    for row, count in enumerate(counts):
        for key in count:
            having[key].append(row)
    share = K1 * (1 - B + B * lengths / lengths.mean())
    found = []
    for text in queries.texts:
        scores = np.zeros(len(counts))
        for keys in word_keys(text):
            rows = having.get(keys[0], [])
            times = np.array([counts[row][keys[0]] for row in rows], float)
            rarity = np.log1p((len(counts) - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += rarity * times * (K1 + 1) / (times + share[rows])
        best = np.argsort(-scores, kind="stable")[:k]
        found.append(best[scores[best] > 0].tolist())
    return found


def rank_by_both(encoder: SentenceEncoder, queries: Queries, passages: Passages, k: int) -> Sequence[Sequence[int]]:
    """The passages that `xsent search` finds in an index, by meaning and by words."""
    with TemporaryDirectory() as folder:
        state = IndexState(encoder.fingerprint, encoder.dim, lines=len(passages.ids))
        with closing(IndexWriter(Path(folder), state)) as writer:
            for line, (text, vector) in enumerate(zip(passages.texts, passages.vectors, strict=True), 1):
                writer.append(vector, "", line, text)
            writer.save(state)
        with SearchIndex(folder) as index:
            found = index.find(queries.texts, queries.vectors, k, words=encoder.words)
    return [[hit.line - 1 for hit in hits] for hits in found]


def read_test(encoder: SupportsEncode, folder: Path, language: str) -> tuple[Queries, Passages]:
    """The test of a language, encoded. Raises DataError if a file is damaged, or a query's passage is missing."""
    file, beside = folder / f"{language}.tsv", folder / f"{language}.passages.tsv"
    pairs = list(read_fields(file, 2, "query, id of its passage"))
    passages = {id: text for id, text in read_fields(beside, 2, "id, passage")}
    if not pairs:
        raise DataError(f"{file}: empty; expected one query per line")
    for number, (_, answer) in enumerate(pairs, 1):
        if answer not in passages:
            raise DataError(f"{file}, line {number}: passage {answer!r} is not in {beside.name}")
    queries, answers = (list(column) for column in zip(*pairs, strict=True))
    ids, texts = [*passages], [*passages.values()]
    # Some models encode queries differently from passages; the names are from sentence-transformers.
    asked = getattr(encoder, "encode_query", encoder.encode)(queries)
    found = getattr(encoder, "encode_document", encoder.encode)(texts)
    return Queries(queries, answers, asked), Passages(ids, texts, np.asarray(found, np.float32))


def _measure(
    ways: Mapping[str, Rank], queries: Queries, passages: Passages, english: tuple[Queries, Passages] | None
) -> dict[str, Any]:
    """The figures of a language, except those of the pool."""
    ranks = {way: _ranks(queries, passages, rank) for way, rank in ways.items()}
    figures = {
        "queries": len(queries.texts),
        "ndcg": _ndcg(ranks["vectors"]),
        "p1": _percent(ranks["vectors"] == 1),
        "recall": _percent(ranks["vectors"] <= RANKED),
    }
    figures.update({way: _ndcg(found) for way, found in ranks.items() if way != "vectors"})
    if english is not None and english[0] is not queries:
        for name, asking, asked in (("to_en", queries, english[1]), ("from_en", english[0], passages)):
            if (answerable := asking.with_answers({*asked.ids})).texts:
                figures[name] = _ndcg(_ranks(answerable, asked, ways["vectors"]))
    return figures


def _measure_pool(ways: Mapping[str, Rank], tests: Mapping[str, tuple[Queries, Passages]]) -> dict[str, Figures]:
    """Percentages of first hits in the query's language, among the passages of all languages."""
    every = [passages for _, passages in tests.values()]
    ids = [id for passages in every for id in passages.ids]
    texts = [text for passages in every for text in passages.texts]
    pool = Passages(ids, texts, np.concatenate([passages.vectors for passages in every]))
    languages = [language for language, (_, passages) in tests.items() for _ in passages.ids]
    having = Counter(pool.ids)
    shared = {id for id, count in having.items() if count >= SHARED}
    found: dict[str, Figures] = {}
    for language, (queries, _) in tests.items():
        if not (answerable := queries.with_answers(shared)).texts:
            continue
        figures = {"own_share": 100 * float(np.mean([1 / having[answer] for answer in answerable.answers]))}
        for way, rank in ways.items():
            own = [bool(rows) and languages[rows[0]] == language for rows in rank(answerable, pool, 1)]
            figures["own" if way == "vectors" else f"own_{way}"] = _percent(np.array(own))
        found[language] = figures
    return found


def _ranks(queries: Queries, passages: Passages, rank: Rank) -> NDArray[np.float64]:
    """The rank of each query's passage [q], from 1; infinite beyond the first `RANKED`."""
    found = rank(queries, passages, RANKED)
    ids = [[passages.ids[row] for row in rows] for rows in found]
    answers = zip(ids, queries.answers, strict=True)
    return np.array([one.index(answer) + 1 if answer in one else np.inf for one, answer in answers])


def _ndcg(ranks: NDArray[np.float64]) -> float:
    return 100 * float(np.mean(np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0)))


def _percent(right: NDArray[Any]) -> float:
    return 100 * float(np.mean(right))
