"""Experiments that are run by hand, at a small scale: each prints its table, or says in one line what is wrong."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from commands import assert_refused, file_names, write_files, write_lines
from conftest import NAMES
from toy_documents import ToyEncoder, toy_documents
from typer.testing import CliRunner

import training
from experiments import endurance, noise, notes, parallel, serving, stores, zero_shot
from experiments.noise import KINDS
from training import TrainingSpec, train_and_time
from xsent import SentenceEncoder
from xsent.errors import DataError

LINES = {code: [line for document in toy_documents(code, 20) for line in document] for code in ("en", "fr")}


def invoke(experiment: Callable[..., None], *arguments: object) -> tuple[int, str, str]:
    app = typer.Typer()
    app.command()(experiment)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


def rows(experiment: Callable[..., None], *arguments: object) -> list[list[str]]:
    """The cells of the table that an experiment prints, without its heading."""
    code, out, err = invoke(experiment, *arguments)
    assert code == 0, err
    return cells(out)[2:] if out.startswith("|") else [line.split() for line in out.splitlines()[1:]]


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


@pytest.mark.network
@pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning", "ignore::xsent.LongSentenceWarning")
def test_what_is_measured_of_a_bundle(mini_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUESTS", 5)
    for module in (endurance, serving):
        monkeypatch.setattr(module, "sentences", lambda number: ["Anna sees Boris."] * number)
    assert len(rows(endurance.stream, mini_bundle, "--number", 200)) == 10
    assert len(rows(serving.serving, mini_bundle, "--requests", 20, "--clients", 2)) == 3
    if Path("/proc/self/smaps").exists():  # the system says what is shared
        assert len(rows(endurance.sharing, mini_bundle, "--processes", 2)) == 2
    for experiment in (endurance.stream, endurance.sharing, serving.serving):
        assert_refused(invoke(experiment, "no/such/bundle"), "no such folder")


def test_stores_are_measured_without_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["lancedb", "lancedb.index"]:  # another test may have imported them
        monkeypatch.setitem(sys.modules, name, None)
    found = rows(stores.stores, "--rows", 1000, "--stores", "memory,disk")
    assert [row[2:4] for row in found] == [["memory", "1"], ["disk", "1"]]
    for names, message in [("disk,database", "pip install 'xsent[database]'"), ("drum", "must be one of memory, disk")]:
        assert_refused(invoke(stores.stores, "--stores", names), message)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for code, lines in LINES.items():
        write_lines(tmp_path / f"{code}.txt", (f"{line} " for line in dict.fromkeys(lines)))
    return tmp_path


def test_documents_are_aligned_by_every_row_of_the_paper(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WINDOWS", [(3, 3), (4, 1)])
    text = parallel.measure_documents(ToyEncoder(), folder, ["en", "fr"])
    found = cells(text)
    assert found[0] == ["row", "en–fr", "mean"] and len(found) == 2 * 10 and text.count("m = ") == 2
    count = len(set(LINES["en"]))
    assert f"## {count // 3:,} documents of 3 consecutive sentences, one starting every 3" in text
    assert f"## {count - 3:,} documents of 4 consecutive sentences, one starting every 1" in text
    (folder / "de.txt").write_text("one line\n")
    for languages, message in {"en de": r"not parallel.* de 1", "en xx": r"xx\.txt", "en en": "two different"}.items():
        with pytest.raises((DataError, ValueError), match=message):
            parallel.measure_documents(ToyEncoder(), folder, languages.split())


def test_lines_and_duplicates_are_looked_for(mini_bundle: Path, folder: Path) -> None:
    encoder = SentenceEncoder(mini_bundle, threads=1)
    found = cells(parallel.measure_finding(encoder, folder, ["en", "fr"]))
    shares = {row[0]: tuple(map(float, row[1:])) for row in found[2:6]}
    assert all(words >= meaning for name, (meaning, words) in shares.items() if name != "its translation")
    texts = ("en and fr", "all 2 languages", "en, a tenth also in fr")
    assert [row[:2] for row in found[8:]] == [[name, score] for name in texts for score in ("margin", "cosine")]


@pytest.mark.filterwarnings("ignore::xsent.UnknownTextWarning")
def test_noise_is_measured_as_it_is_and_cleaned(tmp_path: Path) -> None:
    write_lines(tmp_path / "en-de.tsv", ["The cat sleeps.\tDie Katze schläft.", "It rains.\tEs regnet."])
    found = {row[0]: row[1:] for row in rows(noise.noise, tmp_path, "--languages", "de")}
    assert found["none"] == ["100.0", "+0.0"] * 2 and len(found) == len(KINDS)
    assert found["ANSI colours"][2:] == ["100.0", "+0.0"]
    assert_refused(invoke(noise.noise, tmp_path, "--languages", "fr"), "cannot be read")


def test_questions_to_a_folder_are_counted(mini_bundle: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {"notes/Boris.md": "# Seen\n\nAnna sees\u00ad  Boris.\n", "notes/b.md": "Clara\n"})
    asked = ["kind\tlanguage\tquestion\tfile\tanswer", "plain\ten\tAnna sees Boris\tBoris.md\tAnna sees Boris"]
    questions = write_lines(tmp_path / "questions.tsv", [*asked, "other\tfr\tClara\tb.md\tnowhere"])
    call = [tmp_path / "notes", questions, "--model", mini_bundle, "--missed"]
    found = rows(notes.answers, *call)
    assert found[0] == ["all", "2", *["50.0"] * 9]
    assert [row[0] for row in found] == ["all", "plain", "other", "en", "fr", "other"]
    write_lines(questions, ["a", "b"])
    assert_refused(invoke(notes.answers, *call), "questions.tsv:2: 1 columns")


def test_labels_by_description_and_by_training(
    mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = dict(zip(zero_shot.DESCRIPTIONS, NAMES[:7], strict=True))
    examples = [f"1\t{label}\t{word} sees {other}." for label, word in words.items() for other in "abcd"]
    table = "".join(f"{line}\n" for line in ["index_id\tcategory\ttext", *examples])
    write_files(tmp_path, {f"{code}/{name}.tsv": table for code in ("en", "de") for name in ("train", "test")})
    monkeypatch.setattr(zero_shot, "NUMBERS", (0, 4))
    found = rows(zero_shot.zero_shot, tmp_path, "--model", mini_bundle)
    assert [row[:2] for row in found] == [["0", "description"], ["4", "description"], ["4", "training"]]
    assert all(0 <= float(share) <= 100 for row in found for share in row[2:]) and found[2][2] == "100.0"


def test_every_depth_and_batch_size_of_a_training_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained in this process, which is quicker than a process each."""
    small = TrainingSpec(str(tmp_path), steps=6, pairs=3000, words=200, vocabulary=500, dim=16)

    def answers(arguments: Sequence[str], **_: object) -> list[dict[str, float | str]]:
        return [train_and_time(replace(small, num_layers=json.loads(arguments[2])["num_layers"], batch_size=8))]

    monkeypatch.setattr(training, "answers", answers)
    code, out, err = invoke(training.training, "--out", tmp_path, "--layers", "0,1", "--batches", "8")
    assert code == 0, err
    found = cells(out)[-2:]
    assert [row[:2] for row in found] == [["0", "8"], ["1", "8"]]
    for row in found:
        rate, seconds, memory = (float(row[column].replace(",", "")) for column in (3, 4, 8))
        assert rate == pytest.approx(8 / seconds, rel=0.1) and memory > 50  # MiB
    assert {"corpus.tsv", "prepared"} <= file_names(tmp_path)
