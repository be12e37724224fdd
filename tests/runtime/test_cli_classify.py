"""`xsent classify`."""

import json
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from commands import Runner, assert_refused, is_one_line, write_lines

from xsent import SentenceEncoder
from xsent.classification.classifier import LinearClassifier
from xsent.files.tables import read_rows

TEXTS = {
    "animals": ("The cat sleeps.", "A dog barks at the horse.", "The bird eats fish.", "Cows and sheep."),
    "money": ("Pay the bill.", "The bank raised its rates.", "Prices and taxes rise.", "He bought cheap shares."),
    "weather": ("It is raining.", "Snow and cold wind.", "The sun shines today.", "A storm with thunder."),
}
FRENCH = {"animals": "Le chien et le chat.", "money": "La banque et les impôts.", "weather": "Pluie, vent et neige."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """MLDoc's layout."""
    for name in ("en.train.1000", "en.test"):
        write_lines(tmp_path / name, [f"{label}\t{text}" for label, texts in TEXTS.items() for text in texts])
    write_lines(tmp_path / "fr.test", map("\t".join, FRENCH.items()))
    return tmp_path


@pytest.fixture
def head(run: Runner, folder: Path) -> Path:
    file = folder / "topics.npz"
    assert run("classify", "fit", folder / "en.train.1000", file)[0] == 0
    return file


def test_fit(run: Runner, folder: Path) -> None:
    train, fit = folder / "en.train.1000", ("classify", "fit")
    code, out, err = run(*fit, train, folder / "a.npz")
    assert (code, err, is_one_line(out)) == (0, "", True)
    assert out.startswith(f"{folder / 'a.npz'}: 3 labels from 12 examples; in cross-validation ")
    options = ["--unknown", 0.7, "--balanced", "--json"]
    facts = json.loads(run(*fit, train, folder / "b.npz", *options)[1])
    assert facts["labels"] == ["animals", "money", "weather"]
    head = LinearClassifier.load(folder / "b.npz", fingerprint=SentenceEncoder().fingerprint)
    assert (head.unknown, head.choice.l2) == (0.7, facts["l2"])
    file = write_lines(folder / "unequal.tsv", [f"animals\tThe cat sees {n} birds." for n in range(16)])
    file.write_text(file.read_text() + train.read_text())
    advice = "The labels have 4 to 20 examples; if rare labels matter as much, fit with --balanced.\n"
    assert run(*fit, file, folder / "c.npz")[2] == advice
    assert run(*fit, file, folder / "d.npz", "--balanced")[2] == ""
    rows = [line.replace("\t", ",") for line in train.read_text().splitlines()]
    nothing = [",Nobody knows.", "money, ", "\u200b,Nobody knows.", "animals,N/A", "weather,<br>"]
    rows[0] = rows[0].replace("animals", "Animals\xa0")
    table = write_lines(folder / "labelled.csv", ["topic,text", *rows, *nothing])
    code, out, err = run(*fit, table, folder / "e.npz", "--columns", "topic,text")
    skipped, merged = err.splitlines()
    assert (code, skipped) == (0, "Warning: 5 of 17 rows have no label or no text and are skipped")
    assert merged.startswith(
        "Warning: labels that differ only in case, white space or invisible characters are one label"
    )
    assert merged.endswith(r": 'animals' (from 'Animals\xa0', 'animals')")
    assert "3 labels from 12 examples" in out


def test_a_head_of_english_labels_french_or_unknown(run: Runner, folder: Path, head: Path) -> None:
    predict, file = ("classify", "predict", head), folder / "notes.txt"
    code, out, err = run(*predict, stdin="\n".join(FRENCH.values()))
    assert (code, err) == (0, "")
    labels, probabilities, texts = zip(*(line.split("\t") for line in out.splitlines()), strict=True)
    assert (labels, texts) == (tuple(FRENCH), tuple(FRENCH.values()))
    assert all(1 / 3 < float(probability) < 1 for probability in probabilities)
    file.write_text("The cat\n\n")
    known, empty = map(json.loads, run(*predict, file, "--json")[1].splitlines())
    assert (known["label"], known["text"]) == ("animals", "The cat")
    assert (empty["label"], empty["text"], empty["probability"]) == ("unknown", "", None)
    assert run(*predict, file)[1].splitlines()[1] == "unknown\t\t"
    rubbish = run(*predict, "--unknown", 0, stdin="...\nN/A\n<p>&nbsp;</p>\n\N{THUMBS UP SIGN}\N{THUMBS UP SIGN}\n")[1]
    assert [line.split("\t")[:2] for line in rubbish.splitlines()] == [["unknown", ""]] * 4
    assert [line[:8] for line in run(*predict, file, "--unknown", 1)[1].splitlines()] == ["unknown\t", "unknown\t"]
    texts = [f"{text} {number}" for number, text in enumerate(islice(cycle(FRENCH.values()), 300))]
    assert [line.split("\t")[2] for line in run(*predict, write_lines(file, texts))[1].splitlines()] == texts


def test_a_head_never_replaces_other_json(run: Runner, tmp_path: Path) -> None:
    rows = [json.dumps({"label": label, "text": text}) for label, texts in TEXTS.items() for text in texts]
    train = write_lines(tmp_path / "tickets.json", rows)
    fit = ("classify", "fit", train, tmp_path / "tickets.npz", "--columns", "label,text")
    message = "tickets.json: exists, but is not part of a head; name the head otherwise than tickets.npz"
    for options in ([], ["--force"]):
        assert_refused(run(*fit, *options), message)
    assert train.read_text().splitlines() == rows


def test_pairs(run: Runner, tmp_path: Path) -> None:
    train, head, file = (tmp_path / name for name in ("pairs.tsv", "same.npz", "new.tsv"))
    sentences = [text for texts in TEXTS.values() for text in texts]
    lines = [f"same\t{text}\t{text}\nother\t{text}\t{sentences[place - 1]}" for place, text in enumerate(sentences)]
    write_lines(train, ["kind\tone\ttwo", *lines])
    code, out, _ = run("classify", "fit", train, head, "--columns", "kind,one,two")
    assert code == 0 and f": 2 labels from {len(lines) * 2} pairs; in cross-validation " in out
    write_lines(file, ["The red house.\tThe red house.", "The red house.\tI play football."])
    first, second = (line.split("\t") for line in run("classify", "predict", head, file)[1].splitlines())
    assert (first[0], second[0], second[2:]) == ("same", "other", ["The red house.", "I play football."])
    out = run("classify", "predict", head, file, "--json")[1]
    assert json.loads(out.splitlines()[0])["text_2"] == "The red house."
    file.write_text("only one\n")
    assert_refused(run("classify", "predict", head, file), "new.tsv:1: 1 fields, expected 2")


def test_evaluate_folders_and_files(run: Runner, folder: Path) -> None:
    def rows(*options: object) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in run("classify", "evaluate", folder, "--json", *options)[1].splitlines()]
        assert {row["fingerprint"] for row in found} == {SentenceEncoder().fingerprint}
        assert all(row["labels"] == ["animals", "money", "weather"] for row in found)
        return found

    code, out, err = run("classify", "evaluate", folder)
    assert (code, err) == (0, "")
    heading, columns, accuracies, *_ = out.splitlines()
    assert heading == "Accuracy in %, mean and deviation of 5 seeds:"
    assert columns.split() == ["train", "en", "fr", "mean", "of", "others"]
    assert accuracies.split() == ["en", "100.0", "±0.0", "100.0", "±0.0", "100.0"]
    unknown = out[out.index("Unknown in %") :].splitlines()
    assert unknown[1].split()[:4] == ["train", "unknown", "en", "fr"]
    assert [line.split()[1] for line in unknown[2:4]] == ["lost", "found"]
    assert "label    animals  money  weather" in out and "seeds only draw the folds" in out
    _, row = rows("--train", "en", "--seeds", 2)
    assert (row["train"], row["test"], row["accuracy"], row["accuracies"]) == ("en", "fr", 100, [100, 100])
    assert 0 <= row["lost"] < row["found"] <= 100
    assert row["confusion"][0] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    files = (folder / "en.train.1000", folder / "fr.test")
    code, out, _ = run("classify", "evaluate", *files, "--seeds", 1, "--balanced")
    assert code == 0 and str(folder / "fr.test") in out
    (folder / "xx.test").write_text("animals\tqwerty\n")
    assert [row["test"] for row in rows("--seeds", 1)] == ["en", "fr"]  # the languages of the model
    (folder / "xx.test").unlink()
    for file in [*folder.glob("en.*"), *folder.glob("fr.*")]:
        file.rename(folder / file.name.replace("en.", "english.").replace("fr.", "french."))
    assert [row["test"] for row in rows("--seeds", 1)] == ["english", "french"]  # all, under names it does not know


def test_evaluate_reads_quotes_of_files_as_fit_does(run: Runner, tmp_path: Path) -> None:
    rows = [f'{label}\t"{text}\nThanks."' for label, texts in TEXTS.items() for text in texts]
    table = write_lines(tmp_path / "quoted.tsv", ["topic\ttext", *rows])
    code, out, err = run("classify", "evaluate", table, table, "--columns", "topic,text", "--seeds", 1)
    assert (code, err) == (0, "") and "100.0" in out


def test_a_head_of_another_model_and_one_that_is_there(run: Runner, folder: Path, head: Path) -> None:
    note, fingerprint = head.with_suffix(".json"), SentenceEncoder().fingerprint
    note.write_text(note.read_text().replace(fingerprint, "another"))
    message = f"{head} is for vectors of another, the model is {fingerprint}; fit the head again"
    assert_refused(run("classify", "predict", head, folder / "fr.test"), message)
    assert run("classify", "fit", folder / "en.test", head, "--force")[0] == 0


def test_labels_by_description(run: Runner, folder: Path) -> None:
    words = zip(FRENCH, ("pets, birds and cattle", "Geld, Banken", "rain, sun and wind"), strict=True)
    described = [f"--labels={label}: {text}" for label, text in words]
    table = write_lines(folder / "new.csv", ["id,text", *(f'{label[0]},"{text}"' for label, text in FRENCH.items())])
    command = ("classify", "zero-shot", table, "--column", "text", "--id", "id", *described)
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert [line.split("\t")[:2] for line in out.splitlines()] == [[label[0], label] for label in FRENCH]
    head = folder / "described.npz"
    options = ("--examples", folder / "en.train.1000", "--head", head, "-o", folder / "out.jsonl")
    code, out, err = run(*command, *options)
    written = f"{folder / 'out.jsonl'}: 3 rows\n{head}: 3 labels from descriptions and 12 examples\n"
    assert (code, out, err) == (0, "", written)
    again = run("classify", "predict", head, table, "--column", "text", "-o", folder / "again.jsonl")
    assert again[0] == 0
    answers = [list(read_rows(folder / name, ["label", "text"])) for name in ("out.jsonl", "again.jsonl")]
    assert answers[0] == answers[1] == [[label, text] for label, text in FRENCH.items()]
    assert run(*command, "--unknown", "1", "--head", head, "--force")[0] == 0
    strict = run("classify", "predict", head, table, "--column", "text")[1]
    assert {line.split("\t")[0] for line in strict.splitlines()} == {"unknown"}
    wide = [text.replace(": ", "：") for text in described]  # the colon of Japanese
    assert [line.split("\t")[1] for line in run(*command[:-3], *wide)[1].splitlines()] == [*FRENCH]
    assert_refused(run(*command[:-2]), "is only one label; repeat --labels for each label")
