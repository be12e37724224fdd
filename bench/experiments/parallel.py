"""What is found in parallel text: translations of documents, passages by meaning and by words, and duplicates.

Results: docs/lab/documents.md and docs/lab/finding.md.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from xsent import Document, update_index
from xsent.cli.options import BundleOption, split_names
from xsent.cli.terminal import one_line_errors
from xsent.documents.encoder import DocumentEncoder, EncodesStreams
from xsent.encoder import OnLong, SentenceEncoder
from xsent.errors import DataError
from xsent.files.text import read_lines
from xsent.mining.bitext import align_documents, recall
from xsent.mining.margin import Margin
from xsent.mining.paraphrases import THRESHOLD, mine_paraphrases
from xsent.precision import Vectors
from xsent.search.index import SearchIndex
from xsent.similarity import cosine_similarity
from xsent_bench.report import Table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

FolderArgument = Annotated[
    Path, typer.Argument(help="Folder with XX.txt for each language; equal lines are translations.")
]
# Sentences a document, and lines from the start of one to the next. Any good encoder aligns documents that do not
# overlap; windows that start at every line differ from their neighbours in one sentence at each end.
WINDOWS = ((4, 4), (8, 1), (16, 1))
METRICS: Mapping[str, Margin] = {"cosine": "absolute", "margin": "ratio"}
QUERIES = 300
COSINE = 0.75  # least cosine of two sentences that say the same, without others to compare
WORD = re.compile(r"\w+")


@app.command()
@one_line_errors()
def documents(
    folder: FolderArgument,
    languages: Annotated[str, typer.Option(help="Codes; the first is aligned with each other one.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Align parallel documents: biased or debiased, mean or weighted, cosine or margin (LAWDR)."""
    typer.echo(measure_documents(SentenceEncoder(model), folder, split_names(languages)))


def read_parallel(folder: Path, languages: Sequence[str]) -> dict[str, list[str]]:
    """Lines by language of the files `XX.txt` in a folder, such as FLORES: equal lines are translations."""
    texts = {language: [line.strip() for line in read_lines(folder / f"{language}.txt")] for language in languages}
    if len(counts := {len(lines) for lines in texts.values()}) != 1:
        found = ", ".join(f"{language} {len(lines):,}" for language, lines in texts.items())
        raise DataError(f"{folder}: the files are not parallel, their lines are: {found}")
    if not counts.pop():
        raise DataError(f"{folder}: empty files; expected a sentence a line")
    return texts


class CachedEncoder:
    """An encoder of sentences that it has encoded once, however many documents contain them."""

    def __init__(self, encoder: EncodesStreams, sentences: Iterable[str]) -> None:
        self.dim = encoder.dim
        self.fingerprint = encoder.fingerprint
        different = [*dict.fromkeys(sentences)]
        self._vectors = dict(zip(different, encoder.encode_iter(different, on_long="split"), strict=True))

    def encode_iter(self, sentences: Iterable[str], /, *, on_long: OnLong) -> Iterator[Vectors]:
        """See `SentenceEncoder.encode_iter`."""
        return (self._vectors[sentence] for sentence in sentences)


def measure_documents(encoder: EncodesStreams, folder: Path, languages: Sequence[str]) -> str:
    """Align parallel documents with every row of LAWDR's tables 3 and 4; the report in Markdown."""
    if len(set(languages)) < 2:
        raise ValueError(f"languages = {','.join(languages)} must be at least two different ones")
    texts = read_parallel(folder, languages)
    cached = CachedEncoder(encoder, (line for lines in texts.values() for line in lines))
    first, *others = texts
    about = "Recall in per cent of one-to-one alignment (LAWDR, tables 3 and 4)."
    report = ["# Document alignment", about]
    for length, step in WINDOWS:
        rows, note = alignment_rows(cached, texts, length, step)
        table = Table(["row", *(f"{first}–{other}" for other in others), "mean"], rows)
        count = (len(texts[first]) - length) // step + 1
        title = f"## {count:,} documents of {length} consecutive sentences, one starting every {step}"
        report += [title, table.markdown(), note]
    return "\n\n".join(report)


def alignment_rows(
    encoder: EncodesStreams, texts: Mapping[str, Sequence[str]], length: int, step: int
) -> tuple[list[list[str]], str]:
    """Recall of every row of the paper's tables, the first language with each other one; the effect of debiasing."""
    fitting = {language: make_documents(lines, length, length) for language, lines in texts.items()}
    documents = {language: make_documents(lines, length, step) for language, lines in texts.items()}
    first, *others = texts
    gold = {(row, row) for row in range(len(documents[first]))}
    rows = list[list[str]]()
    note = ""
    for debias, weighted in product((False, True), repeat=2):
        fitted = DocumentEncoder(encoder, debias=debias, weighted=weighted).fit(fitting)
        vectors = {language: fitted.encode(documents[language], language) for language in texts}
        for metric, margin in METRICS.items():
            shares = [recall(align_documents(vectors[first], vectors[other], margin=margin), gold) for other in others]
            name = f"{'debiased' if debias else 'biased'}, {'weighted' if weighted else 'mean'}, {metric}"
            rows.append([name, *(f"{share:.1f}" for share in [*shares, np.mean(shares)])])
        if debias:
            choice = fitted.space.choice
            before, after = (100 * choice.accuracies[place] for place in (0, -1))
            note = (
                f"A linear classifier told {before:.1f} % of the languages before debiasing and {after:.1f} % after it "
                f"(chance {100 / len(texts):.1f} %); m = {choice.rank}."
            )
    return rows, note


def make_documents(lines: Sequence[str], length: int, step: int) -> list[Sequence[str]]:
    """Documents of `length` consecutive lines, one starting every `step` lines; the rest at the end is dropped."""
    return [lines[start : start + length] for start in range(0, len(lines) - length + 1, step)]


@app.command()
@one_line_errors()
def finding(
    folder: FolderArgument,
    languages: Annotated[str, typer.Option(help="Codes; the lines of the first are searched.")] = "en,fr,de,es,it",
    model: BundleOption = None,
) -> None:
    """Measure how many lines are found by meaning and by words, and how many duplicates within one text."""
    typer.echo(measure_finding(SentenceEncoder(model), folder, split_names(languages)))


def measure_finding(encoder: SentenceEncoder, folder: Path, languages: Sequence[str]) -> str:
    """Look for lines of parallel text by several kinds of queries, and for duplicates; two tables in Markdown."""
    texts = read_parallel(folder, languages)
    first, second, *_ = texts
    searched = Table(["query", "by meaning", "and by words"], search_rows(encoder, texts[first], texts[second]))
    repeated = Table(["text", "score", "precision", "recall"], duplicate_rows(encoder, texts))
    return "\n\n".join(
        [
            f"Lines in {first} found first, of {len(texts[first]):,}, in per cent of {QUERIES} queries.",
            searched.markdown(),
            f"Pairs within one text that say the same, in per cent: margin from {THRESHOLD}, cosine from {COSINE}.",
            repeated.markdown(),
        ]
    )


def search_rows(encoder: SentenceEncoder, lines: Sequence[str], others: Sequence[str]) -> list[list[str]]:
    """Queries of each kind with the share whose line comes first, by meaning alone and with words."""
    frequency = Counter(word for line in lines for word in set(WORD.findall(line.lower())))
    seeded = random.Random(1)
    chosen = seeded.sample(range(len(lines)), min(QUERIES, len(lines)))

    def three_words(row: int) -> str:
        words = WORD.findall(lines[row])
        return " ".join(seeded.sample(words, min(3, len(words))))

    kinds: dict[str, Callable[[int], str]] = {
        "its translation": lambda row: others[row],
        "its first four words": lambda row: " ".join(lines[row].split()[:4]),
        "three of its words": three_words,
        "its rarest word": lambda row: min(WORD.findall(lines[row].lower()), key=lambda word: (frequency[word], word)),
    }
    rows = []
    with TemporaryDirectory(prefix="xsent-") as folder:
        update_index(Path(folder) / "index", [Document("lines", "1", list(enumerate(lines, 1)))], encoder)
        index = SearchIndex(Path(folder) / "index")
        for name, query_of in kinds.items():
            queries = [query_of(row) for row in chosen]
            shares = []
            for words in (False, True):
                found = index.search(encoder, queries, k=1, words=words)
                right = sum(hits[0].text == lines[row] for row, hits in zip(chosen, found, strict=True))
                shares.append(f"{100 * right / len(chosen):.1f}")
            rows.append([name, *shares])
    return rows


def duplicate_rows(encoder: SentenceEncoder, texts: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Precision and recall of pairs in two languages, in all, and where one line of ten has a translation."""
    first, second, *_ = texts
    count = len(texts[first])
    corpora = {  # rows of the parallel text, and languages
        f"{first} and {second}": [(row, language) for row in range(count) for language in (first, second)],
        f"all {len(texts)} languages": [(row, language) for language in texts for row in range(count)],
        f"{first}, a tenth also in {second}": [
            (row, language) for row in range(count) for language in (first, second)[: 1 + (row % 10 == 0)]
        ],
    }
    rows = []
    for name, corpus in corpora.items():
        owners = np.array([row for row, _ in corpus])
        vectors = encoder.encode([texts[language][row] for row, language in corpus], on_long="split")
        true = sum(comb(copies, 2) for copies in Counter(owners.tolist()).values())
        pairs = mine_paraphrases(vectors)
        near = np.argwhere(np.triu(cosine_similarity(vectors, vectors) >= COSINE, k=1))
        for score, found in (("margin", np.stack([pairs.src, pairs.trg], axis=1)), ("cosine", near)):
            right = int((owners[found[:, 0]] == owners[found[:, 1]]).sum())
            rows.append([name, score, f"{100 * right / max(len(found), 1):.1f}", f"{100 * right / true:.1f}"])
    return rows


if __name__ == "__main__":
    app()
