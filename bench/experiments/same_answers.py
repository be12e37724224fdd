"""Asks the 200 questions of bench/notes through `SearchIndex.search`, `xsent serve` and `xsent web`, and compares.

    PYTHONPATH=bench python -m experiments.same_answers

The page has the passages as lines, each with its context. Needs chromium (apt-get install chromium) and playwright
(pip install playwright).
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import typer
from playwright.sync_api import expect, sync_playwright

from experiments.notes import FIRST, Question, read_questions
from xsent import Hit, SearchIndex, SentenceEncoder
from xsent.cli.terminal import format_table
from xsent_apps.web import Site, open_server

NOTES = Path(__file__).parents[1] / "notes"
MOST = FIRST[-1]
XSENT = [sys.executable, "-c", "from xsent.cli.terminal import main; main()"]
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


def ask_server(index: Path, queries: Sequence[str]) -> list[list[Hit]]:
    """Hits of `xsent serve`."""
    command = [*XSENT, "serve", "--no-access-log", "--port", "0", "--index", str(index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http")).rstrip(";")
        form = json.dumps({"query": queries, "k": MOST}).encode()
        with urllib.request.urlopen(f"{address}/search", form) as answer:
            data = json.load(answer)["data"]
        server.terminate()
    return [[Hit(**hit) for hit in found["hits"]] for found in data]


def ask_page(hits: Sequence[Hit], queries: Sequence[str]) -> list[list[Hit]]:
    """Hits of the page, in which the passages are lines."""
    line_of = {hit: " ".join(f"{hit.context}: {hit.text}".removeprefix(": ").split()) for hit in hits}
    passages: dict[str, list[Hit]] = {}
    for hit, line in line_of.items():
        passages.setdefault(line, []).append(hit)
    with open_server(Site.of(None), "127.0.0.1", 0) as server, sync_playwright() as started:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        page.fill("#paste", "\n\n".join(line_of.values()))
        page.click("#add")
        expect(page.locator("#encoding")).to_contain_text(f"{len(line_of)} passages.", timeout=300_000)
        answers = [[text for text, _ in page.evaluate(ASK, query)] for query in queries]
        browser.close()
        server.shutdown()
    return [[hit for line in dict.fromkeys(lines[:MOST]) for hit in passages[line]][:MOST] for lines in answers]


def row(
    name: str, questions: Sequence[Question], found: Sequence[Sequence[Hit]], other: Sequence[Sequence[Hit]]
) -> dict[str, object]:
    """Per cent answered among the first few, and how many first hits are those of another way."""
    places = [
        next((place for place, hit in enumerate(hits, 1) if question.answered_by(hit)), MOST + 1)
        for question, hits in zip(questions, found, strict=True)
    ]
    shares = {f"among {n}": f"{sum(place <= n for place in places) / len(places):.1%}"[:-1] for n in FIRST}
    same = sum(key(a[0]) == key(b[0]) for a, b in zip(found, other, strict=True))
    return {"asked": name, **shares, "same first hit as search": same}


def key(hit: Hit) -> tuple[str, int, str]:
    """What tells a passage from others."""
    return hit.source, hit.line, hit.text


def main() -> None:
    """Print a table with a row for each way to ask."""
    questions = read_questions(NOTES / "questions.tsv")
    queries = [question.text for question in questions]
    encoder = SentenceEncoder()
    with tempfile.TemporaryDirectory() as place:
        index = Path(place, "index")
        subprocess.run([*XSENT, "notes", str(NOTES / "folder"), "--index", str(index)], check=True, capture_output=True)
        opened = SearchIndex(index)
        [every] = opened.search(encoder, ["notes"], len(opened))
        search = opened.search(encoder, queries, MOST)
        served = ask_server(index, queries)
    paged = ask_page(sorted(every, key=key), queries)
    ways = {"search": search, "server": served, "page": paged}
    typer.echo(format_table([row(name, questions, found, search) for name, found in ways.items()]))


if __name__ == "__main__":
    main()
