"""`xsent classify`."""

import json
from itertools import cycle, islice
from pathlib import Path

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
    code, out, err = run("classify", "fit", folder / "en.train.1000", folder / "a.npz")
    assert (code, err) == (0, "")
    assert out.startswith(f"{folder / 'a.npz'}: 3 labels from 12 examples; in cross-validation ")
    assert is_one_line(out)
    options = ["--unknown", 0.7, "--balanced", "--seed", 3, "--json"]
    code, out, _ = run("classify", "fit", folder / "en.train.1000", folder / "b.npz", *options)
    facts = json.loads(out)
    assert code == 0
    assert facts["labels"] == ["animals", "money", "weather"]
    head = LinearClassifier.load(folder / "b.npz", fingerprint=SentenceEncoder().fingerprint)
    assert (head.unknown, head.choice.l2) == (0.7, facts["l2"])
    rows = [f"animals\t{text} {number}" for number in range(5) for text in TEXTS["animals"]]
    rows += [f"{label}\t{text}" for label in ("money", "weather") for text in TEXTS[label]]
    file = write_lines(folder / "unequal.tsv", rows)
    advice = "The labels have 4 to 20 examples; if rare labels matter as much, fit with --balanced.\n"
    assert run("classify", "fit", file, folder / "a.npz")[2] == advice
    assert run("classify", "fit", file, folder / "b.npz", "--balanced")[2] == ""
    rows = [f"{label},{text}" for label, texts in TEXTS.items() for text in texts]
    table = write_lines(folder / "labelled.csv", ["topic,text", *rows, ",Nobody knows.", "money,"])
    code, out, err = run("classify", "fit", table, folder / "a.npz", "--columns", "topic,text")
    assert (code, err) == (0, "Warning: 2 of 14 rows have no label or no text; they are left out\n")
    assert "3 labels from 12 examples" in out


def test_a_head_of_english_labels_french_or_unknown(run: Runner, folder: Path, head: Path) -> None:
    code, out, err = run("classify", "predict", head, stdin="\n".join(FRENCH.values()))
    assert (code, err) == (0, "")
    labels, probabilities, texts = zip(*(line.split("\t") for line in out.splitlines()), strict=True)
    assert (labels, texts) == (tuple(FRENCH), tuple(FRENCH.values()))
    assert all(1 / 3 < float(probability) < 1 for probability in probabilities)
    file = folder / "notes.txt"
    file.write_text("The cat\n\n")
    known, empty = map(json.loads, run("classify", "predict", head, file, "--json")[1].splitlines())
    assert (known["label"], known["text"]) == ("animals", "The cat")
    assert (empty["label"], empty["text"], empty["probability"]) == ("unknown", "", None)
    assert run("classify", "predict", head, file)[1].splitlines()[1] == "unknown\t\t"
    _, out, _ = run("classify", "predict", head, file, "--unknown", 1)
    assert [line.split("\t")[0] for line in out.splitlines()] == ["unknown", "unknown"]
    texts = [f"{text} {number}" for number, text in enumerate(islice(cycle(FRENCH.values()), 300))]
    _, out, _ = run("classify", "predict", head, write_lines(file, texts))
    assert [line.split("\t")[2] for line in out.splitlines()] == texts


def test_pairs(run: Runner, tmp_path: Path) -> None:
    train = tmp_path / "pairs.tsv"
    sentences = [text for texts in TEXTS.values() for text in texts]
    lines = [f"same\t{text}\t{text}\nother\t{text}\t{sentences[place - 1]}\n" for place, text in enumerate(sentences)]
    train.write_text("kind\tone\ttwo\n" + "".join(lines))
    head = tmp_path / "same.npz"
    assert run("classify", "fit", train, head, "--columns", "kind,one,two")[0] == 0
    file = tmp_path / "new.tsv"
    file.write_text("The red house.\tThe red house.\nThe red house.\tI play football.\n")
    _, out, _ = run("classify", "predict", head, file)
    assert [line.split("\t")[0] for line in out.splitlines()] == ["same", "other"]
    assert out.splitlines()[1].split("\t")[2:] == ["The red house.", "I play football."]
    _, out, _ = run("classify", "predict", head, file, "--json")
    assert json.loads(out.splitlines()[0])["text_2"] == "The red house."
    file.write_text("only one\n")
    assert_refused(run("classify", "predict", head, file), "new.tsv:1: 1 fields, expected 2")


def test_evaluate_folders_and_files(run: Runner, folder: Path) -> None:
    code, out, err = run("classify", "evaluate", folder)
    assert (code, err) == (0, "")
    heading, columns, accuracies, *_ = out.splitlines()
    assert heading == "Accuracy in %, mean and deviation of 5 seeds:"
    assert columns.split() == ["train", "en", "fr", "mean", "of", "others"]
    assert accuracies.split() == ["en", "100.0", "±0.0", "100.0", "±0.0", "100.0"]
    assert "label    animals  money  weather" in out
    assert "seeds only draw the folds" in out

    def tested(*options: object) -> list[str]:
        rows = json.loads(run("classify", "evaluate", folder, "--seeds", 1, "--json", *options)[1])["rows"]
        return [row["test"] for row in rows]

    _, out, _ = run("classify", "evaluate", folder, "--train", "en", "--test", "fr", "--seeds", 2, "--json")
    report = json.loads(out)
    assert report["fingerprint"] == SentenceEncoder().fingerprint
    assert report["labels"] == ["animals", "money", "weather"]
    (row,) = report["rows"]
    assert (row["train"], row["test"], row["accuracy"], row["accuracies"]) == ("en", "fr", 100, [100, 100])
    assert row["confusion"][0] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    files = (folder / "en.train.1000", folder / "fr.test")
    code, out, _ = run("classify", "evaluate", *files, "--seeds", 1, "--balanced")
    assert code == 0 and str(folder / "fr.test") in out
    (folder / "xx.test").write_text("animals\tqwerty\n")
    assert tested() == ["en", "fr"]  # the languages of the model
    (folder / "xx.test").unlink()
    for old, new in (("en.train", "english.train"), ("en.test", "english.test"), ("fr.test", "french.test")):
        for file in folder.glob(f"{old}*"):
            file.rename(folder / file.name.replace(old, new))
    assert tested() == ["english", "french"]  # all under names that it does not know


def test_a_head_of_another_model_and_one_that_is_there(run: Runner, folder: Path, head: Path) -> None:
    assert_refused(run("classify", "fit", folder / "fr.test", head), f"{head}: exists; --force replaces it")
    note, fingerprint = head.with_suffix(".json"), SentenceEncoder().fingerprint
    note.write_text(note.read_text().replace(fingerprint, "another"))
    message = f"{head} is for vectors of another, the model is {fingerprint}: fit the head again"
    assert_refused(run("classify", "predict", head, folder / "fr.test"), message)
    assert run("classify", "fit", folder / "en.test", head, "--force")[0] == 0


def test_wrong_commands_leave_nothing(run: Runner, folder: Path, head: Path) -> None:
    for arguments, message in [
        (["fit", "{}/empty", "{}/new.npz"], "empty: no examples"),
        (["fit", "{}/en.test", "{}/new.npz", "--columns", "x,y"], "en.test: no column 'x'"),
        (["predict", "{}/topics.npz", "{}/empty"], "empty: empty; expected one text a line"),
        (["evaluate", "{}", "{}/fr.test"], "nothing can follow a folder"),
        (["evaluate", "{}/fr.test"], "expected a folder, or a training file and test files"),
        (["evaluate", "{}/en.test", "{}/fr.test", "--test", "fr"], "name languages of a folder; these are files"),
        (["evaluate", "{}", "--test", "fr,xx"], "'xx' is no language of this folder, which has en, fr"),
        (["evaluate", "{}/en.test", "{}/strange"], "strange: label 'sports' is not in both this file and"),
    ]:
        for name, content in (("empty", ""), ("strange", "sports\tThey won.\n")):
            (folder / name).write_text(content)
        before = set(folder.iterdir())
        assert_refused(run("classify", *(argument.format(folder) for argument in arguments)), message)
        assert set(folder.iterdir()) == before


def test_labels_by_description(run: Runner, folder: Path) -> None:
    words = zip(FRENCH, ("pets, birds and cattle", "Geld, Banken", "rain, sun and wind"), strict=True)
    described = [f"--labels={label}: {text}" for label, text in words]
    table = write_lines(folder / "new.csv", ["id,text", *(f'{label[0]},"{text}"' for label, text in FRENCH.items())])
    command = ("classify", "zero-shot", table, "--column", "text", "--id", "id", *described)
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert [line.split("\t")[:2] for line in out.splitlines()] == [[label[0], label] for label in FRENCH]
    head = folder / "described.npz"
    options = ("--examples", folder / "en.train.1000", "--head", head, "-o", folder / "out.csv")
    code, out, err = run(*command, *options)
    written = f"{folder / 'out.csv'}: 3 rows\n{head}: 3 labels from descriptions and 12 examples\n"
    assert (code, out, err) == (0, "", written)
    again = run("classify", "predict", head, table, "--column", "text", "-o", folder / "again.csv")
    assert again[0] == 0
    answers = [list(read_rows(folder / name, ["label", "text"])) for name in ("out.csv", "again.csv")]
    assert answers[0] == answers[1] == [[label, text] for label, text in FRENCH.items()]
    assert_refused(run(*command[:-2]), "at least two different labels")
