"""Duplicates within one text, and what keeps texts of nearly one meaning apart."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, raises

from xsent import SentenceEncoder, group_pairs, mine_paraphrases, paraphrase_mining
from xsent.files.text import read_fields, read_lines
from xsent.mining.bitext import Bitext
from xsent.mining.number_words import TABLES
from xsent.mining.opposites import LANGUAGES
from xsent.mining.paraphrases import difference, split_pairs


def listed(pairs: Bitext) -> list[tuple[int, int]]:
    return list(zip(pairs.src.tolist(), pairs.trg.tolist(), strict=True))


def test_two_that_stand_alone_by_hand() -> None:
    radians = np.deg2rad([0, 20, 120, 240])
    pairs = mine_paraphrases(np.stack([np.cos(radians), np.sin(radians)], axis=1))
    assert listed(pairs) == [(0, 1)]
    assert pairs.scores == pytest.approx([np.cos(np.deg2rad(20)) / 0.6])  # nothing else is near: 0.6 instead
    assert len(mine_paraphrases(np.array([[0, 0], [1, 2], [0, 0]]))) == 0
    vectors = np.random.default_rng(1).normal(size=(9000, 32)).astype(np.float32)  # more than are compared at once
    vectors[8999], vectors[4100] = vectors[3], vectors[1030]
    assert {*listed(mine_paraphrases(vectors, threshold=1.6))} == {(3, 8999), (1030, 4100)}
    assert listed(mine_paraphrases(vectors, rows=np.array([3, 4100, 8999])))[0][0] == 3


@pytest.mark.parametrize(("c", "around", "by"), [(0.9, 0.7, 0.7), (0.9, 0.3, 0.6), (0.97, 0.9, 0.75)])
def test_what_is_around_decides_where_it_is_near(c: float, around: float, by: float) -> None:
    """A pair of cosine c among 48 others at one cosine to it and to each other: it counts between 0.6 and 0.75."""
    gram = np.full((50, 50), around)
    gram[0, 1] = gram[1, 0] = c
    np.fill_diagonal(gram, 1)
    values, axes = np.linalg.eigh(gram)
    pairs = mine_paraphrases(axes * np.sqrt(np.maximum(values, 0)), threshold=0.0)
    found = dict(zip(listed(pairs), pairs.scores, strict=True))
    assert found[0, 1] == pytest.approx(c / by, abs=1e-4)


def test_equal_rows_hide_no_other() -> None:
    vectors = np.eye(40)[[0] * 35 + [0, *range(5, 20)]]
    vectors[35, 1] = 0.5
    pairs = mine_paraphrases(vectors)
    assert listed(pairs) == [(0, row) for row in range(1, 36)]
    assert pairs.scores[[0, 34]] == pytest.approx([1 / 0.6, 1 / 1.25**0.5 / 0.6])
    assert listed(mine_paraphrases(vectors[:3])) == [(0, 1), (0, 2)]


def test_groups() -> None:
    assert group_pairs([]) == []
    assert group_pairs([(1, 2), (5, 9), (7, 2), (9, 5), (8, 7), (3, 4)]) == [[1, 2, 7, 8], [3, 4], [5, 9]]
    assert group_pairs([(1, 2), (3, 4), (2, 3)], [(1, 4)]) == [[1, 2], [3, 4]]
    assert group_pairs([(1, 2), (2, 3)], [(3, 1)]) == [[1, 2]]
    assert json.dumps(group_pairs(np.array([[0, 3], [3, 7]]))) == "[[0, 3, 7]]"
    for triple in ((1.4, 0, 1), (0, 1, 2)):
        raises(TypeError, r"got \(.*expected pairs of rows, such as \(i, j\)", group_pairs, [triple])
    raises(ValueError, "threshold = nan must be a number", mine_paraphrases, np.eye(3), threshold=float("nan"))
    pairs = Bitext(np.array([0]), np.array([2]), np.ones(1, np.float32))
    raises(ValueError, "2 texts for pairs of 3 or more rows", split_pairs, pairs, ["Anna", "Boris"])
    random = np.random.default_rng(0)
    copies = random.normal(size=16) + 0.05 * random.normal(size=(40, 16))  # more than the neighbours looked at
    others = random.normal(size=(60, 16))
    assert group_pairs(listed(mine_paraphrases(np.concatenate([others, copies])))) == [[*range(60, 100)]]


def test_paraphrases_across_languages_and_of_the_made_set() -> None:
    train = ["The train to Berlin leaves at nine o'clock.", "Le train pour Berlin part à neuf heures."]
    bread = ["Where can I buy fresh bread?", "Dove posso comprare del pane fresco?"]
    others = ["N/A", "Our new neighbours have three dogs.", "N/A"]
    found = paraphrase_mining(SentenceEncoder(), [*train, *others, "Der Zug nach Berlin fährt um neun Uhr ab.", *bread])
    assert group_pairs((i, j) for _, i, j in found) == [[0, 1, 5], [6, 7]]
    assert [score for score, _, _ in found] == sorted((score for score, _, _ in found), reverse=True)
    # 18 lines a meaning, in nine languages; docs/guides/translations-and-duplicates.md has precision and recall.
    kinds = len(ROWS) // 9
    texts = [text for row in ROWS for text in row[2:]]
    meaning = [(i % kinds, side * (row[0] != "same")) for i, row in enumerate(ROWS) for side in (0, 1)]
    right = {pair for pair in combinations(range(len(texts)), 2) if len({meaning[row] for row in pair}) == 1}
    same, apart = split_pairs(mine_paraphrases(SentenceEncoder().encode(texts)), texts)
    found, rivals = ({*listed(side)} for side in (same, apart))
    assert len(found & right) / len(found) > 0.98 and len(found & right) / len(right) > 0.6
    assert len(rivals & right) <= 0.01 * len(rivals)


def test_the_command_prints_groups_and_pairs(run: Runner, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The cat sleeps.\nIt rains in Paris.\n\nDie Katze schläft.\nThe cat sleeps.\n")
    code, out, err = run("duplicates", text)
    assert (code, err) == (0, "1 group; 2 of 5 lines repeat another\n")
    assert out == "1\t1\tThe cat sleeps.\n1\t4\tDie Katze schläft.\n1\t5\tThe cat sleeps.\n"
    found = [json.loads(line) for line in run("duplicates", text, "--pairs", "--json")[1].splitlines()]
    assert [found[0][f"line_{side}"] for side in (1, 2)] == [1, 5] and found[0]["text_2"] == "The cat sleeps."
    first = run("duplicates", text, "--pairs")[1].splitlines()[0]
    assert first.split("\t")[1:] == ["1", "5", "The cat sleeps.", "The cat sleeps."]
    rows = [json.loads(line) for line in run("duplicates", text, "--json")[1].splitlines()]
    assert [(row["group"], row["line"]) for row in rows] == [(1, 1), (1, 4), (1, 5)]
    assert run("duplicates", text, "--threshold", 9)[0] == 2
    vectors = tmp_path / "text.npy"
    assert run("encode", text, "--output", vectors)[0] == 0
    assert run("duplicates", text, "--vectors", vectors)[1] == out
    text.write_text("The cat sleeps.\nIt rains in Paris.\n")
    assert_refused(run("duplicates", text), f"no duplicates in {text}: no pair reaches the threshold 1.25")
    text.write_text("Smoking is allowed here.\nSmoking is forbidden here.\nRauchen ist hier verboten.\n")
    code, out, err = run("duplicates", text)
    assert code == 0 and [line.split("\t")[1] for line in out.splitlines()] == ["2", "3"]
    assert "differ in a number, a negation, an opposite or who did what; --no-strict takes them too" in err
    assert len(run("duplicates", text, "--no-strict")[1].splitlines()) == 3
    text.write_text("Anna paid Bert.\nBert paid Anna.\n")
    assert_refused(run("duplicates", text), "no duplicates .*; 1 pair differs in a number")


MADE = Path(__file__).parents[2] / "bench" / "duplicates.tsv"
ROWS = list(read_fields(MADE, 4, "kind, language, text, other"))[1:]


@pytest.mark.parametrize(("kind", "language", "text", "other"), ROWS)
def test_made_pairs(kind: str, language: str, text: str, other: str) -> None:
    inflected = text == "Анна заплатила Борису."  # by case, which these rules do not see
    expected = None if kind == "same" or inflected else kind
    assert difference(text, other) == difference(other, text) == expected
    assert difference(text, text) is None


def test_what_two_texts_differ_in() -> None:
    """Each line of differences.tsv has what any two of its texts differ in, and the texts."""
    wrong = []
    for line in read_lines(Path(__file__).with_name("differences.tsv")):
        kind, *texts = line.split("\t")
        expected = None if kind == "same" else kind
        pairs = combinations(texts, 2)
        wrong += [two for two in pairs if {difference(*two), difference(*reversed(two))} != {expected}]
    assert wrong == [] and difference("", "") is None


def test_every_opposite_has_words_in_all_languages() -> None:
    for group in TABLES["opposites"]:
        for column in group:
            words = column.split(" | ")
            assert len(words) == len(LANGUAGES) and all(words[:-1]), column
            assert words[-1] or "january" in group[0], column  # months have numbers in Japanese
