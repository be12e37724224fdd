"""Evaluation protocols on made-up files."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.evaluation.translation import languages_of, tatoeba, xsr


class Letters:
    """A sentence is the count of its letters, so that anagrams are translations."""

    def encode(self, sentences: list[str], /) -> NDArray[np.float64]:
        """Vectors [n, 26]."""
        return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in sentences], np.float64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "en-xx.tsv").write_text("ab\tba\ncd\tdc\nef\teg\n")
    (tmp_path / "en-yy.tsv").write_text("ab\tba\ncd\tdc\n")
    return tmp_path


@pytest.fixture
def xsr_folder(tmp_path: Path) -> Path:
    (tmp_path / "en-xx.tsv").write_text("C\ts\tab\tba\nQ\ts\tcd\tdc\nQ\ts\tef\teg\nQ\ts\tgh\tgi\n")
    (tmp_path / "distractors.xx.txt.xz").write_bytes(lzma.compress(b"gh\nzz\n"))
    return tmp_path


def test_tatoeba_by_hand(folder: Path) -> None:
    result = tatoeba(Letters(), folder, ["xx", "yy"])
    rows = result.rows()
    assert rows[0] == {
        "language": "xx",
        "queries": 3,
        "xx_en": 100.0,
        "xx_en_candidates": 3,
        "en_xx": 100.0,
        "en_xx_candidates": 3,
    }
    assert rows[-1] == {"language": "mean", "xx_en": 100.0, "en_xx": 100.0}
    json.dumps(rows)


def test_xsr_by_hand(xsr_folder: Path) -> None:
    result = xsr(Letters(), xsr_folder, ["xx"])
    score = result.scores["xx"]
    assert (score["queries"], score["en_xx_candidates"], score["xx_en_candidates"]) == (3, 6, 4)
    assert score["en_xx"] == pytest.approx(200 / 3) == result.mean["en_xx"]  # "gh" finds a distractor
    assert score["xx_en"] == 100
    assert "only the rows' English" in result.note
    assert "Europarl" in result.note


def test_equal_texts_are_reported_beside(tmp_path: Path) -> None:
    (tmp_path / "en-xx.tsv").write_text("ab\tba\nab\tba\n")
    (row, _) = tatoeba(Letters(), tmp_path, ["xx"]).rows()
    assert row["xx_en"] == 50
    assert row["xx_en_same_text"] == 100


@pytest.mark.parametrize("protocol", [tatoeba, xsr])
def test_missing_file_names_path_and_layout(tmp_path: Path, protocol: type) -> None:
    with pytest.raises(DataError, match=r"en-xx\.tsv: no such file; expected .*English, translation"):
        protocol(Letters(), tmp_path, ["xx"])


def test_missing_distractors(xsr_folder: Path) -> None:
    (xsr_folder / "distractors.xx.txt.xz").unlink()
    with pytest.raises(DataError, match=r"distractors\.xx\.txt\.xz"):
        xsr(Letters(), xsr_folder, ["xx"])


@pytest.mark.parametrize(
    ("protocol", "content"), [(tatoeba, ""), (tatoeba, "a\tb\tc\n"), (xsr, ""), (xsr, "C\ts\ta\tb\n")]
)
def test_unusable_file(xsr_folder: Path, protocol: type, content: str) -> None:
    (xsr_folder / "en-xx.tsv").write_text(content)
    with pytest.raises(DataError, match=r"en-xx\.tsv"):
        protocol(Letters(), xsr_folder, ["xx"])


def test_languages_default_to_what_both_have(folder: Path) -> None:
    encoder = Letters()
    assert languages_of(encoder, folder) == ["xx", "yy"]
    encoder.languages = ("en", "yy", "zz")  # type: ignore[attr-defined]
    assert languages_of(encoder, folder) == ["yy"]
    encoder.languages = ("en",)  # type: ignore[attr-defined]
    with pytest.raises(DataError, match=r"en-fr\.tsv"):
        languages_of(encoder, folder)


def test_progress(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tatoeba(Letters(), folder, ["xx"], show_progress_bar=True)
    assert "1 of 1 languages" in capsys.readouterr().err
