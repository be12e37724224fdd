"""Translations against changed ones."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from xsent.cli import app
from xsent.errors import DataError
from xsent.evaluation.contrasts import HEADER, contrasts

OURS = Path(__file__).parent.parent / "bench" / "contrasts.tsv"
ROWS = (
    "order\tA\tfr\tnear\tfar",
    "order\tA\tfr\tfar\tnear",
    "order\tA\tfr\tnear\tnear",
    "order\tA\tde\tnear\tfar",
    "numbers\tA\tfr\tnear\tfar",
)
DEGREES = {"A": 0, "near": 10, "far": 80}


class Angles:
    """Encodes a text of a known angle."""

    languages = ("en", "fr", "de")

    def encode(self, sentences: list[str], /) -> NDArray[np.float32]:
        """Vectors of length 3."""
        angles = np.radians([DEGREES[sentence] for sentence in sentences])
        return 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def write(file: Path, *rows: str) -> Path:
    file.write_text("".join(f"{row}\n" for row in ("\t".join(HEADER), *rows)))
    return file


def test_nearer_to_the_translation_counts_and_equally_near_half(tmp_path: Path) -> None:
    result = contrasts(Angles(), write(tmp_path / "c.tsv", *ROWS))
    assert result.rows() == [
        {"kind": "order", "sentences": 4, "de": 100.0, "fr": 50.0, "mean": 62.5},
        {"kind": "numbers", "sentences": 1, "fr": 100.0, "mean": 100.0},
        {"kind": "mean", "sentences": 5, "de": 100.0, "fr": 62.5, "mean": 70.0},
    ]
    assert contrasts(Angles(), tmp_path / "c.tsv", ["de"]).rows()[0] == {
        "kind": "order",
        "sentences": 1,
        "de": 100.0,
        "mean": 100.0,
    }


def test_bad_files_are_named(tmp_path: Path) -> None:
    file = write(tmp_path / "c.tsv", *ROWS)
    with pytest.raises(DataError, match=r"c.tsv: has no sentences in it; it has de, fr"):
        contrasts(Angles(), file, ["fr", "it"])
    with pytest.raises(DataError, match=r"c.tsv:2: 3 fields, expected 5 with tabs between: kind, English, "):
        contrasts(Angles(), write(file, "order\tA\tfr"))
    with pytest.raises(DataError, match="nothing in a language of the model; expected one of it"):
        contrasts(Angles(), write(file, "order\tA\tit\tnear\tfar"))
    file.write_text("\n".join(ROWS))
    with pytest.raises(DataError, match="its first line must be kind english language translation changed"):
        contrasts(Angles(), file)


def test_our_sentences_are_whole_and_what_only_moves_words_moves_only_words() -> None:
    rows = [line.split("\t") for line in OURS.read_text(encoding="utf-8").splitlines()]
    assert rows.pop(0) == HEADER and len(rows) == 400 == len(set(map(tuple, rows)))
    for kind in ("order", "negation", "names", "numbers"):
        for language in ("fr", "de", "es", "it"):
            some = [row for row in rows if (row[0], row[2]) == (kind, language)]
            assert len(some) == 25 and all(row[3] != row[4] for row in some)
            same = [
                sorted(row[3].casefold().rstrip(".?!").split()) == sorted(row[4].casefold().rstrip(".?!").split())
                for row in some
            ]
            assert sum(same) >= 20 if kind in ("order", "names") else not any(same)


def test_the_command_prints_a_table() -> None:
    result = CliRunner().invoke(app, ["evaluate", "contrasts", str(OURS), "--languages", "fr,de"])
    assert result.exit_code == 0, result.output
    head, order, *_ = result.stdout.splitlines()
    assert head.split() == ["kind", "sentences", "de", "fr", "mean"]
    assert order.split()[:2] == ["order", "50"] and 0 <= float(order.split()[-1]) <= 100
    assert "nearer to their translation" in result.stdout
