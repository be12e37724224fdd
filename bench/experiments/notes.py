"""How often a search in a folder of notes finds the passage that answers a question: docs/contributing/findings.md.

xsent notes bench/notes/folder --index notes.index
python bench/experiments/notes.py notes.index bench/notes/questions.tsv
"""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from xsent import Hit, SearchIndex, SentenceEncoder
from xsent.cli.options import BundleOption
from xsent.cli.terminal import format_table, one_line_errors
from xsent.errors import DataError
from xsent.files.text import read_fields

WAYS = {"meaning": False, "both": True}  # the values of `words` in a search
FIRST = (1, 3, 10)  # an answer counts if it is among so many hits


class Question(NamedTuple):
    """A question and the passage that answers it."""

    kind: str  # what leads to the answer, such as a heading
    language: str
    text: str
    file: str  # below the folder
    answer: str  # a part of the passage

    def rank(self, hits: Sequence[Hit]) -> int:
        """The rank of the answer, from 1; 0 if it is not among the hits."""
        answer = as_seen(self.answer)
        right = [hit.source == self.file and answer in as_seen(hit.text) for hit in hits]
        return right.index(True) + 1 if any(right) else 0


@one_line_errors()
def notes(
    index: Annotated[Path, typer.Argument(help="The index of a folder of notes.")],
    questions: Annotated[Path, typer.Argument(help="Such as bench/notes/questions.tsv.")],
    model: BundleOption = None,
) -> None:
    """Measure how often the answer is among the first 1, 3 and 10 hits, in per cent of the questions.

    Hits are found by meaning, and by both meaning and words.
    """
    rows = list(read_fields(questions, len(Question._fields), ", ".join(Question._fields)))
    asked = [Question(*row) for row in rows[1:]]
    if not asked:
        raise DataError(f"{questions}: no questions; expected a header and one question per line")
    encoder, texts = SentenceEncoder(model), [question.text for question in asked]
    with SearchIndex(index) as opened:
        hits = [opened.search(encoder, texts, FIRST[-1], words=words) for words in WAYS.values()]
    ranks = [[question.rank(own) for own in found] for question, *found in zip(asked, *hits, strict=True)]
    typer.echo(format_table(table(asked, ranks)))


def table(questions: Sequence[Question], ranks: Sequence[Sequence[int]]) -> list[dict[str, object]]:
    """Rows in all, by kind and by language: questions, and per cent answered among the first hits, by each way."""
    groups = defaultdict[str, list[Sequence[int]]](list)
    for group in (lambda _: "all", lambda question: question.kind, lambda question: question.language):
        for question, found in zip(questions, ranks, strict=True):
            groups[group(question)].append(found)
    rows = []
    for name, own in groups.items():
        row: dict[str, object] = {"questions": name, "number": len(own)}
        for way, found in zip(WAYS, zip(*own, strict=True), strict=True):
            row |= {f"{way} {n}": 100 * sum(0 < rank <= n for rank in found) / len(found) for n in FIRST}
        rows.append(row)
    return rows


def as_seen(text: str) -> str:
    """A text without format characters, in NFKC, with single spaces."""
    shown = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", shown).split())


if __name__ == "__main__":
    typer.run(notes)
