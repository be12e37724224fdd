"""Questions to a folder of notes, and how often the answer is among the first that are found: docs/lab/notes.md."""

import csv
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from xsent import Hit, SearchIndex, SentenceEncoder
from xsent.cli.options import BundleOption
from xsent.cli.terminal import format_table, one_line_errors, print_row
from xsent.errors import DataError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

WAYS = ("meaning", "words", "both")
FIRST = (1, 3, 10)  # an answer counts if it is among so many

_NOTES = [sys.executable, "-P", "-c", "from xsent.cli.terminal import main; main()", "notes"]
_LEAST = 1e-4  # a smaller share of words is rounding


class Question(NamedTuple):
    """A question and the passage that answers it."""

    kind: str  # what leads to the answer, such as a heading
    language: str
    text: str
    file: str  # below the folder
    answer: str  # a part of the passage

    def answered_by(self, hit: Hit) -> bool:
        """Whether a hit is of the file and its text has the answer."""
        return hit.source == self.file and _as_seen(self.answer) in _as_seen(hit.text)


@app.command()
@one_line_errors()
def notes(
    folder: Annotated[Path, typer.Argument(help="Notes, such as bench/notes/folder.")],
    questions: Annotated[Path, typer.Argument(help="Such as bench/notes/questions.tsv.")],
    model: BundleOption = None,
    missed: Annotated[bool, typer.Option("--missed", help="Print the questions whose first hit is another.")] = False,
) -> None:
    """Measure how often `xsent notes` has the answer among the first 1, 3 and 10, in per cent of the questions."""
    asked = read_questions(questions)
    places = ask_folder(folder, asked, SentenceEncoder(model))
    typer.echo(format_table(found_table(asked, places)))
    if missed:
        for question, found in zip(asked, places, strict=True):
            if found[-1] != 1:
                print_row(question.kind, question.language, *map(str, found), question.text, question.file)


def read_questions(path: Path) -> list[Question]:
    """Questions of a table with a first line of names. Raises DataError if a row has other columns."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    for number, row in enumerate(rows, 2):
        if len(row) != len(Question._fields):
            raise DataError(f"{path}:{number}: {len(row)} columns, expected {', '.join(Question._fields)}")
    if not rows:
        raise DataError(f"{path}: no questions; expected a line of names and a question a line")
    return [Question(*row) for row in rows]


def ask_folder(folder: Path, questions: Sequence[Question], encoder: SentenceEncoder, *options: str) -> list[list[int]]:
    """Index a folder with `xsent notes`, and ask; see `ranks`."""
    with TemporaryDirectory() as place:
        index = Path(place, "index")
        model = ("--model", str(encoder.bundle.path))
        done = subprocess.run([*_NOTES, str(folder), "--index", str(index), *model, *options], capture_output=True)
        if done.returncode:
            raise DataError(done.stderr.decode().strip().splitlines()[-1].removeprefix("Error: "))
        with closing(SearchIndex(index)) as opened:
            return [ranks(opened, question, encoder) for question in questions]


def ranks(index: SearchIndex, question: Question, encoder: SentenceEncoder) -> list[int]:
    """The place of the answer, from 1, by each of the ways; 0 if it is not among those that count."""
    [near] = index.search(encoder, [question.text], len(index), words=False)
    [both] = index.search(encoder, [question.text], len(index), words=True)
    cosines = {(hit.source, hit.line, hit.text, hit.context): hit.score for hit in near}
    shares = [(hit.score - cosines[hit.source, hit.line, hit.text, hit.context], hit) for hit in both]
    shares.sort(key=lambda share: -share[0])
    sharing = [hit for share, hit in shares if share > _LEAST]
    return [
        next((place for place, hit in enumerate(hits[: FIRST[-1]], 1) if question.answered_by(hit)), 0)
        for hits in (near, sharing, both)
    ]


def found_table(questions: Sequence[Question], places: Sequence[Sequence[int]]) -> list[dict[str, object]]:
    """Rows in all, by kind and by language: questions, and per cent answered among the first few, by each way."""
    groups: list[tuple[str, Callable[[Question], bool]]] = [("all", lambda question: True)]
    for kind in _different(question.kind for question in questions):
        groups.append((kind, lambda question, kind=kind: question.kind == kind))  # type: ignore[misc]
    for language in _different(question.language for question in questions):
        groups.append((language, lambda question, language=language: question.language == language))  # type: ignore[misc]
    table = []
    for name, belongs in groups:
        own = [found for question, found in zip(questions, places, strict=True) if belongs(question)]
        row: dict[str, object] = {"questions about": name, "number": len(own)}
        for way, label in enumerate(WAYS):
            row |= {f"{label} {n}": f"{sum(0 < one[way] <= n for one in own) / len(own):.1%}"[:-1] for n in FIRST}
        table.append(row)
    return table


def _different(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _as_seen(text: str) -> str:
    """A text without format characters, in NFKC, with single spaces."""
    shown = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", shown).split())


if __name__ == "__main__":
    app()
