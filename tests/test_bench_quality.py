"""The protocols of the benchmarks, on made-up data and encoders whose scores are known."""

import re
from pathlib import Path

import numpy as np
import pytest
from bench_toy import write_toy_tests
from numpy.typing import NDArray
from toy import ENGLISH

from xsent.bench.quality import measure, small_xsr, text_similarity, topics
from xsent.errors import DataError

FOREIGN = {word[::-1] + ending: number for number, word in enumerate(ENGLISH) for ending in ("en", "eau")}
WORDS = {word: number for number, word in enumerate(ENGLISH)} | FOREIGN


class Dictionary:
    """Counts words and knows their translations: a perfect encoder of the toy languages."""

    def encode(self, sentences: list[str], /) -> NDArray[np.float32]:
        """How often each word occurs in each sentence."""
        vectors = np.zeros((len(sentences), len(ENGLISH)), np.float32)
        for vector, sentence in zip(vectors, sentences, strict=True):
            for word in re.findall(r"[a-z]+", sentence):
                vector[WORDS[word]] += 1
        return vectors


class Constant:
    """An encoder that has collapsed."""

    def encode(self, sentences: list[str], /) -> NDArray[np.float32]:
        """The same vector for all."""
        return np.ones((len(sentences), 4), np.float32)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_tests(tmp_path_factory.mktemp("tests"))


def test_a_perfect_encoder_has_perfect_scores(data: Path) -> None:
    scores = measure(Dictionary(), data, ["fr", "de"])
    retrieval = [score for name, score in scores.items() if name.startswith(("Tatoeba", "XSR"))]
    assert len(retrieval) == 6 and min(retrieval) > 95  # a few toy sentences have the same words in another order
    assert all(score > 90 for name, score in scores.items() if name.startswith("SIB"))
    assert scores["STS en"] == pytest.approx(scores["STS fr"]) and scores["STS en"] > 99


def test_a_collapsed_encoder_is_measured_too(data: Path) -> None:
    scores = measure(Constant(), data, ["fr", "de"])
    assert scores["Tatoeba fr→en"] == pytest.approx(100 / 60, abs=0.1)  # the first of equals is right for one query
    assert scores["SIB en→fr"] == pytest.approx(100 / 3) and scores["STS en"] == 0


def test_distractors_are_counted_and_cut(data: Path) -> None:
    rows = len((data / "xsr" / "en-fr.tsv").read_text().splitlines())
    for distractors, more in ((0, 0), (7, 7), (1000, 30)):
        score = small_xsr(Dictionary(), data / "xsr", "fr", distractors=distractors)
        assert score.en_xx.candidates == rows + more and score.xx_en.candidates == rows
        assert score.en_xx.queries == rows - rows // 3


def test_classes_count_the_same_by_class(tmp_path: Path) -> None:
    words = {"train": ["cat", "dog"], "dev": ["cat", "dog"], "test": ["cat", "cat", "cat", "cat", "dog", "cat"]}
    gold = {"train": ["a", "b"], "dev": ["a", "b"], "test": ["a", "a", "a", "a", "b", "b"]}
    (tmp_path / "en").mkdir()
    for split, texts in words.items():
        rows = [f"{i}\t{topic}\t{text}\n" for i, (topic, text) in enumerate(zip(gold[split], texts, strict=True))]
        (tmp_path / "en" / f"{split}.tsv").write_text("number\ttopic\ttext\n" + "".join(rows))
    found = topics(Dictionary(), tmp_path, ["en"])
    assert found.accuracy["en"] == pytest.approx(100 * 5 / 6)
    assert found.by_class["en"] == pytest.approx(75)  # all of a, half of b


def test_similarity_is_a_correlation_of_ranks(tmp_path: Path) -> None:
    file = tmp_path / "sts.csv"
    file.write_text('cat dog,cat dog,5\ncat dog,cat fire,3\n"cat, dog",red fire,1\ncat dog,cat,3\n')
    # Cosines 1, 0.5, 0, 0.71: ranks 4, 2, 1, 3 against 4, 2.5, 1, 2.5.
    assert text_similarity(Dictionary(), file) == pytest.approx(100 * 4.5 / np.sqrt(4.5 * 5))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "stsb" / "en-test.csv").write_text("a,b\n"), "sentence, sentence, similarity"),
        (lambda folder: (folder / "sib200" / "en" / "dev.tsv").unlink(), "no such file"),
        (lambda folder: (folder / "xsr" / "en-fr.tsv").write_text("C\tx\ta\tb\n"), "no row is a query"),
    ],
)
def test_unreadable_data_is_one_clear_line(tmp_path: Path, damage: object, message: str) -> None:
    folder = write_toy_tests(tmp_path / "tests")
    assert callable(damage)
    damage(folder)
    with pytest.raises(DataError, match=message) as raised:
        measure(Constant(), folder, ["fr", "de"])
    assert str(folder) in str(raised.value) and "\n" not in str(raised.value)
