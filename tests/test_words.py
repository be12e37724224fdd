"""The contrast of a pair with its words, and the draw of hard negatives."""

import math

import pytest
import torch

from xsent.train.objectives.generative import Targets, uniform_targets
from xsent.train.objectives.words import sample_negatives, word_ctl

EVERY = torch.ones(5, dtype=torch.bool)


def test_word_ctl_asks_for_each_word_against_all_other_pieces() -> None:
    # Cosines with the query x: pieces 0, 1, 2 (the bag) 1, 0 and -1; the negatives 3 and 4: 0 and 1. Temperature 0.5.
    query = torch.tensor([[7.0, 0.0]])
    table = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.0]])
    bag = uniform_targets(torch.tensor([0, 1, 2, 1]), torch.tensor([4]))
    loss = word_ctl(query, table, bag, EVERY, temperature=0.5, negatives=100)
    against = math.exp(0) + math.exp(2)
    expected = sum(math.log((math.exp(s) + against) / math.exp(s)) for s in (2, 0, -2)) / 3
    assert loss.item() == pytest.approx(expected)


def test_a_piece_that_is_not_allowed_is_neither_positive_nor_negative() -> None:
    # Piece 0 stands in the bag and piece 4 outside it, neither is allowed: piece 1 (cosine 0) against 2 and 3.
    table = torch.tensor([[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.0]])
    allowed = torch.tensor([False, True, True, True, False])
    bag = uniform_targets(torch.tensor([0, 1]), torch.tensor([2]))
    loss = word_ctl(torch.tensor([[1.0, 0.0]]), table, bag, allowed, temperature=1.0, negatives=100)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1) + 1))


def test_word_ctl_is_a_mean_over_pairs_each_a_mean_over_its_words() -> None:
    generator = torch.Generator().manual_seed(0)
    query, table = torch.randn(2, 3, generator=generator), torch.randn(5, 3, generator=generator)
    bags = [torch.tensor([1, 2, 4]), torch.tensor([3])]

    def loss(queries: torch.Tensor, bags: list[torch.Tensor], chunk: int = 0) -> float:
        bag = uniform_targets(torch.cat(bags), torch.tensor([len(b) for b in bags]))
        return word_ctl(queries, table, bag, EVERY, temperature=0.1, negatives=9, chunk=chunk).item()

    expected = (loss(query[:1], bags[:1]) + loss(query[1:], bags[1:])) / 2
    assert loss(query, bags) == pytest.approx(expected)
    assert loss(query, bags, chunk=1) == pytest.approx(expected)


def test_word_ctl_teaches_query_words_and_negatives() -> None:
    query = torch.tensor([[1.0, 0.2]], requires_grad=True)
    table = torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], requires_grad=True)
    bag = uniform_targets(torch.tensor([0]), torch.tensor([1]))
    word_ctl(query, table, bag, torch.tensor([True, False, True]), temperature=0.1, negatives=2).backward()
    step = [(p - 0.01 * p.grad).detach() for p in (query, table)]
    before, after = (torch.cosine_similarity(q, t).tolist() for q, t in ((query, table), step))
    assert after[0] > before[0] and after[2] < before[2]
    assert torch.equal(table.grad[1], torch.zeros(2))  # not allowed


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
    generator = torch.Generator().manual_seed(0)
    allowed = torch.ones(40, dtype=torch.bool)
    allowed[:3] = False
    bag = Targets(torch.tensor([3, 10, 39]), torch.tensor([0, 0, 2]), torch.ones(3))
    seen: list[set[int]] = [set(), set(), set()]
    for _ in range(100):
        drawn, real = sample_negatives(torch.zeros(3, 40), bag, allowed, count=20, generator=generator)
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
    generator = torch.Generator().manual_seed(0)
    drawn, _ = sample_negatives(scores, none, torch.ones(3, dtype=torch.bool), count=1, generator=generator)
    shares = torch.bincount(drawn[:, 0], minlength=3) / 8000
    assert shares.tolist() == pytest.approx([0.125, 0.25, 0.625], abs=0.02)


def test_where_fewer_are_left_all_are_taken_and_the_rest_does_not_count() -> None:
    bag = Targets(torch.tensor([0, 1]), torch.tensor([0, 0]), torch.ones(2))
    drawn, real = sample_negatives(torch.zeros(1, 4), bag, torch.ones(4, dtype=torch.bool), count=3)
    assert sorted(drawn[real].tolist()) == [2, 3]
    assert drawn.shape == (1, 3)


def test_the_same_seed_draws_the_same_negatives() -> None:
    bag = Targets(torch.tensor([0]), torch.tensor([0]), torch.ones(1))
    draws = [
        sample_negatives(torch.zeros(1, 50), bag, torch.ones(50, dtype=torch.bool), count=5, generator=g)[0]
        for g in (torch.Generator().manual_seed(4), torch.Generator().manual_seed(4))
    ]
    assert torch.equal(*draws)


@pytest.mark.parametrize("chunk", [0, 1])
def test_everything_is_made_on_the_device_of_the_vectors(chunk: int) -> None:
    # As on a GPU: what is made without naming the inputs' device lands on another one, and the two do not mix.
    query, table = torch.ones(2, 3, requires_grad=True), torch.ones(5, 3)
    bag = uniform_targets(torch.tensor([1, 2, 4]), torch.tensor([1, 2]))
    with torch.device("meta"):
        word_ctl(query, table, bag, EVERY, temperature=0.1, negatives=2, chunk=chunk).backward()
    assert query.grad.device.type == "cpu"
