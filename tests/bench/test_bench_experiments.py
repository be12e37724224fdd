"""Experiments that are run by hand, at a small scale: each prints its table, or says in one line what is wrong."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import typer
from commands import is_one_line, write_lines
from conftest import NAMES
from toy_documents import ToyEncoder, toy_documents
from typer.testing import CliRunner, Result

from experiments import endurance, noise, notes, parallel, serving, stores, zero_shot
from experiments.noise import KINDS
from xsent import SentenceEncoder
from xsent.errors import DataError

LINES = {code: [line for document in toy_documents(code, 20) for line in document] for code in ("en", "fr")}


def invoke(experiment: Callable[..., None], *arguments: object) -> Result:
    """Run an experiment as its script does."""
    app = typer.Typer()
    app.command()(experiment)
    return CliRunner().invoke(app, list(map(str, arguments)))


def cells(text: str) -> list[list[str]]:
    """The cells of the tables in a text."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


@pytest.mark.network
@pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning", "ignore::xsent.LongSentenceWarning")
@pytest.mark.parametrize(
    ("experiment", "arguments", "heading", "rows"),
    [
        (endurance.stream, ["--number", "200"], "after | open files | sentences/s | cpu, ms | held, MiB", 10),
        (serving.serving, ["--requests", "20", "--clients", "2"], "how | sentences/s | p50, ms | p95, ms | p99, ms", 3),
        (endurance.sharing, ["--processes", "2"], "backend | processes | private, MiB | shared, MiB | table, MiB", 2),
    ],
)
def test_an_experiment_prints_its_table(
    mini_bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    experiment: Callable[..., None],
    arguments: Sequence[str],
    heading: str,
    rows: int,
) -> None:
    if experiment is endurance.sharing and not Path("/proc/self/smaps").exists():
        pytest.skip("the system does not say what is shared")
    monkeypatch.setattr(serving, "REQUESTS", 5)
    for module in (endurance, serving):
        monkeypatch.setattr(module, "sentences", lambda number: ["Anna sees Boris."] * number)
    result = invoke(experiment, mini_bundle, *arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"| {heading} |") and len(cells(result.stdout)) == 2 + rows
    missing = invoke(experiment, "no/such/bundle")
    assert missing.exit_code == 1 and is_one_line(missing.stderr)


def test_stores_are_measured_without_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["lancedb", "lancedb.index"]:  # another test may have imported them
        monkeypatch.setitem(sys.modules, name, None)
    result = invoke(stores.stores, "--rows", 1000, "--stores", "memory,disk")
    assert [line.split()[2:4] for line in result.stdout.splitlines()] == [
        *(["store", "MiB"], ["memory", "1"], ["disk", "1"])
    ]
    for names, message in [("disk,database", "pip install 'xsent[database]'"), ("drum", "must be one of memory, disk")]:
        refused = invoke(stores.stores, "--stores", names)
        assert refused.exit_code == 1 and is_one_line(refused.stderr) and message in refused.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for code, lines in LINES.items():
        write_lines(tmp_path / f"{code}.txt", (f"{line} " for line in dict.fromkeys(lines)))
    return tmp_path


def test_documents_are_aligned_by_every_row_of_the_paper(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parallel.make_documents("abcdefg", 3, 3) == ["abc", "def"]
    monkeypatch.setattr(parallel, "WINDOWS", [(3, 3), (4, 1)])
    text = parallel.measure_documents(ToyEncoder(), folder, ["en", "fr"])
    assert text.startswith("# Document alignment\n\n") and text.count("m = ") == 2
    found = cells(text)
    assert found[0] == ["row", "en–fr", "mean"] and len(found) == 2 * 10
    assert all(row[1] == row[2] for row in found if row[0].startswith(("biased, ", "debiased, ")))
    count = len(set(LINES["en"]))
    assert f"## {count // 3:,} documents of 3 consecutive sentences, one starting every 3" in text
    assert f"## {count - 3:,} documents of 4 consecutive sentences, one starting every 1" in text


def test_files_that_are_not_parallel(folder: Path) -> None:
    (folder / "de.txt").write_text("one line\n")
    for languages, message in {"en de": r"not parallel.* de 1", "en xx": r"xx\.txt", "en en": "two different"}.items():
        with pytest.raises((DataError, ValueError), match=message):
            parallel.measure_documents(ToyEncoder(), folder, languages.split())


def test_lines_and_duplicates_are_looked_for(mini_bundle: Path, folder: Path) -> None:
    encoder = SentenceEncoder(mini_bundle, threads=1)
    found = cells(parallel.measure_finding(encoder, folder, ["en", "fr"]))
    shares = {row[0]: tuple(map(float, row[1:])) for row in found[2:6]}
    assert list(shares) == ["its translation", "its first four words", "three of its words", "its rarest word"]
    assert all(words >= meaning for name, (meaning, words) in shares.items() if name != "its translation")
    texts = ("en and fr", "all 2 languages", "en, a tenth also in fr")
    assert [row[:2] for row in found[8:]] == [[name, score] for name in texts for score in ("margin", "cosine")]
    assert all(0 <= float(share) <= 100 for row in found[8:] for share in row[2:])


@pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning")
def test_noise_is_measured_as_it_is_and_cleaned(tmp_path: Path) -> None:
    write_lines(tmp_path / "en-de.tsv", ["The cat sleeps.\tDie Katze schläft.", "It rains.\tEs regnet."])
    result = invoke(noise.noise, tmp_path, "--languages", "de")
    assert result.exit_code == 0, result.output
    found = {row[0]: row[1:] for row in cells(result.stdout)}
    assert found["none"] == ["100.0", "+0.0", "100.0", "+0.0"] and len(found) == 2 + len(KINDS)
    assert found["ANSI colours"][2:] == ["100.0", "+0.0"]
    missing = invoke(noise.noise, tmp_path, "--languages", "fr")
    assert missing.exit_code == 1 and is_one_line(missing.stderr)


def test_questions_to_a_folder_are_counted(mini_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "Boris.md").write_text("# Seen\n\nAnna sees\u00ad  Boris.\n")
    (tmp_path / "notes" / "b.md").write_text("Clara\n")
    asked = ["kind\tlanguage\tquestion\tfile\tanswer", "plain\ten\tAnna sees Boris\tBoris.md\tAnna sees Boris"]
    questions = write_lines(tmp_path / "questions.tsv", [*asked, "other\tfr\tClara\tb.md\tnowhere"])
    call = [tmp_path / "notes", questions, "--model", mini_bundle, "--missed"]
    result = invoke(notes.answers, *call)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[1][:2] == ["all", "2"] and lines[1][2:] == ["50.0"] * 9
    assert [line[0] for line in lines[1:]] == ["all", "plain", "other", "en", "fr", "other"]
    write_lines(questions, ["a", "b"])
    result = invoke(notes.answers, *call)
    assert result.exit_code == 1 and is_one_line(result.stderr) and "questions.tsv:2: 1 columns" in result.stderr


def test_labels_by_description_and_by_training(
    mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = dict(zip(zero_shot.DESCRIPTIONS, NAMES[:7], strict=True))
    rows = [f"1\t{label}\t{word} sees {other}." for label, word in words.items() for other in ("a", "b", "c", "d")]
    for language in ("en", "de"):
        (tmp_path / language).mkdir()
        for name in ("train", "test"):
            write_lines(tmp_path / language / f"{name}.tsv", ["index_id\tcategory\ttext", *rows])
    monkeypatch.setattr(zero_shot, "NUMBERS", (0, 4))
    result = invoke(zero_shot.zero_shot, tmp_path, "--model", mini_bundle)
    assert result.exit_code == 0, result.output
    found = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [row[:2] for row in found] == [["0", "description"], ["4", "description"], ["4", "training"]]
    assert all(0 <= float(share) <= 100 for row in found for share in row[2:])
    assert found[2][2] == "100.0"
