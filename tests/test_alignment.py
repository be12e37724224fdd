"""Documents aligned one to one."""

import numpy as np
import pytest

from xsent.mining.bitext import DocumentPair, align_documents, recall
from xsent.mining.margin import margin_scores


def brute_force(a: np.ndarray, b: np.ndarray, margin: str, k: int) -> list[tuple[int, int]]:
    """Greedy over all pairs that are among the k nearest of either side."""
    cosines = margin_scores(a, b, margin="absolute")
    scores = margin_scores(a, b, margin=margin, k=k)
    near = {(i, j) for i in range(len(a)) for j in np.argsort(-cosines[i], kind="stable")[:k]}
    near |= {(i, j) for j in range(len(b)) for i in np.argsort(-cosines[:, j], kind="stable")[:k]}
    pairs: list[tuple[int, int]] = []
    for i, j in sorted(near, key=lambda pair: (-scores[pair], pair)):
        if all(i != x and j != y for x, y in pairs):
            pairs.append((int(i), int(j)))
    return pairs


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_greedy_over_the_candidates(margin: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(15, 4)) + 1, random.normal(size=(12, 4)) + 1
    found = align_documents(a, b, margin=margin, k=3)
    assert [(pair.a, pair.b) for pair in found] == brute_force(a, b, margin, 3)
    assert [pair.score for pair in found] == sorted((pair.score for pair in found), reverse=True)


def test_a_document_whose_best_is_taken_gets_its_second() -> None:
    a = np.array([[1, 0, 0], [0.9, 0.3, 0]])
    b = np.array([[1, 0, 0], [0, 1, 0.5]])
    pairs = align_documents(a, b, margin="absolute", k=2)
    assert [(pair.a, pair.b) for pair in pairs] == [(0, 0), (1, 1)]
    assert pairs[0].score == pytest.approx(1)


def test_empty_documents_take_no_part() -> None:
    a = np.array([[0, 0], [0, 1.0], [1, 0]])
    b = np.array([[1.0, 0], [0, 0], [0, 1]])
    pairs = align_documents(a, b, k=2)
    assert {(pair.a, pair.b) for pair in pairs} == {(1, 2), (2, 0)}


def test_more_neighbours_than_documents() -> None:
    with pytest.raises(ValueError, match="k = 4 neighbours, but one side has only 2 documents that are not empty"):
        align_documents(np.array([[1.0], [2], [0]]), np.ones((9, 1)))
    assert len(align_documents(np.eye(2), np.eye(2), margin="absolute")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"), [({"margin": "best"}, "margin = 'best'"), ({"k": 0}, "k = 0 must be at least 1")]
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        align_documents(np.eye(5), np.eye(5), **arguments)  # type: ignore[arg-type]


def test_one_side_is_empty() -> None:
    with pytest.raises(ValueError, match="one side has no"):
        align_documents(np.zeros((3, 2)), np.eye(2))


def test_dimensions_must_agree() -> None:
    with pytest.raises(ValueError, match="dimensions"):
        align_documents(np.eye(5), np.eye(6))


def test_recall_by_hand() -> None:
    pairs = [DocumentPair(0, 0, 1.0), DocumentPair(1, 2, 0.9), DocumentPair(2, 1, 0.8)]
    assert recall(pairs, {(0, 0), (1, 1), (2, 2), (2, 1)}) == 50
    with pytest.raises(ValueError, match="no true pair"):
        recall(pairs, set())
