"""Labelled files, and heads tested across languages."""

from pathlib import Path

import numpy as np
import pytest
from commands import raises
from toy_documents import Letters

from xsent.errors import DataError
from xsent.evaluation import topics
from xsent.evaluation.topics import (
    Cell,
    Examples,
    accuracy_rows,
    confusion_rows,
    read_examples,
    transfer,
    unknown_rows,
)

LOWER = Examples("lower", ["a", "b"] * 6, ["aaaax", "bbbby"] * 6)
UPPER = Examples("upper", ["a", "b", "b"], ["AAA", "BBB", "AAB"])


def test_files_and_sets_that_cannot_be_used(tmp_path: Path) -> None:
    for content, columns, message in [
        ("a text\n", None, r"bad\.tsv:1: 1 fields, expected label and one or two texts.*--columns"),
        ("a\tb\nc\n", None, r"bad\.tsv:2: 1 fields, expected 2 separated by tabs, as in line 1"),
        ("x\ta\t\n", None, r"bad\.tsv: no examples"),
        ("topic\ttext\n", ["topic", "words"], r"bad\.tsv: no column 'words'; its columns: topic, text"),
        ("topic\ttext\na\tb\nc\n", ["topic", "text"], r"bad\.tsv:3: 1 fields"),
        ("topic\ttext\n", ["topic", "text"], r"bad\.tsv: no examples"),
    ]:
        file = tmp_path / "bad.tsv"
        file.write_text(content)
        raises(DataError, message, read_examples, file, columns)
    for train, test, message in [
        ({"x": Examples("one.tsv", ["a"] * 2, ["a"] * 2)}, {"y": Examples("y", ["a"], ["a"])}, "one.tsv: all examples"),
        ({"x": Examples("x.tsv", ["a", "a", "b"], ["a"] * 3)}, {"y": UPPER}, "x.tsv: only one example is labelled 'b'"),
        ({"x": LOWER, "y": Examples("y.tsv", ["a"], ["a"])}, {"y": UPPER}, r"y\.tsv: label 'b' is not in both"),
    ]:
        raises(DataError, message, transfer, Letters(), train, test)


def test_labelled_files_and_folders(tmp_path: Path) -> None:
    file = tmp_path / "english.train.1000"
    file.write_text("CCAT\tShares rose.\nGCAT\tA storm\u2028came.\n")
    examples = read_examples(file)
    assert examples == Examples(str(file), ["CCAT", "GCAT"], ["Shares rose.", "A storm\u2028came."])
    assert examples.encode(Letters()).shape == (2, 26)
    file.write_text("same\ta\tA\nother\ta\tb\n")
    vectors = read_examples(file).encode(Letters())
    assert vectors.shape == (2, 2, 26) and vectors[1].argmax(axis=1).tolist() == [0, 1]
    file.write_text("number\ttopic\ttext\tmore\n7\tcats\tone\ttwo\n")
    assert read_examples(file, ["topic", "text"]) == Examples(str(file), ["cats"], ["one"])
    assert read_examples(file, ["topic", "more", "text"]) == Examples(str(file), ["cats"], ["two", "one"])
    for columns in (["label"], ["a", "b", "c", "d"]):
        raises(
            ValueError, "expected the columns of the label and of one or two texts", read_examples, "unread", columns
        )
    for name in ("german.train.1000", "english.train.1000", "english.train.2000", "english.dev", "english.test"):
        (tmp_path / name).touch()
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "test.tsv").touch()
    trains = {language: tmp_path / f"{language}.train.1000" for language in ("english", "german")}
    tests = {"english": tmp_path / "english.test", "fr": tmp_path / "fr" / "test.tsv"}
    found = [topics.topic_files(tmp_path, files) for files in (topics.TRAIN_FILES, topics.TEST_FILES)]
    assert found == [trains, tests]
    with pytest.raises(DataError, match=r"no LANG\.train\.1000 or LANG/train\.tsv in this folder"):
        topics.topic_files(tmp_path / "fr", topics.TRAIN_FILES)


def test_transfer_by_hand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    sets = {"lower": LOWER, "upper": UPPER}
    labels, (cell, other) = transfer(Letters(), {"lower": LOWER}, sets, seeds=2)
    assert "2 of 2 heads" in capsys.readouterr().err
    assert labels == ("a", "b")
    assert (cell.train, cell.test, cell.accuracy, cell.deviation) == ("lower", "lower", 100, 0)
    assert other.confusion.tolist() == [[[1, 0, 0], [1, 1, 0]]] * 2  # AAB is more a than b
    assert other.accuracy == pytest.approx(200 / 3)
    _, cells = transfer(Letters(), {"x": LOWER, "y": LOWER}, {"x": LOWER, "y": LOWER}, seeds=1)
    assert [(cell.train, cell.test) for cell in cells] == [("x", "x"), ("x", "y"), ("y", "x"), ("y", "y")]
    pairs = Examples("pairs.tsv", ["a", "b"] * 3, ["a", "b"] * 6)
    with pytest.raises(ValueError, match=r"expected vectors \[n, 2, 26\]"):  # pairs are not tested on texts
        transfer(Letters(), {"pairs": pairs}, {"upper": UPPER}, seeds=1)
    silent = Examples("silent", ["a", "b"], ["...", "bb"])
    _, (cell,) = transfer(Letters(), {"lower": LOWER}, {"silent": silent}, seeds=1)
    assert cell.confusion.tolist() == [[[0, 0, 1], [0, 1, 0]]]
    assert cell.accuracy == 50
    assert confusion_rows("ab", [cell])[0] == {"label": "a", "a": 0, "b": 0, "unknown": 100}


def test_what_is_lost_to_unknown_and_what_is_found() -> None:
    three = Examples("three", [*"abc"] * 6, ["aaaax", "bbbby", "ccccz"] * 6)
    # Of a, one is near b and one near nothing; of b, one has no words.
    other = Examples("other", [*"aaabb"], ["AAAAX", "BBBBY", "QQ", "BBBBY", "..."])
    _, (same, cell) = transfer(Letters(), {"three": three}, {"three": three, "other": other}, seeds=1)
    assert (same.lost, same.found) == (0, 100)
    assert (cell.lost, cell.found) == (40, pytest.approx((200 / 3 + 100) / 2))
    assert (cell.row()["lost"], cell.row()["found"]) == (cell.lost, cell.found)
    rows = unknown_rows([same, cell])
    assert rows == [
        {"train": "three", "unknown": "lost", "three": 0, "other": 40, "mean of others": 40},
        {"train": "three", "unknown": "found", "three": 100, "other": cell.found, "mean of others": cell.found},
    ]
    _, (two,) = transfer(Letters(), {"lower": LOWER}, {"upper": UPPER}, seeds=1)
    assert (two.found, [row["unknown"] for row in unknown_rows([two])]) == (None, ["lost"])  # one label would be left
    pairs = Examples("pairs", ["a", "b"] * 6, ["a", "b"] * 12)
    _, (cell,) = transfer(Letters(), {"pairs": pairs}, {"pairs": pairs}, seeds=1)
    assert (cell.lost, cell.found, unknown_rows([cell])) == (None, None, [])


def cell(train: str, test: str, *rights: int) -> Cell:
    """Ten examples of each of two labels; of the second so many are right, with each seed."""
    return Cell(train, test, np.array([[[10, 0, 0], [10 - right, right, 0]] for right in rights]))


def test_tables_by_hand() -> None:
    cells = [cell("en", "en", 10, 10), cell("en", "fr", 4, 8), cell("en", "de", 6, 6)]
    assert cells[1].accuracies.tolist() == [70, 90]
    assert cells[1].deviation == pytest.approx(200**0.5)
    row = {"train": "en", "en": "100.0 ±0.0", "fr": "80.0 ±14.1", "de": "80.0 ±0.0", "mean of others": 80}
    assert accuracy_rows(cells) == [row]
    assert accuracy_rows([cell("en", "en", 4)]) == [{"train": "en", "en": 70.0}]
    shares = [{"label": "a", "a": 100, "b": 0}, {"label": "b", "a": pytest.approx(80 / 3), "b": pytest.approx(220 / 3)}]
    assert confusion_rows("ab", cells) == shares
    untested = Cell("en", "fr", np.array([[[5, 0, 0], [0, 0, 0]]]))  # a row of zeros
    assert confusion_rows("ab", [untested])[1] == {"label": "b", "a": 0, "b": 0}
