"""What people look for, on parallel text: passages by meaning and by words, and duplicates within one text."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from xsent.encoder import SentenceEncoder
from xsent.mining.paraphrases import THRESHOLD, mine_paraphrases
from xsent.search.index import SearchIndex
from xsent.search.write import Document, update_index
from xsent.similarity import cosine_similarity
from xsent_bench.experiments.documents import read_parallel
from xsent_bench.pages import Table

_WORD = re.compile(r"\w+")
_QUERIES = 300
_COSINE = 0.75  # what two sentences that stand alone need by the margin


def measure_finding(encoder: SentenceEncoder, folder: Path, languages: Sequence[str], *, command: str) -> str:
    """Look for lines of parallel text, see `read_parallel`, in all these ways; two tables in Markdown."""
    texts = read_parallel(folder, languages)
    first, *others = texts
    searched = Table(["query", "by meaning", "and by words"], search_rows(encoder, texts[first], texts[others[0]]))
    repeated = Table(["text", "score", "precision", "recall"], duplicate_rows(encoder, texts))
    return (
        f"`{command}`\n\nLines in {first} found first, of {len(texts[first]):,}, in per cent of {_QUERIES} queries."
        f"\n\n{searched.markdown()}\n\n"
        f"Pairs within one text that say the same, in per cent: margin from {THRESHOLD}, cosine from {_COSINE}."
        f"\n\n{repeated.markdown()}"
    )


def search_rows(encoder: SentenceEncoder, lines: Sequence[str], others: Sequence[str]) -> list[list[str]]:
    """Queries of each kind with the share whose line comes first, by meaning alone and with words."""
    frequency = Counter(word for line in lines for word in set(_WORD.findall(line.lower())))
    seeded = random.Random(1)
    chosen = seeded.sample(range(len(lines)), min(_QUERIES, len(lines)))
    kinds: dict[str, Callable[[int], str]] = {
        "its translation": lambda row: others[row],
        "its first four words": lambda row: " ".join(lines[row].split()[:4]),
        "three of its words": lambda row: " ".join(
            seeded.sample(words := _WORD.findall(lines[row]), min(3, len(words)))
        ),
        "its rarest word": lambda row: min(_WORD.findall(lines[row].lower()), key=lambda word: (frequency[word], word)),
    }
    with TemporaryDirectory(prefix="xsent-") as folder:
        update_index(Path(folder) / "index", [Document("lines", "1", list(enumerate(lines, 1)))], encoder)
        index = SearchIndex(Path(folder) / "index")
        rows = []
        for name, query_of in kinds.items():
            queries = [query_of(row) for row in chosen]
            shares = []
            for words in (False, True):
                found = index.search(encoder, queries, k=1, words=words)
                right = sum(hits[0].text == lines[row] for row, hits in zip(chosen, found, strict=True))
                shares.append(f"{100 * right / len(chosen):.1f}")
            rows.append([name, *shares])
    return rows


def duplicate_rows(encoder: SentenceEncoder, texts: dict[str, list[str]]) -> list[list[str]]:
    """Precision and recall of pairs, in two languages, in all, and where one line of ten has a translation."""
    first, second, *_ = texts
    lines = range(len(texts[first]))
    corpora = {
        f"{first} and {second}": [(row, texts[language][row]) for row in lines for language in (first, second)],
        f"all {len(texts)} languages": [(row, lines[row]) for lines in texts.values() for row in range(len(lines))],
        f"{first}, a tenth also in {second}": [
            (row, texts[language][row]) for row in lines for language in (first, second)[: 1 + (row % 10 == 0)]
        ],
    }
    rows = []
    for name, corpus in corpora.items():
        owners = np.array([row for row, _ in corpus])
        vectors = encoder.encode([text for _, text in corpus], on_long="split")
        true = sum(len(list(combinations(range(count), 2))) for count in Counter(owners.tolist()).values())
        pairs = mine_paraphrases(vectors)
        near = np.argwhere(np.triu(cosine_similarity(vectors, vectors) >= _COSINE, k=1))
        for score, found in (("margin", np.stack([pairs.src, pairs.trg], axis=1)), ("cosine", near)):
            right = int((owners[found[:, 0]] == owners[found[:, 1]]).sum())
            rows.append([name, score, f"{100 * right / max(len(found), 1):.1f}", f"{100 * right / true:.1f}"])
    return rows
