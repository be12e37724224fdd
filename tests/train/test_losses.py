"""Contrastive and distillation objectives against values worked out by hand."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from xsent_train.losses import (
    FLAT,
    Whitening,
    align,
    contrastive_distil,
    distil,
    embedding_match,
    false_negatives,
    sentence_ctl,
    sim,
    similarity_distil,
    unit,
)

I2, X_X = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])

Objective = Callable[..., Tensor]


def log_share(*wrong: float) -> float:
    """What a row costs whose true score is so much above the others."""
    return math.log(1 + sum(math.exp(-gap) for gap in wrong))


@pytest.mark.parametrize(
    ("u", "v", "settings", "expected"),
    [
        (I2, I2, {}, 2 * log_share(1)),  # scores [[1, 0], [0, 1]], in both directions
        (3 * I2, I2, {}, 2 * log_share(3)),  # without a temperature inner products
        (7 * I2, 3 * I2, {"temperature": 0.5, "margin": 0.2}, 2 * log_share(1.6)),  # cosines: 1 - 0.2 over 0.5, and 0
        (X_X, I2, {}, (log_share(1) + log_share(-1)) / 2 + math.log(2)),  # rows [1, 0] twice, columns alike
        (I2, I2, {"ignore": ~torch.eye(2, dtype=torch.bool)}, 0),
    ],
)
def test_align_by_hand(u: Tensor, v: Tensor, settings: dict[str, object], expected: float) -> None:
    assert align(u, v, **settings).item() == pytest.approx(expected)  # type: ignore[arg-type]


def test_false_negatives_are_equal_sentences_and_near_ones() -> None:
    u = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.05, 1.0], [-1.0, 0.0]])
    group = torch.tensor([7, 8, 9, 7])
    by_group = torch.zeros(4, 4, dtype=torch.bool)
    by_group[0, 3] = by_group[3, 0] = True
    assert torch.equal(false_negatives(u, u, group, 1.0), by_group)
    by_group[1, 2] = by_group[2, 1] = True
    assert torch.equal(false_negatives(u, u, group, 0.9), by_group)


def test_sim_by_hand() -> None:
    # Rows (e, 1) / (e + 1) and (1/2, 1/2); all four places count as the literal form has it.
    angle = math.pi / 2 * (math.e / (math.e + 1) - 0.5)
    expected = -4 * math.log(math.cos(angle))
    assert sim(I2, X_X, literal=True).item() == pytest.approx(expected)
    # u: all pairwise cosines 0, so each row is (1/2, 1/2) off the diagonal, which is masked.
    # v: the first two are equal (cosine 1), the third is at right angles: rows 1 and 2 are (e, 1) / (e + 1).
    v = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert sim(torch.eye(3), v).item() == pytest.approx(expected / 9, rel=1e-5)
    # distributions that exclude each other
    u = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    loss = sim(u, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), temperature=0.001)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(u.grad).all()


def test_sentence_ctl_by_hand() -> None:
    # u1 = x, u2 = y, v1 = v2 = x; temperature 1.
    # u1: true v1 1; u2 0, v2 1.   u2: true v2 0; u1 0, v1 0.   v1: true u1 1; u2 0, v2 1.   v2: true u2 0; u1 1, v1 1.
    x, y = [1.0, 0.0], [0.0, 1.0]
    loss = sentence_ctl(torch.tensor([x, y]), torch.tensor([x, x]), temperature=1.0)
    first = math.log((2 * math.e + 1) / math.e)
    expected = (first + math.log(3) + first + math.log(2 * math.e + 1)) / 2
    assert loss.item() == pytest.approx(expected)
    u, v = torch.eye(6)[:3], torch.eye(6)[[0, 4, 2]]
    ignore = torch.zeros(3, 3, dtype=torch.bool)  # in all four blocks
    ignore[0, 1] = ignore[1, 0] = True
    # Cosines: u1 v1 and u3 v3 are 1, everything else 0. Pairs 1 and 2 have but pair 3 for negatives, pair 3 has both.
    one, two, three = math.log(1 + 2 / math.e), math.log(3), math.log(1 + 4 / math.e)
    loss = sentence_ctl(u, v, temperature=1.0, ignore=ignore)
    assert loss.item() == pytest.approx(2 * (one + two + three) / 3)


def test_unit_leaves_empty_sentences_alone() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-20, 0.0]], requires_grad=True)
    rows = unit(x)
    rows.sum().backward()
    assert rows.tolist() == [pytest.approx([0.6, 0.8]), [0.0, 0.0], [0.0, 0.0]]
    # d(x1 + x2)/|x| = (1 - (0.6 + 0.8) * unit) / 5
    assert x.grad.tolist() == [pytest.approx([0.032, -0.024]), [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("objective", [align, sentence_ctl, sim])
def test_an_empty_sentence_keeps_gradients_small(objective: Objective) -> None:
    u = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]], requires_grad=True)
    v = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, -0.5]], requires_grad=True)
    loss = objective(u, v, temperature=0.05)
    loss.backward()
    assert torch.isfinite(loss)
    for side in (u, v):
        assert torch.isfinite(side.grad).all() and side.grad.abs().max() < 100
    if objective is not align:  # one pair alone is nothing
        u = torch.tensor([[1.0, 2.0]], requires_grad=True)
        loss = objective(u, torch.ones(1, 2), temperature=0.05)
        loss.backward()
        assert loss.item() == pytest.approx(0.0, abs=1e-5) and torch.allclose(u.grad, torch.zeros(1, 2), atol=1e-5)


SEED = torch.Generator().manual_seed(3)
U, V, TARGET, QUEUE = (torch.randn(*shape, 5, generator=SEED) for shape in ((3, 6), (3, 6), (6,), (9,)))
SAME = torch.eye(6).roll(1, 0) + torch.eye(6).roll(1, 1) > 0


@pytest.mark.parametrize(
    "loss",
    [
        lambda u, v: align(u, v, temperature=0.1, margin=0.1, ignore=SAME),
        lambda u, v: sentence_ctl(u, v, temperature=0.1, ignore=SAME),
        lambda u, v: sim(u, v, temperature=0.1),
        lambda u, v: sim(u, v, literal=True),
        lambda u, v: distil(u, TARGET),
        lambda u, v: similarity_distil(u, v, TARGET),
        lambda u, v: contrastive_distil(u, TARGET, QUEUE, temperature=0.1, ignore_above=0.4, batch=TARGET),
    ],
)
def test_depths_at_once_have_the_losses_of_each(loss: Objective) -> None:
    at_once = loss(U, V)
    assert at_once.shape == (3,)
    torch.testing.assert_close(at_once, torch.stack([loss(u, v) for u, v in zip(U, V, strict=True)]))


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
    loss = contrastive_distil(teacher, teacher, queue, temperature=1.0, batch=teacher)
    assert loss.item() == pytest.approx((2 * first + second) / 3)
    filtered = contrastive_distil(teacher, teacher, queue, temperature=1.0, ignore_above=0.7, batch=teacher)
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
    both = similarity_distil(torch.stack([translations, english]), english, teacher)
    assert both.tolist() == pytest.approx([expected, similarity_distil(english, english, teacher).item()])


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
