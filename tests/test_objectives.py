"""Objectives against values worked out by hand."""

import math

import pytest
import torch

from xsent.train.objectives.contrastive import align, false_negatives, sim
from xsent.train.objectives.generative import Targets, generative_loss, ugt_targets, uniform_targets

I2 = torch.eye(2)


def test_align_is_inner_product_cross_entropy_in_both_directions() -> None:
    # scores [[1, 0], [0, 1]]: every row and column has -log(e / (e + 1)) = log(1 + 1/e)
    assert align(I2, I2).item() == pytest.approx(2 * math.log(1 + math.exp(-1)))


def test_align_does_not_normalise_without_a_temperature() -> None:
    assert align(3 * I2, I2).item() == pytest.approx(2 * math.log(1 + math.exp(-3)))


def test_align_with_temperature_is_cosine_and_takes_a_margin() -> None:
    # true cosine 1 - 0.2, over 0.5 = 1.6; wrong cosine 0
    loss = align(7 * I2, 3 * I2, temperature=0.5, margin=0.2)
    assert loss.item() == pytest.approx(2 * math.log(1 + math.exp(-1.6)))


def test_align_directions_differ() -> None:
    u, v = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), I2
    # scores [[1, 0], [1, 0]]: rows log(1 + 1/e) and log(1 + e); columns log 2 each
    rows = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(1))) / 2
    assert align(u, v).item() == pytest.approx(rows + math.log(2))


def test_align_leaves_ignored_pairs_out() -> None:
    everything = ~torch.eye(2, dtype=torch.bool)
    assert align(I2, I2, ignore=everything).item() == pytest.approx(0.0)


def test_align_margin_needs_a_temperature() -> None:
    with pytest.raises(ValueError, match=r"margin = 0\.3"):
        align(I2, I2, margin=0.3)


def test_false_negatives_are_equal_sentences_and_near_ones() -> None:
    u = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.05, 1.0], [-1.0, 0.0]])
    group = torch.tensor([7, 8, 9, 7])
    by_group = torch.zeros(4, 4, dtype=torch.bool)
    by_group[0, 3] = by_group[3, 0] = True
    assert torch.equal(false_negatives(u, u, group, 1.0), by_group)
    by_group[1, 2] = by_group[2, 1] = True
    assert torch.equal(false_negatives(u, u, group, 0.9), by_group)


def test_sim_literal_form() -> None:
    u, v = I2, torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    difference = math.e / (math.e + 1) - 0.5
    expected = -4 * math.log(math.cos(math.pi / 2 * difference))
    assert sim(u, v, literal=True).item() == pytest.approx(expected)


def test_sim_masks_the_diagonal_and_takes_the_mean() -> None:
    # u: all pairwise cosines 0, so each row is (1/2, 1/2) off the diagonal.
    # v: the first two are equal (cosine 1), the third is at right angles: rows 1 and 2 are (e, 1) / (e + 1).
    u = torch.eye(3)
    v = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    difference = math.e / (math.e + 1) - 0.5
    expected = -4 * math.log(math.cos(math.pi / 2 * difference)) / 9
    assert sim(u, v).item() == pytest.approx(expected, rel=1e-5)


def test_sim_is_finite_where_the_distributions_exclude_each_other() -> None:
    u = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    loss = sim(u, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), temperature=0.001)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(u.grad).all()


def test_uniform_targets_count_a_repeated_piece_once() -> None:
    targets = uniform_targets(torch.tensor([5, 3, 5, 4]), torch.tensor([3, 1]))
    assert targets.ids.tolist() == [3, 5, 4]
    assert targets.sentence.tolist() == [0, 0, 1]
    assert targets.weight.tolist() == [0.5, 0.5, 1.0]


def test_ugt_gives_half_to_the_hidden_piece_of_masked_sentences_only() -> None:
    other = uniform_targets(torch.tensor([3, 5, 4]), torch.tensor([2, 1]))
    targets = ugt_targets(torch.tensor([3, 9]), torch.tensor([True, False]), other)
    mass = {}
    for piece, sentence, weight in zip(targets.ids, targets.sentence, targets.weight, strict=True):
        key = int(sentence), int(piece)
        mass[key] = mass.get(key, 0.0) + float(weight)
    # the hidden piece 3 also stands on the other side: 1/2 + 1/4
    assert mass == {(0, 3): 0.75, (0, 5): 0.25, (1, 4): 1.0}


def test_generative_loss_equals_dense_cross_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 4, generator=generator)
    table, bias = torch.randn(6, 4, generator=generator), torch.randn(6, generator=generator)
    targets = Targets(torch.tensor([1, 2, 5]), torch.tensor([0, 0, 1]), torch.tensor([0.5, 0.5, 1.0]))
    dense = torch.tensor([[0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]])
    expected = -(dense * (hidden @ table.T + bias).log_softmax(dim=1)).sum(dim=1).mean()
    assert torch.allclose(generative_loss(hidden, table, bias, targets), expected)


def test_generative_loss_of_an_ignorant_model_is_log_v() -> None:
    targets = Targets(torch.tensor([2]), torch.tensor([0]), torch.tensor([1.0]))
    loss = generative_loss(torch.zeros(1, 4), torch.ones(3, 4), torch.zeros(3), targets)
    assert loss.item() == pytest.approx(math.log(3))
