"""How the page reads Markdown, run in Node, beside `xsent notes`."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest
from page_modules import page_modules
from structures import MARKDOWN

from xsent_apps.notes.passages import sentences_of
from xsent_apps.notes.read import read_passages

CLIENT = Path(__file__).parent / "page_markdown.mjs"
SENTENCES = "Am 3. Mai kam Dr. Weiß, z. B. mit dem Zug. On 3 May Mr. Smith left. Das ist gut! はい。"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("node") is None, reason="needs node")]


def test_the_page_reads_markdown_as_notes_do(tmp_path: Path) -> None:
    asked = json.dumps({"notes": [note for note, _ in MARKDOWN.values()], "text": SENTENCES})
    done = subprocess.run(
        ["node", str(CLIENT), str(page_modules())], input=asked, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["sentences"] == sentences_of(SENTENCES)
    for (name, (note, _)), here in zip(MARKDOWN.items(), answer["passages"], strict=True):
        file = tmp_path / "a.md"
        file.write_text(note, encoding="utf-8")
        there = [(passage.context, passage.text) for passage in read_passages(file)]
        assert _bare((one["context"], one["text"]) for one in here) == _bare(there), name


def _bare(passages: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The contexts in their order, each with the letters of its passages: the page shows no marks of Markdown."""
    plain = [(_shown(context), _shown(text)) for context, text in passages]
    return [(context, "".join(text for _, text in group)) for context, group in groupby(plain, key=lambda one: one[0])]


def _shown(text: str) -> str:
    return re.sub(r"\s|\*\*|__|`|!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
