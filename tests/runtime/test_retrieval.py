"""Questions to passages on made-up files, with encoders whose vectors are written down."""

import math
from pathlib import Path

import numpy as np
import pytest
from commands import raises, write_lines
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation.retrieval import Passages, Queries, rank_by_bm25, rank_by_both, retrieval

SECOND = 100 / math.log2(3)


class Directions:
    """An encoder for which a text is an angle in degrees: its last word."""

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors [n, 2]."""
        angles = np.radians([float(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def write_test(folder: Path, language: str, queries: dict[str, str], passages: dict[str, str]) -> None:
    write_lines(folder / f"{language}.tsv", map("\t".join, queries.items()))
    write_lines(folder / f"{language}.passages.tsv", map("\t".join, passages.items()))


def test_figures_by_hand(tmp_path: Path) -> None:
    write_test(tmp_path, "en", {"cat 0": "a", "dog 50": "a"}, {"a": "cat 10", "b": "bird 60"})
    write_test(tmp_path, "fr", {"chat 0": "a", "oiseau 61": "b"}, {"a": "chien 70", "b": "oiseau 60"})
    write_test(tmp_path, "de", {"Hund 9": "c"}, {"c": "Hund 80"})
    result = retrieval(Directions(), tmp_path)
    english, french, german = (result.scores[language] for language in ("en", "fr", "de"))
    # "dog 50" is nearer to "bird 60": rank 2. By words it finds nothing.
    assert english == pytest.approx({"queries": 2, "ndcg": (100 + SECOND) / 2, "p1": 50, "recall": 100, "bm25": 50})
    assert french["ndcg"] == pytest.approx((SECOND + 100) / 2) and french["bm25"] == 50
    assert french["to_en"] == pytest.approx(100)  # "chat 0" finds "cat 10", "oiseau 61" finds "bird 60"
    assert french["from_en"] == pytest.approx((SECOND + SECOND) / 2)
    assert german == pytest.approx({"queries": 1, "ndcg": 100, "p1": 100, "recall": 100, "bm25": 100})
    assert result.mean["p1"] == pytest.approx((50 + 50 + 100) / 3)
    assert result.mean["to_en"] == french["to_en"]


def test_first_hits_in_the_own_language_by_hand(tmp_path: Path) -> None:
    for place, language in enumerate(("en", "fr", "de", "es", "it")):
        queries = {f"{language} {10 * place + (9 if language == 'it' else 0)}": "a", f"{language} 180": language}
        write_test(tmp_path, language, queries, {"a": f"a {10 * place}", language: f"{language} 180"})
    result = retrieval(Directions(), tmp_path)
    assert {language: row["own"] for language, row in result.scores.items()} == dict.fromkeys(result.scores, 100)
    assert all(row["own_share"] == pytest.approx(20) for row in result.scores.values())
    write_test(tmp_path, "fr", {"fr 2": "a"}, {"a": "a 10"})  # nearer to the English passage
    assert [retrieval(Directions(), tmp_path).scores[language]["own"] for language in ("en", "fr")] == [100, 0]
    (tmp_path / "it.tsv").unlink()
    assert "own" not in retrieval(Directions(), tmp_path).scores["en"]


def test_bm25_by_hand() -> None:
    texts = ["red red cat", "red dog bird fish horse", "Müller"]
    passages = Passages(["a", "b", "c"], texts, np.zeros((3, 2), np.float32))
    ask = lambda *texts: rank_by_bm25(Queries([*texts], [], np.zeros((0, 2))), passages, 9)  # noqa: E731
    # "red": idf ln(1 + 1.5 / 2.5). Its weight is 2 * 2.5 / (2 + 1.5) = 1.43 in a, of average length, and less in b.
    assert ask("red", "dog red", "MULLER", "nothing") == [[0, 1], [1, 0], [2], []]


def test_vectors_and_words_are_those_of_a_search(mini_bundle: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder(mini_bundle, threads=1)
    texts = ["Anna sees Boris.", "Clara sees David.", "Elena sees Frank.", ""]
    passages = Passages(list("abcd"), texts, encoder.encode(texts))
    queries = Queries(texts[:3], list("abc"), encoder.encode(texts[:3]))
    assert [rows[0] for rows in rank_by_both(encoder, queries, passages, 2)] == [0, 1, 2]
    write_test(tmp_path, "en", dict(zip(texts, "abc", strict=False)), dict(zip("abc", texts, strict=False)))
    assert retrieval(encoder, tmp_path).scores["en"]["both"] == 100


def test_a_damaged_test_is_named(tmp_path: Path) -> None:
    write_test(tmp_path, "en", {"cat 0": "x"}, {"a": "cat 10"})
    raises(DataError, r"en\.tsv, line 1: passage 'x' is not in en\.passages\.tsv", retrieval, Directions(), tmp_path)
    write_lines(tmp_path / "en.tsv", ["cat 0"])
    raises(DataError, r"en\.tsv:1: 1 fields, expected 2", retrieval, Directions(), tmp_path)
    (tmp_path / "en.tsv").write_text("")
    raises(DataError, r"en\.tsv: empty; expected one query per line", retrieval, Directions(), tmp_path)
    raises(DataError, "expected XX.tsv and XX.passages.tsv", retrieval, Directions(), tmp_path / "nowhere")
