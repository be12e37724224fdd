"""What a vector says of pieces, predicted or told from others, against values worked out by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from xsent_train.losses import (
    Targets,
    generative_loss,
    sample_negatives,
    smlm_targets,
    token_loss,
    ugt_targets,
    uniform_targets,
    word_ctl,
)

EVERY = torch.ones(5, dtype=torch.bool)
TABLE = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.0]])


def listed(targets: Targets) -> list[tuple[int, int, float]]:
    """Piece, sentence and mass of each entry."""
    return list(zip(*(part.tolist() for part in (targets.ids, targets.sentence, targets.weight)), strict=True))


def test_targets_by_hand() -> None:
    # uniform: a repeated piece counts once, an empty sentence has none
    targets = uniform_targets(torch.tensor([5, 3, 5, 4]), torch.tensor([3, 1]))
    assert listed(targets) == [(3, 0, 0.5), (5, 0, 0.5), (4, 1, 1.0)]
    targets = uniform_targets(torch.tensor([65_535, 4]), torch.tensor([0, 2, 0]))
    assert listed(targets) == [(4, 1, 0.5), (65_535, 1, 0.5)]
    # smlm: all mass on the hidden piece
    targets = smlm_targets(torch.tensor([7, 0, 7]), torch.tensor([True, False, True]))
    assert listed(targets) == [(7, 0, 1.0), (7, 2, 1.0)]
    # ugt: half to the hidden piece of masked sentences; it also stands on the other side: 1/2 + 1/4
    other = uniform_targets(torch.tensor([3, 5, 4]), torch.tensor([2, 1]))
    targets = ugt_targets(torch.tensor([3, 9]), torch.tensor([True, False]), other)
    assert listed(targets) == [(3, 0, 0.25), (5, 0, 0.25), (4, 1, 1.0), (3, 0, 0.5)]
    other = uniform_targets(torch.tensor([4]), torch.tensor([1, 0]))  # all to the hidden one where nothing is else
    targets = ugt_targets(torch.tensor([3, 9]), torch.tensor([True, True]), other)
    assert listed(targets) == [(4, 0, 0.5), (3, 0, 0.5), (9, 1, 1.0)]


def test_generative_loss_equals_dense_cross_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 4, generator=generator)
    table, bias = torch.randn(6, 4, generator=generator), torch.randn(6, generator=generator)
    targets = Targets(torch.tensor([1, 2, 5]), torch.tensor([0, 0, 1]), torch.tensor([0.5, 0.5, 1.0]))
    dense = torch.tensor([[0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]])
    expected = -(dense * (hidden @ table.T + bias).log_softmax(dim=1)).sum(dim=1).mean()
    assert torch.allclose(generative_loss(hidden, table, bias, targets), expected)


def test_a_sentence_without_target_predicts_nothing() -> None:
    targets = Targets(torch.tensor([2]), torch.tensor([1]), torch.tensor([1.0]))
    hidden = torch.zeros(2, 4, requires_grad=True)
    table = torch.eye(3, 4)
    loss = generative_loss(hidden, table, torch.zeros(3), targets)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3) / 2)  # the mean is over both sentences
    assert hidden.grad.tolist() == [[0] * 4, pytest.approx([1 / 6, 1 / 6, -1 / 3, 0])]
    nothing = smlm_targets(torch.tensor([0, 0]), torch.tensor([False, False]))  # nor does a whole batch
    hidden.grad = None
    loss = generative_loss(hidden, table, torch.zeros(3), nothing)
    loss.backward()
    assert loss.item() == 0.0 and not hidden.grad.any()


def leaves(sentences: int, dim: int = 2, pieces: int = 37) -> list[Tensor]:
    """Hidden vectors, table and bias in double precision."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((sentences, dim), (pieces, dim), (pieces,))
    return [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


def test_token_loss_is_the_mean_cross_entropy_of_the_hidden_tokens() -> None:
    hidden, table, bias = leaves(5)
    ids = torch.tensor([3, 36, 3, 0, 11])
    expected = F.cross_entropy(hidden @ table.T + bias, ids)
    assert torch.allclose(token_loss(hidden, table, bias, ids), expected, rtol=1e-14)
    nothing = token_loss(hidden[:0], table, bias, ids[:0])
    nothing.backward()
    assert nothing.item() == 0.0 and not table.grad.any()


def test_word_ctl_asks_for_each_word_against_all_other_pieces_that_are_allowed() -> None:
    # Cosines with the query x: pieces 0, 1, 2 (the bag) 1, 0 and -1; the negatives 3 and 4: 0 and 1. Temperature 0.5.
    query = torch.tensor([[7.0, 0.0]])
    bag = uniform_targets(torch.tensor([0, 1, 2, 1]), torch.tensor([4]))
    loss = word_ctl(query, TABLE, bag, EVERY, temperature=0.5, negatives=100)
    against = math.exp(0) + math.exp(2)
    expected = sum(math.log((math.exp(s) + against) / math.exp(s)) for s in (2, 0, -2)) / 3
    assert loss.item() == pytest.approx(expected)
    # Piece 0 stands in the bag and piece 4 outside it, neither is allowed: piece 1 (cosine 0) against 2 and 3.
    allowed = torch.tensor([False, True, True, True, False])
    bag = uniform_targets(torch.tensor([0, 1]), torch.tensor([2]))
    loss = word_ctl(query, TABLE, bag, allowed, temperature=1.0, negatives=100)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1) + 1))


def test_word_ctl_is_a_mean_over_pairs_each_a_mean_over_its_words() -> None:
    generator = torch.Generator().manual_seed(0)
    query, table = torch.randn(2, 3, generator=generator), torch.randn(5, 3, generator=generator)
    bags = [torch.tensor([1, 2, 4]), torch.tensor([3])]

    def loss(queries: torch.Tensor, bags: list[torch.Tensor]) -> float:
        bag = uniform_targets(torch.cat(bags), torch.tensor([len(b) for b in bags]))
        return word_ctl(queries, table, bag, EVERY, temperature=0.1, negatives=9).item()

    expected = (loss(query[:1], bags[:1]) + loss(query[1:], bags[1:])) / 2
    assert loss(query, bags) == pytest.approx(expected)


def test_word_ctl_of_empty_pairs_and_full_bags_is_finite() -> None:
    # Pair 0 has no words and no vector; pair 1 holds every piece, so that nothing is left to be told apart from.
    query = torch.tensor([[0.0, 0.0], [1.0, 2.0]], requires_grad=True)
    table = torch.tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True)
    bag = uniform_targets(torch.tensor([0, 1]), torch.tensor([0, 2]))
    loss = word_ctl(query, table, bag, torch.tensor([True, True]), temperature=0.05, negatives=4)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(query.grad, torch.zeros(2, 2)) and torch.equal(table.grad, torch.zeros(2, 2))


def test_negatives_are_distinct_allowed_and_never_in_the_bag() -> None:
    torch.manual_seed(0)
    allowed = torch.ones(40, dtype=torch.bool)
    allowed[:3] = False
    bag = Targets(torch.tensor([3, 10, 39]), torch.tensor([0, 0, 2]), torch.ones(3))
    seen: list[set[int]] = [set(), set(), set()]
    for _ in range(100):
        drawn, real = sample_negatives(torch.zeros(3, 40), bag, allowed, count=20)
        assert real.all() and drawn.shape == (3, 20)
        for pieces, row in zip(seen, drawn.tolist(), strict=True):
            assert len(set(row)) == 20
            pieces.update(row)
    everything = set(range(3, 40))
    assert seen == [everything - {3, 10}, everything, everything - {39}]


def test_hard_negatives_are_drawn_more_often_in_proportion() -> None:
    # One of three, weights 1 : 2 : 5; 8,000 draws have a deviation of at most 0.0056.
    scores = torch.tensor([1.0, 2.0, 5.0]).log().expand(8000, 3)
    none = Targets(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    torch.manual_seed(0)
    drawn, _ = sample_negatives(scores, none, torch.ones(3, dtype=torch.bool), count=1)
    shares = torch.bincount(drawn[:, 0], minlength=3) / 8000
    assert shares.tolist() == pytest.approx([0.125, 0.25, 0.625], abs=0.02)
