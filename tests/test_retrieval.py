"""P@1, with an encoder whose vectors are written down."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xsent.evaluation.translation import SearchScore, retrieve

ANGLES = {"a": 0, "b": 30, "c": 60, "d": 90, "A": 1, "B": 29, "C": 80, "D": 89}


class Angles:
    """Every sentence is a direction in the plane."""

    def encode(self, sentences: list[str], /) -> NDArray[np.float64]:
        """Vectors [n, 2]."""
        radians = np.radians([ANGLES[sentence] for sentence in sentences])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def test_by_hand() -> None:
    found = retrieve(Angles(), ["A", "B", "C", "D"], iter("abcd"), range(4))
    assert found == SearchScore(queries=4, candidates=4, correct=3, same_text=3)  # C, at 80, is nearer to d than to c
    assert found.p_at_1 == 75


def test_gold_rows_may_be_any() -> None:
    assert retrieve(Angles(), ["D", "A"], "abcd", [3, 0]).correct == 2


def test_same_text_at_another_row_is_told_apart() -> None:
    found = retrieve(Angles(), ["A"], "aab", [1])
    assert (found.correct, found.same_text) == (0, 1)
    assert found.p_at_1_same_text == 100


def test_candidates_are_encoded_in_blocks() -> None:
    sizes = []

    class Counting(Angles):
        def encode(self, sentences: list[str], /) -> NDArray[np.float64]:
            sizes.append(len(sentences))
            return super().encode(sentences)

    def candidates() -> Iterator[str]:
        yield from "b" * 9999
        yield "a"

    found = retrieve(Counting(), ["A"], candidates(), [9999])
    assert found == SearchScore(1, 10_000, 1, 1)
    assert max(sizes) <= 4096
