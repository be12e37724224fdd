"""Document alignment with the rows of LAWDR's tables 3 and 4: biased or debiased, mean or weighted, cosine or margin.

The documents are made of parallel sentences: so many consecutive lines are one. With blocks that do not overlap, any
good sentence encoder aligns them all; windows that start at every line differ from their neighbours in one sentence
at each end, and tell the rows apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from xsent.documents.encoder import DocumentEncoder, EncodesStreams
from xsent.encoder import OnLong
from xsent.errors import DataError
from xsent.files.text import read_lines
from xsent.mining.bitext import align_documents, recall
from xsent.mining.margin import Margin
from xsent.precision import Vectors
from xsent_bench.pages import Table

SETS = ((4, 4), (8, 1), (16, 1))  # sentences a document, and lines from the start of one to the next
METRICS: Mapping[str, Margin] = {"cosine": "absolute", "margin": "ratio"}

Corpus = Mapping[str, Sequence[Sequence[str]]]


class Remembering:
    """An encoder that encodes every sentence of those there are once, however many documents have it."""

    def __init__(self, encoder: EncodesStreams, sentences: Iterable[str]) -> None:
        self.dim = encoder.dim
        self.fingerprint = encoder.fingerprint
        different = [*dict.fromkeys(sentences)]
        self._vectors = dict(zip(different, encoder.encode_iter(different, on_long="split"), strict=True))

    def encode_iter(self, sentences: Iterable[str], /, *, on_long: OnLong) -> Iterator[Vectors]:
        """See `SentenceEncoder.encode_iter`."""
        return (self._vectors[sentence] for sentence in sentences)


def read_parallel(folder: Path, languages: Sequence[str]) -> dict[str, list[str]]:
    """Lines by language of a folder with `XX.txt` each, such as FLORES: the same line says the same in all."""
    texts = {language: [line.strip() for line in read_lines(folder / f"{language}.txt")] for language in languages}
    if len(counts := {len(lines) for lines in texts.values()}) != 1:
        found = ", ".join(f"{language} {len(lines):,}" for language, lines in texts.items())
        raise DataError(f"{folder}: the files are not parallel, their lines are: {found}")
    if not counts.pop():
        raise DataError(f"{folder}: empty files; expected a sentence a line")
    return texts


def make_documents(texts: Mapping[str, Sequence[str]], length: int, step: int) -> Corpus:
    """Documents of `length` consecutive lines each, one starting every `step` lines; what is left over is dropped."""
    return {
        language: [lines[start : start + length] for start in range(0, len(lines) - length + 1, step)]
        for language, lines in texts.items()
    }


def ablate(
    encoder: EncodesStreams, texts: Mapping[str, Sequence[str]], length: int, step: int
) -> tuple[list[list[str]], str]:
    """Recall of every row of the paper's tables, the first language with each other one; what debiasing removed."""
    fitting, documents = make_documents(texts, length, length), make_documents(texts, length, step)
    first, *others = texts
    gold = {(row, row) for row in range(len(documents[first]))}
    rows, told = [], ""
    for debias, weighted in product((False, True), repeat=2):
        fitted = DocumentEncoder(encoder, debias=debias, weighted=weighted).fit(fitting)
        vectors = {language: fitted.encode(documents[language], language) for language in texts}
        names = ["debiased" if debias else "biased", "weighted" if weighted else "mean"]
        for metric, margin in METRICS.items():
            shares = [recall(align_documents(vectors[first], vectors[other], margin=margin), gold) for other in others]
            rows.append([", ".join([*names, metric]), *(f"{share:.1f}" for share in [*shares, np.mean(shares)])])
        if debias:
            choice = fitted.space.choice
            before, after = (100 * choice.accuracies[place] for place in (0, -1))
            told = (
                f"A linear classifier told {before:.1f} % of the languages before debiasing and {after:.1f} % after it "
                f"(chance {100 / len(texts):.1f} %); m = {choice.rank}."
            )
    return rows, told


def measure_documents(encoder: EncodesStreams, folder: Path, languages: Sequence[str], *, command: str) -> str:
    """Align parallel documents, see `read_parallel`, with every row of the paper's tables, in Markdown."""
    if len(set(languages)) < 2:
        raise ValueError(f"languages = {','.join(languages)} must be at least two different ones")
    texts = read_parallel(folder, languages)
    remembering = Remembering(encoder, (line for lines in texts.values() for line in lines))
    first, *others = texts
    about = "Recall in per cent of one-to-one alignment (LAWDR, tables 3 and 4)."
    parts = ["# Document alignment", f"`{command}`", about]
    for length, step in SETS:
        rows, told = ablate(remembering, texts, length, step)
        count = (len(texts[first]) - length) // step + 1
        title = f"{count:,} documents of {length} consecutive sentences, one starting every {step}"
        table = Table(["row", *(f"{first}–{other}" for other in others), "mean"], rows).markdown()
        parts.append(f"## {title}\n\n{table}\n\n{told}")
    return "\n\n".join(parts)
