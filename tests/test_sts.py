"""Semantic textual similarity."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from xsent.cli import app
from xsent.errors import DataError
from xsent.evaluation.sts import ranks, read_sts, spearman, sts

FILE = 'A cat.,A dog.,1.0\n"One, two.",Three.,4.5\nA,B,3\n'


DEGREES = {"A cat.": 0, "A dog.": 80, "One, two.": 0, "Three.": 10, "A": 0, "B": 40}


class Angles:
    """Encodes a sentence of a known angle."""

    languages = ("en",)

    def encode(self, sentences: list[str], /) -> NDArray[np.float32]:
        """Vectors of length 3."""
        angles = np.radians([DEGREES[sentence] for sentence in sentences])
        return 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_ranks_of_equals_are_shared() -> None:
    assert ranks([10, 30, 20, 30]).tolist() == [0, 2.5, 1, 2.5]


def test_spearman_by_hand() -> None:
    assert spearman([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)  # 1 - 6 * (0 + 1 + 1) / (3 * 8)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [3, 2, 1]) == 0  # an encoder that gives all the same vector


def test_cosines_are_compared_with_scores(tmp_path: Path) -> None:
    (tmp_path / "en-test.csv").write_text(FILE)
    result = sts(Angles(), tmp_path)
    assert result.scores == {"en": {"pairs": 3, "spearman": pytest.approx(1)}}
    assert result.rows()[-1] == {"language": "mean", "spearman": pytest.approx(1)}


def test_what_is_no_pair_is_named(tmp_path: Path) -> None:
    file = tmp_path / "en-test.csv"
    for text, message in (
        (FILE + "A,B\n", r"en-test.csv:4: expected sentence, sentence, score"),
        (FILE + "A,B,much\n", r"en-test.csv:4: expected sentence, sentence, score"),
        (FILE + "A,B,nan\n", r"en-test.csv:4: expected sentence, sentence, score"),
        (FILE + '"A,B,1\n' + "far " * 40_000, r"en-test.csv:\d+: expected sentence, sentence, score"),
        ("A,B,1\nC,D,1\n", r"2 pairs with 1 scores; a correlation needs different ones"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=message):
            read_sts(file)
    with pytest.raises(DataError, match=r"nothing in a language of the model; expected an XX-test.csv"):
        sts(Angles(), tmp_path / "nowhere")


def test_the_command_prints_a_table(tmp_path: Path) -> None:
    (tmp_path / "en-test.csv").write_text("The cat sleeps.,A cat is sleeping.,5\nThe cat sleeps.,Pay the rent.,0\n")
    result = CliRunner().invoke(app, ["evaluate", "sts", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split() == ["language", "pairs", "spearman"]
    assert "1.0000" in result.stdout and "Spearman's correlation" in result.stdout
