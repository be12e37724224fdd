"""Distillation objectives against values worked out by hand."""

import math

import numpy as np
import pytest
import torch

from xsent_train.losses import (
    FLAT,
    Whitening,
    contrastive_distil,
    distil,
    embedding_match,
    similarity_distil,
)

NONE = torch.zeros(0, 2)


def test_co_tells_the_translation_from_the_queue_and_not_from_the_batch() -> None:
    # Query x: its key y' has cosine 0.6, the queue 0, 1 and -1. Query y: key 1, queue 1, 0 and 0. Temperature 0.5.
    student, teacher = torch.tensor([[3.0, 0.0], [0.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 9.0]])
    queue = torch.tensor([[0.0, 1.0], [2.0, 0.0], [-1.0, 0.0]])
    first = math.log(1 + (math.exp(0) + math.exp(2) + math.exp(-2)) / math.exp(1.2))
    second = math.log(1 + (math.exp(2) + 2) / math.exp(2))
    assert contrastive_distil(student, teacher, queue, temperature=0.5).item() == pytest.approx((first + second) / 2)
    assert distil(student, teacher).item() == pytest.approx(1 - (0.6 + 1) / 2)  # whatever the lengths


def test_co_filter_leaves_out_what_is_too_near_to_that_querys_translation() -> None:
    # Cosines of the queue with the first key: 1, 0.8, 0; with the second: 0, 0.6, 1. Above 0.7 nothing counts.
    teacher = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    queue = torch.tensor([[2.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    loss = contrastive_distil(teacher, teacher, queue, temperature=1.0, ignore_above=0.7)
    first = math.log(1 + math.exp(0 - 1))
    second = math.log(1 + math.exp(0 - 1) + math.exp(0.6 - 1))
    assert loss.item() == pytest.approx((first + second) / 2)
    key = torch.tensor([[1.0, 4.0]])  # without a filter it stays; its cosine with itself is rounded to above 1
    assert contrastive_distil(key, key, key, temperature=0.05, ignore_above=1.0).item() == pytest.approx(math.log(2))


def test_co_tells_the_translation_from_the_batch_too_where_asked() -> None:
    # Keys of cosines 0.8 (first and second) and 1 (the third says what the first says); the queue is at 0 to all.
    teacher = torch.tensor([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [2.0, 0.0, 0.0]])
    queue = torch.tensor([[0.0, 0.0, 1.0]])
    first, second = math.log(1 + math.exp(-1) + math.exp(0.8 - 1)), math.log(1 + math.exp(-1) + 2 * math.exp(0.8 - 1))
    loss = contrastive_distil(teacher, teacher, queue, temperature=1.0, batch=True)
    assert loss.item() == pytest.approx((2 * first + second) / 3)
    filtered = contrastive_distil(teacher, teacher, queue, temperature=1.0, ignore_above=0.7, batch=True)
    assert filtered.item() == pytest.approx(math.log(1 + math.exp(-1)))


@pytest.mark.parametrize("queue", [NONE, torch.tensor([[1.0, 1.0]])])
def test_contrastive_distil_without_negatives_is_zero_and_can_go_backward(queue: torch.Tensor) -> None:
    student = torch.tensor([[1.0, 0.0]], requires_grad=True)
    loss = contrastive_distil(student, torch.ones(1, 2), queue, temperature=0.05, ignore_above=0.9)
    loss.backward()
    assert loss.item() == 0.0 and torch.equal(student.grad, torch.zeros(1, 2))


def test_only_the_student_learns_and_an_empty_sentence_teaches_nothing() -> None:
    student = torch.tensor([[1.0, 0.5], [0.0, 0.0]], requires_grad=True)
    teacher = torch.tensor([[0.0, 1.0], [1.0, 0.0]], requires_grad=True)
    queue = torch.tensor([[1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    loss = distil(student, teacher) + contrastive_distil(student, teacher, queue, temperature=0.05)
    loss.backward()
    assert teacher.grad is None and queue.grad is None
    assert torch.isfinite(loss) and torch.isfinite(student.grad).all()
    assert torch.equal(student.grad[1], torch.zeros(2))
    nearer = student.detach() - 0.01 * student.grad
    assert torch.cosine_similarity(nearer[:1], teacher[:1]) > torch.cosine_similarity(student[:1], teacher[:1])
    white = Whitening(torch.zeros(2), torch.eye(2))
    student, teacher = torch.randn(4, 2, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    match = embedding_match(student, teacher, white, contrast=1.0, temperature=0.1)
    for loss in (similarity_distil(student, student, teacher), match):
        student.grad = None
        loss.backward()
        assert student.grad.abs().sum() > 0 and teacher.grad is None


def test_similarity_distil_compares_all_cosines_with_the_teachers() -> None:
    # Cosines by row, the teacher's: 1, 0.6 and 0.6, 1; the student's: -0.6, 0 and 1, 0.8.
    teacher = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    english, translations = torch.tensor([[2.0, 0.0], [0.8, 0.6]]), torch.tensor([[-0.6, 0.8], [7.0, 0.0]])
    gaps = [-0.6 - 1, 0 - 0.6, 1 - 0.6, 0.8 - 1]
    expected = sum(gap**2 for gap in gaps) / 4
    assert similarity_distil(translations, english, teacher).item() == pytest.approx(expected)
    assert similarity_distil(teacher, 3 * teacher, teacher).item() == pytest.approx(0, abs=1e-12)


def test_whitening_makes_all_directions_vary_nearly_alike() -> None:
    generator = np.random.default_rng(1)
    turn, _ = np.linalg.qr(generator.normal(size=(3, 3)))
    vectors = generator.normal(size=(4000, 3)) * [5.0, 1.0, 0.001] @ turn + [1.0, -2.0, 3.0]
    whitening = Whitening.fit(torch.from_numpy(vectors))
    variances = np.linalg.eigvalsh(np.cov(vectors.T))
    white = whitening(torch.from_numpy(vectors)).numpy()
    assert np.allclose(white.mean(axis=0), 0, atol=1e-9)
    assert np.allclose(np.cov(white.T), np.diag(variances / (variances + FLAT * variances.mean())), atol=1e-9)


def test_rows_is_the_squared_error_and_the_contrast_in_the_white_space() -> None:
    # In the white space (minus (1, 0), times 2 and 1) the student: (2, 0), (0, 1); the teacher: (2, 1), (0, 3).
    student, teacher = torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    whitening = Whitening(torch.tensor([1.0, 0.0]), torch.diag(torch.tensor([2.0, 1.0])))
    error = (0 + 1 + 0 + 4) / 4
    plain = embedding_match(student, teacher, whitening, contrast=0.0, temperature=1.0)
    assert plain.item() == pytest.approx(error)
    # Cosines by row: 2 / sqrt 5 and 0; 1 / sqrt 5 and 1. Each finds its own among its row, and among its column.
    cosines = np.array([[2 / 5**0.5, 0.0], [1 / 5**0.5, 1.0]]) / 0.5
    own = np.diag(cosines)
    contrast = [np.log(np.exp(cosines).sum(axis=axis)) - own for axis in (0, 1)]
    loss = embedding_match(student, teacher, whitening, contrast=3.0, temperature=0.5)
    assert loss.item() == pytest.approx(error + 3 * np.mean(contrast))
    alone = embedding_match(
        student, teacher, whitening, contrast=3.0, temperature=0.5, ignore=~torch.eye(2, dtype=torch.bool)
    )
    assert alone.item() == pytest.approx(error)
