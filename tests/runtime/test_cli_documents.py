"""`xsent documents`."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused
from conftest import sentences

from xsent.documents.encoder import DocumentEncoder
from xsent.encoder import SentenceEncoder
from xsent.files.vectors import open_vectors
from xsent.mining.bitext import align_documents

pytest.importorskip("sentencex")

LANGUAGES = ("en", "fr")

Call = Callable[..., tuple[int, str, str]]


def documents(language: str) -> list[list[str]]:
    """28 documents of two sentences each, parallel."""
    texts = sentences(language)
    return [[texts[place], texts[place + 5]] for place in range(28)]


def write_lines(path: Path, texts: list[list[str]]) -> Path:
    path.write_text("".join(f"{' '.join(text)}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def call(run: Runner, mini_bundle: Path) -> Call:
    return lambda *arguments: run("documents", *arguments, "--model", mini_bundle)


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    return {code: write_lines(tmp_path / f"news.{code}", documents(code)) for code in LANGUAGES}


@pytest.fixture
def both(sources: dict[str, Path]) -> tuple[object, ...]:
    return ("align", *sources.values(), "--languages", "en,fr")


def test_align_prints_score_and_names(call: Call, both: tuple[object, ...], mini_bundle: Path, tmp_path: Path) -> None:
    encoder = DocumentEncoder(SentenceEncoder(mini_bundle)).fit({code: documents(code) for code in LANGUAGES})
    pairs = align_documents(*(encoder.encode(documents(code), code) for code in LANGUAGES))
    assert sum(pair.a == pair.b for pair in pairs) > 14
    lines = [f"{pair.score:.4f}\t{pair.a + 1}\t{pair.b + 1}\n" for pair in pairs]
    assert call(*both) == (0, "".join(lines), "")
    options = ["--margin", "absolute", "--weights", "--rank", 1, "--json"]
    code, out, err = call(*both, *options)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "") and {*map(tuple, rows)} == {("score", "a", "b")}
    assert len({row["a"] for row in rows}) == len(rows)
    file = tmp_path / "found.jsonl"
    assert call(*both, *options[:-1], "--output", file) == (0, "", f"{file}: {len(rows)} rows\n")
    assert file.read_text() == out


def test_align_folders_by_the_names_of_files(call: Call, tmp_path: Path) -> None:
    for code in LANGUAGES:
        (tmp_path / code).mkdir()
        for number, texts in enumerate(documents(code)):
            (tmp_path / code / f"story{number}.txt").write_text(" ".join(texts))
        (tmp_path / code / "empty.txt").write_text("\n")
        (tmp_path / code / "other.md").write_text("not a document")
        if sys.platform == "linux":  # a name in Latin-1
            (tmp_path / code / "story0.txt").rename(os.fsdecode(os.fsencode(tmp_path / code) + b"/caf\xe9.txt"))
    code, out, err = call("align", tmp_path / "en", tmp_path / "fr", "--languages", "en,fr")
    assert code == 0, err
    rows = [line.split("\t") for line in out.splitlines()]
    assert {name for row in rows for name in row[1:]} <= {"caf\\xe9", *(f"story{number}" for number in range(28))}
    assert len(rows) > 14


def test_embed_with_what_was_fitted(
    call: Call, run: Runner, sources: dict[str, Path], tmp_path: Path, mini_bundle: Path
) -> None:
    fit = ["fit", *(f"{code}={path}" for code, path in sources.items()), "--output"]
    code, out, _ = call(*fit, tmp_path / "space")
    about = json.loads((tmp_path / "space" / "documents.json").read_text())
    before, after = (round(100 * about["accuracies"][place], 1) for place in (0, -1))
    told = f"a classifier recognised the language of {before} % before, of {after} % after\n"
    assert (code, out) == (0, f"en, fr: removes {about['rank']} of 32 directions: {told}")
    report = json.loads(call(*fit, tmp_path / "again", "--rank", 3, "--json")[1])
    assert (report["languages"], report["rank"], report["accuracies"]) == (["en", "fr"], 3, [])
    output, fitted = tmp_path / "fr.npy", ("--fitted", tmp_path / "space")
    command = ("embed", sources["fr"], "--language", "fr", *fitted, "--output")
    assert call(*command, output) == (0, "", f"{output}: 28 vectors of 32 numbers\n")
    loaded, opened = DocumentEncoder.load(fitted[1], SentenceEncoder(mini_bundle)), open_vectors(output)
    assert np.array_equal(opened.rows, loaded.encode(documents("fr"), "fr"))
    assert (opened.note.fingerprint, opened.note.normalized) == (loaded.fingerprint, True)
    assert_refused(run("documents", *command, tmp_path / "x.npy"), "use the model it was fitted with")
    assert not (tmp_path / "x.npy").exists()


def test_embed_writes_names_and_warns_of_empty_documents(call: Call, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "news.en", [*documents("en"), []])
    warning = "Warning: 1 of 29 documents are empty; their vectors are zero\n"
    written = f"{tmp_path / 'en.jsonl'}: 29 vectors of 32 numbers\n"
    assert call("fit", f"en={source}", "--output", tmp_path / "space")[0] == 0
    again = ("embed", source, "--language", "en", "--fitted", tmp_path / "space", "--output", tmp_path / "en.jsonl")
    assert call(*again) == (0, "", warning + written)
    content = (tmp_path / "en.jsonl").read_text()
    rows = [json.loads(line) for line in content.splitlines()]
    assert [row["sentence"] for row in rows] == [str(number) for number in range(1, 30)]
    assert not any(rows[28]["vector"])
    assert_refused(call(*again), "en.jsonl: exists; --force replaces it")
    assert call(*again, "--force")[0] == 0 and (tmp_path / "en.jsonl").read_text() == content
