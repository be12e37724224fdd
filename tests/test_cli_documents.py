"""`xsent documents`."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import is_one_line
from typer.testing import CliRunner, Result

from xsent.commands.documents import app
from xsent.documents.encoder import DocumentEncoder
from xsent.encoder import SentenceEncoder
from xsent.mining.bitext import align_documents
from xsent.vectors import open_vectors

NAMES = ("Anna", "Boris", "Clara", "David", "Elena", "Frank", "Greta", "Henry")
WORDS = {"en": ("and", "sees"), "fr": ("et", "voit")}

Run = Callable[..., Result]


def documents(language: str) -> list[list[str]]:
    """28 documents of two sentences each, parallel."""
    und, sees = WORDS[language]
    pairs = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]]
    return [[f"{a} {sees} {b}.", f"{b} {und} {a} {und} {a}."] for a, b in pairs]


def write_sentences(path: Path, texts: list[list[str]]) -> Path:
    path.write_text("\n\n".join("\n".join(sentences) for sentences in texts) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(mini_bundle: Path) -> Run:
    def call(*arguments: object, model: bool = True) -> Result:
        options = ["--model", str(mini_bundle)] if model else []
        return CliRunner().invoke(app, [*map(str, arguments), *options])

    return call


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    return {code: write_sentences(tmp_path / f"news.{code}", documents(code)) for code in WORDS}


def test_align_prints_score_and_names_and_the_recall(run: Run, sources: dict[str, Path], mini_bundle: Path) -> None:
    result = run("align", sources["en"], sources["fr"], "--languages", "en,fr", "--sentences", "--recall")
    assert result.exit_code == 0, result.output
    encoder = DocumentEncoder(SentenceEncoder(mini_bundle)).fit({code: documents(code) for code in WORDS})
    pairs = align_documents(*(encoder.encode(documents(code), code) for code in WORDS))
    assert result.stdout.splitlines() == [f"{pair.score:.6f}\t{pair.a + 1}\t{pair.b + 1}" for pair in pairs]
    right = sum(pair.a == pair.b for pair in pairs)
    assert result.stderr == f"recall {100 * right / 28:.1f} % of 28 true pairs\n"
    assert right > 14


def test_align_as_json(run: Run, sources: dict[str, Path]) -> None:
    options = ["--languages", "en,fr", "--sentences", "--margin", "absolute", "--no-weights", "--rank", 1, "--json"]
    result = run("align", sources["en"], sources["fr"], *options)
    report = json.loads(result.stdout)
    assert set(report) == {"pairs"}
    assert set(report["pairs"][0]) == {"score", "a", "b"}
    assert len({pair["a"] for pair in report["pairs"]}) == len(report["pairs"])
    with_recall = json.loads(run("align", sources["en"], sources["fr"], *options, "--recall").stdout)
    assert with_recall["pairs"] == report["pairs"]
    assert 0 <= with_recall["recall"] <= 100


def test_align_folders_by_the_names_of_files(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    for code in WORDS:
        (tmp_path / code).mkdir()
        for number, sentences in enumerate(documents(code)):
            (tmp_path / code / f"story{number}.txt").write_text(" ".join(sentences))
        (tmp_path / code / "empty.txt").write_text("\n")
        (tmp_path / code / "other.md").write_text("not a document")
    result = run("align", tmp_path / "en", tmp_path / "fr", "--languages", "en,fr")
    assert result.exit_code == 0, result.output
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert {name for row in rows for name in row[1:]} <= {f"story{number}" for number in range(28)}
    assert len(rows) > 14


def test_fit_says_what_it_found(run: Run, sources: dict[str, Path], tmp_path: Path) -> None:
    arguments = [f"{code}={path}" for code, path in sources.items()]
    result = run("fit", *arguments, "--sentences", "--output", tmp_path / "space")
    assert result.exit_code == 0, result.output
    about = json.loads((tmp_path / "space" / "documents.json").read_text())
    before, after = (round(100 * about["accuracies"][place], 1) for place in (0, -1))
    assert result.stdout == (
        f"en, fr: removes {about['rank']} of 32 directions: a classifier told the language of {before} % before, of "
        f"{after} % after\n"
    )
    again = run("fit", *arguments, "--sentences", "--output", tmp_path / "again", "--rank", 3, "--json")
    report = json.loads(again.stdout)
    assert (report["languages"], report["rank"], report["accuracies"]) == (["en", "fr"], 3, [])


def test_embed_with_what_was_fitted(run: Run, sources: dict[str, Path], tmp_path: Path, mini_bundle: Path) -> None:
    arguments = [f"{code}={path}" for code, path in sources.items()]
    run("fit", *arguments, "--sentences", "--output", tmp_path / "space")
    options = ["--language", "fr", "--sentences", "--fitted", tmp_path / "space"]
    result = run("embed", sources["fr"], *options, "--output", tmp_path / "fr.npy")
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    loaded = DocumentEncoder.load(tmp_path / "space", SentenceEncoder(mini_bundle))
    opened = open_vectors(tmp_path / "fr.npy")
    assert np.array_equal(opened.rows, loaded.encode(documents("fr"), "fr"))
    assert opened.note.fingerprint == loaded.fingerprint
    assert opened.note.normalized
    aligned = run("align", sources["en"], sources["fr"], "--languages", "en,fr", "--sentences", *options[3:])
    fresh = run("align", sources["en"], sources["fr"], "--languages", "en,fr", "--sentences")
    assert aligned.stdout == fresh.stdout


def test_embed_alone_writes_names_and_warns_of_empty_documents(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    lines = [" ".join(sentences) for sentences in documents("en")]
    source = tmp_path / "news.en"
    source.write_text("\n".join([*lines, ""]) + "\n")
    with pytest.warns(UserWarning, match="1 of 29 documents are empty; their vectors are zero"):
        result = run("embed", source, "--language", "en", "--output", tmp_path / "en.jsonl")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in (tmp_path / "en.jsonl").read_text().splitlines()]
    assert [row["sentence"] for row in rows] == [str(number) for number in range(1, 30)]
    assert not any(rows[28]["vector"])


def test_nothing_is_overwritten(run: Run, sources: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "space").mkdir()
    (tmp_path / "en.npy").write_text("mine")
    result = run("fit", f"en={sources['en']}", "--sentences", "--output", tmp_path / "space")
    assert (result.exit_code, is_one_line(result.stderr)) == (1, True)
    assert "exists" in result.stderr
    options = ["--language", "en", "--sentences", "--output", tmp_path / "en.npy"]
    result = run("embed", sources["en"], *options)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path / 'en.npy'}: exists; --force replaces it\n"
    assert (tmp_path / "en.npy").read_text() == "mine"
    assert run("embed", sources["en"], *options, "--force").exit_code == 0
    assert len(open_vectors(tmp_path / "en.npy")) == 28


def test_bad_input_is_one_line_and_leaves_nothing(run: Run, sources: dict[str, Path], tmp_path: Path) -> None:
    space, empty, nowhere = tmp_path / "space", tmp_path / "empty", tmp_path / "nowhere"
    empty.write_text("")
    (tmp_path / "folder").mkdir()
    short = write_sentences(tmp_path / "short", documents("en")[:3])
    en, fr = sources["en"], sources["fr"]
    before = set(tmp_path.iterdir())
    cases: list[tuple[list[object], str]] = [
        (["fit", f"en={nowhere}", "--output", space], f"{nowhere}: cannot be read"),
        (["fit", f"en={empty}", "--output", space], f"{empty}: no documents; expected a file with a document a line"),
        (["fit", str(en), "--output", space], "expected LANGUAGE=DOCUMENTS"),
        (["fit", f"en={en}", f"en={fr}", "--output", space], "each language once"),
        (["fit", f"en={short}", "--sentences", "--output", space], "language 'en': 6 sentences are too few"),
        (["embed", tmp_path / "folder", "--language", "en", "--output", tmp_path / "x.npy"], "no documents"),
        (
            ["embed", en, "--language", "en", "--fitted", nowhere, "--output", tmp_path / "x.npy"],
            "documents.json: miss",
        ),
        (
            ["embed", en, "--language", "en", "--fitted", space, "--rank", 1, "--output", tmp_path / "x.npy"],
            "--rank and",
        ),
        (["embed", en, "--language", "en", "--sentences", "--output", tmp_path / "x.csv"], "x.csv: "),
        (["align", en, fr, "--languages", "en"], "two different codes"),
        (["align", en, fr, "--languages", "en,en"], "two different codes"),
        (
            ["align", en, fr, "--languages", "en,fr", "--sentences", "-k", 29],
            "k = 29 neighbours, but one side has only",
        ),
        (["align", en, short, "--languages", "en,fr", "--sentences"], "language 'fr': too few documents"),
    ]
    for arguments, message in cases:
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert is_one_line(result.stderr), result.stderr
        assert message in result.stderr
        assert set(tmp_path.iterdir()) == before, arguments


def test_recall_needs_names_in_common(run: Run, sources: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "fr").mkdir()
    for number, sentences in enumerate(documents("fr")):
        (tmp_path / "fr" / f"story{number}.txt").write_text("\n".join(sentences))
    result = run("align", sources["en"], tmp_path / "fr", "--languages", "en,fr", "--sentences", "--recall")
    assert (result.exit_code, is_one_line(result.stderr)) == (1, True)
    assert "no document has the name of one on the other side" in result.stderr


def test_another_model_is_refused(run: Run, sources: dict[str, Path], tmp_path: Path) -> None:
    run("fit", *[f"{code}={path}" for code, path in sources.items()], "--sentences", "--output", tmp_path / "space")
    options = ["--language", "en", "--sentences", "--fitted", tmp_path / "space", "--output", tmp_path / "x.npy"]
    result = run("embed", sources["en"], *options, model=False)  # the built-in bundle
    assert (result.exit_code, is_one_line(result.stderr)) == (1, True)
    assert "use the model it was fitted with" in result.stderr
    assert not (tmp_path / "x.npy").exists()
