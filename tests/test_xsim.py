"""xsim, with an encoder whose vectors are written down."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.evaluation.xsim import xsim, xsim_errors


class Letters:
    """A sentence is the count of its letters, so that anagrams are translations."""

    def encode(self, sentences: list[str], /) -> NDArray[np.float64]:
        """Vectors [n, 26]."""
        return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in sentences], np.float64)


ENGLISH = ["abc", "bcd", "cde", "def", "efg"]
FRENCH = ["cba", "dcb", "edc", "fed", "gfe"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "en.txt").write_text("\n".join(ENGLISH) + "\n")
    (tmp_path / "fr.txt").write_text("\n".join(FRENCH) + "\n")
    (tmp_path / "de.txt").write_text("\n".join([*FRENCH[1::-1], *FRENCH[2:]]) + "\n")  # the first two are swapped
    return tmp_path


def test_errors_by_hand() -> None:
    eye = np.eye(6)
    assert xsim_errors(eye, eye, k=1) == 0
    assert xsim_errors(eye, eye[[1, 0, 2, 3, 4, 5]], k=1) == 2
    eye[5] = 0  # an empty sentence finds nothing
    assert xsim_errors(eye, eye, k=1) == 1


def test_a_hub_that_the_cosine_prefers_is_overruled_by_the_margin() -> None:
    # The last target is nearer to all sources (0.91) than their translations (0.76) are; its own neighbours, all as
    # near, give it away: 0.91 / 0.79 is less than 0.76 / 0.61.
    src = np.eye(5, 6)
    src[:, 5] = 3
    trg = np.eye(5, 6)
    trg[:, 5] = 0.6
    trg[4] = [0, 0, 0, 0, 0.3, 1]
    assert xsim_errors(src, trg, margin="absolute") == 4
    assert xsim_errors(src, trg, margin="ratio") == 0


def test_sides_that_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="5 and 4 sentences are not parallel"):
        xsim_errors(np.eye(5), np.eye(4, 5))
    with pytest.raises(ValueError, match="k = 4 neighbours"):
        xsim_errors(np.eye(2), np.eye(2))


def test_folder(folder: Path) -> None:
    result = xsim(Letters(), folder)
    assert result.rows() == [
        {"language": "de", "sentences": 5, "xx_en": 40.0, "en_xx": 40.0},
        {"language": "fr", "sentences": 5, "xx_en": 0.0, "en_xx": 0.0},
        {"language": "mean", "xx_en": 20.0, "en_xx": 20.0},
    ]
    assert "ratio" in result.note
    encoder = Letters()
    encoder.languages = ("en", "fr", "it")  # type: ignore[attr-defined]
    assert list(xsim(encoder, folder).scores) == ["fr"]
    assert xsim(encoder, folder, ["de"], pivot="fr", margin="absolute").rows()[0]["xx_fr"] == 40


def test_names_of_flores_and_ntrex(tmp_path: Path) -> None:
    text = "\n".join(ENGLISH)
    for name in ("eng_Latn.devtest", "fra_Latn.devtest", "newstest2019-src.eng.txt", "newstest2019-ref.fra.txt"):
        (tmp_path / name).write_text(text)
    assert xsim(Letters(), tmp_path, ["fra_Latn"], pivot="eng_Latn").mean["xx_eng_Latn"] == 0
    assert xsim(Letters(), tmp_path, ["fra"], pivot="eng").mean["eng_xx"] == 0


def test_bad_folders(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no file of es; expected e\.g\. es\.txt"):
        xsim(Letters(), folder, ["es"])
    with pytest.raises(DataError, match="no file of xx"):
        xsim(Letters(), folder, pivot="xx")
    (folder / "fr.txt").write_text("abc\n")
    with pytest.raises(DataError, match=r"fr\.txt: 1 lines, en\.txt 5; expected parallel"):
        xsim(Letters(), folder, ["fr"])
    (folder / "fr.txt").write_text("")
    with pytest.raises(DataError, match=r"fr\.txt: empty"):
        xsim(Letters(), folder, ["fr"])
    with pytest.raises(DataError, match="nothing in a language of the model; expected files beside en"):
        xsim(Letters(), folder / "none")


def test_progress(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xsim(Letters(), folder, show_progress_bar=True)
    assert "2 of 2 languages" in capsys.readouterr().err


def test_the_pivot_is_not_compared_with_itself(folder: Path) -> None:
    assert list(xsim(Letters(), folder, ["en", "fr"]).scores) == ["fr"]
