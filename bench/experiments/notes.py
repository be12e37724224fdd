"""Questions to a folder of notes, and how often the answer is among the first that are found: docs/lab/notes.md.

`ways` asks them through `SearchIndex.search`, `xsent serve` and `xsent web`. The page has the passages as lines, each
with its context. It needs chromium (apt-get install chromium) and playwright (pip install playwright).
"""

import csv
import json
import shutil
import subprocess
import unicodedata
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from xsent import Hit, SearchIndex, SentenceEncoder
from xsent.cli.options import BundleOption
from xsent.cli.rows import row_output
from xsent.cli.terminal import format_table, one_line_errors
from xsent.errors import DataError
from xsent_bench.processes import XSENT, start_server

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

WAYS = ("meaning", "words", "both")
FIRST = (1, 3, 10)  # an answer counts if it is among so many
MOST = FIRST[-1]
# The results of a search, all of them: texts and scores.
ASK = """async (query) => {
    const input = document.getElementById("query");
    const asked = new Promise((done) => input.addEventListener("asked", done, { once: true }));
    input.value = query;
    input.dispatchEvent(new Event("input"));
    await asked;
    document.querySelector("#results .more")?.click();
    return Array.from(document.querySelectorAll("#results li"), (item) =>
        [item.querySelector("p").textContent, Number(item.querySelector(".number").textContent)]);
}"""

_LEAST = 1e-4  # a smaller share of words is rounding


class Question(NamedTuple):
    """A question and the passage that answers it."""

    kind: str  # what leads to the answer, such as a heading
    language: str
    text: str
    file: str  # below the folder
    answer: str  # a part of the passage

    def place(self, hits: Sequence[Hit]) -> int:
        """The place of the answer, from 1; 0 if it is not among those that count."""
        answer = _as_seen(self.answer)
        right = [hit.source == self.file and answer in _as_seen(hit.text) for hit in hits[:MOST]]
        return right.index(True) + 1 if any(right) else 0


FolderArgument = Annotated[Path, typer.Argument(help="Notes, such as bench/notes/folder.")]
QuestionsArgument = Annotated[Path, typer.Argument(help="Such as bench/notes/questions.tsv.")]


@app.command()
@one_line_errors()
def answers(
    folder: FolderArgument,
    questions: QuestionsArgument,
    model: BundleOption = None,
    missed: Annotated[bool, typer.Option("--missed", help="Print the questions whose first hit is another.")] = False,
) -> None:
    """Measure how often `xsent notes` has the answer among the first 1, 3 and 10, in per cent of the questions."""
    asked = read_questions(questions)
    encoder = SentenceEncoder(model)
    with indexed(folder, "--model", str(encoder.bundle.path)) as index, closing(SearchIndex(index)) as opened:
        places = [ranks(opened, question, encoder) for question in asked]
    typer.echo(format_table(found_table(asked, places)))
    if missed:
        columns = {"kind": str, "language": str, **dict.fromkeys(WAYS, int), "text": str, "file": str}
        with row_output(None, columns) as write:
            for question, found in zip(asked, places, strict=True):
                if found[-1] != 1:
                    write([question.kind, question.language, *found, question.text, question.file])


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


@contextmanager
def indexed(folder: Path, *options: str) -> Iterator[Path]:
    """The index that `xsent notes` makes of a folder."""
    with TemporaryDirectory() as place:
        index = Path(place, "index")
        done = subprocess.run([*XSENT, "notes", str(folder), "--index", str(index), *options], capture_output=True)
        if done.returncode:
            raise DataError(done.stderr.decode().strip().splitlines()[-1].removeprefix("Error: "))
        yield index


def ranks(index: SearchIndex, question: Question, encoder: SentenceEncoder) -> list[int]:
    """The place of the answer by each of the ways."""
    [near] = index.search(encoder, [question.text], len(index), words=False)
    [both] = index.search(encoder, [question.text], len(index), words=True)
    cosines = {(hit.source, hit.line, hit.text, hit.context): hit.score for hit in near}
    shares = [(hit.score - cosines[hit.source, hit.line, hit.text, hit.context], hit) for hit in both]
    shares.sort(key=lambda share: -share[0])
    sharing = [hit for share, hit in shares if share > _LEAST]
    return [question.place(hits) for hits in (near, sharing, both)]


def found_table(questions: Sequence[Question], places: Sequence[Sequence[int]]) -> list[dict[str, object]]:
    """Rows in all, by kind and by language: questions, and per cent answered among the first few, by each way."""
    names: list[Callable[[Question], str]] = [lambda _: "all", attrgetter("kind"), attrgetter("language")]
    groups: dict[str, list[Sequence[int]]] = {}
    for name_of in names:
        for question, found in zip(questions, places, strict=True):
            groups.setdefault(name_of(question), []).append(found)
    table = []
    for name, own in groups.items():
        row: dict[str, object] = {"questions about": name, "number": len(own)}
        for way, label in enumerate(WAYS):
            row |= _shares(label, [found[way] for found in own])
        table.append(row)
    return table


@app.command()
@one_line_errors()
def ways(folder: FolderArgument, questions: QuestionsArgument) -> None:
    """Ask the index, the server and the page, and count the first hits that are those of the index."""
    asked = read_questions(questions)
    queries = [question.text for question in asked]
    encoder = SentenceEncoder()
    with indexed(folder) as index, closing(SearchIndex(index)) as opened:
        [every] = opened.search(encoder, ["notes"], len(opened))
        search = opened.search(encoder, queries, MOST)
        found = {"search": search, "server": ask_server(index, queries)}
    found["page"] = ask_page(sorted(every, key=_passage), queries)
    rows = []
    for name, hits in found.items():
        shares = _shares("among", [question.place(own) for question, own in zip(asked, hits, strict=True)])
        same = sum(_passage(a[0]) == _passage(b[0]) for a, b in zip(hits, search, strict=True))
        rows.append({"asked": name, **shares, "same first hit as search": same})
    typer.echo(format_table(rows))


def ask_server(index: Path, queries: Sequence[str]) -> list[list[Hit]]:
    """Hits of `xsent serve`."""
    form = json.dumps({"query": queries, "k": MOST}).encode()
    with (
        start_server("--index", str(index)) as (address, _),
        urllib.request.urlopen(f"{address}/search", form) as answer,
    ):
        return [[Hit(**hit) for hit in found["hits"]] for found in json.load(answer)["data"]]


def ask_page(hits: Sequence[Hit], queries: Sequence[str]) -> list[list[Hit]]:
    """Hits of the page, in which the passages are lines."""
    from playwright.sync_api import expect, sync_playwright

    from xsent_apps.web.server import open_site
    from xsent_apps.web.site import Site

    line_of = {hit: " ".join(f"{hit.context}: {hit.text}".removeprefix(": ").split()) for hit in hits}
    passages: dict[str, list[Hit]] = {}
    for hit, line in line_of.items():
        passages.setdefault(line, []).append(hit)
    with open_site(Site.of(None)) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        page.fill("#paste", "\n\n".join(line_of.values()))
        page.click("#add")
        expect(page.locator("#encoding")).to_contain_text(f"{len(line_of)} passages.", timeout=300_000)
        answers = [[text for text, _ in page.evaluate(ASK, query)] for query in queries]
        browser.close()
    return [[hit for line in dict.fromkeys(lines[:MOST]) for hit in passages[line]][:MOST] for lines in answers]


def _passage(hit: Hit) -> tuple[str, int, str]:
    """What tells a passage from others."""
    return hit.source, hit.line, hit.text


def _shares(name: str, places: Sequence[int]) -> dict[str, str]:
    """Per cent of the questions whose answer is among the first few."""
    return {f"{name} {n}": f"{sum(0 < place <= n for place in places) / len(places):.1%}"[:-1] for n in FIRST}


def _as_seen(text: str) -> str:
    """A text without format characters, in NFKC, with single spaces."""
    shown = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", shown).split())


if __name__ == "__main__":
    app()
