"""Masking hides words, never punctuation: one piece of one side of each pair, or a share of all tokens."""

import torch

from xsent_train.data.masking import NOT_HIDDEN, hide, join_pairs, label, mask_one_side
from xsent_train.objectives import Objectives
from xsent_train.tokens import Tokens

MASK = 2
MASKABLE = torch.tensor([False, False, False, False] + [True] * 6)  # 3 is punctuation


def sides() -> tuple[Tokens, Tokens]:
    english = Tokens(torch.tensor([4, 5, 3, 3, 6, 7, 8]), torch.tensor([3, 1, 3]))
    other = Tokens(torch.tensor([9, 3, 9, 4, 5]), torch.tensor([2, 1, 2]))
    return english, other


def test_one_piece_of_one_side_is_hidden_and_remembered() -> None:
    seen = set()
    for seed in range(200):
        before = sides()
        after, hidden, masked = mask_one_side(before, MASKABLE, torch.Generator().manual_seed(seed))
        changed = [a.ids != b.ids for a, b in zip(after, before, strict=True)]
        for i in range(3):
            here = [changed[side] & (before[side].sentence == i) for side in (0, 1)]
            places = [(side, int(place)) for side in (0, 1) for place in here[side].nonzero()]
            assert len(places) == int(masked[0][i]) + int(masked[1][i]) <= 1
            for side, place in places:
                assert masked[side][i]
                assert hidden[i] == before[side].ids[place] != 3
                assert after[side].ids[place] == MASK
                seen.add((i, side, place))
    # every word of both sides gets its turn; the sentence that is punctuation alone stays whole
    assert {place for i, side, place in seen if side == 0 and i == 0} == {0, 1}
    assert {side for i, side, _ in seen if i == 1} == {1}
    assert {place for i, side, place in seen if side == 0 and i == 2} == {4, 5, 6}


def test_a_share_of_the_words_is_chosen_and_shown_as_bert_does() -> None:
    """Of 30,000 tokens, in turn of pieces 2 (the mask), 3 (punctuation), 4 and 5."""
    ids = torch.tensor([2, 3, 4, 5]).repeat(7500)
    before = Tokens(ids.clone(), torch.full((3000,), 10))
    after, labels = label(before, MASKABLE, 0.2, torch.Generator().manual_seed(0))
    positions = (labels != NOT_HIDDEN).nonzero()[:, 0]
    assert torch.equal(before.ids, ids)  # not changed in place
    ids = labels[positions]
    assert torch.equal(after.lengths, before.lengths)
    assert torch.equal(ids, before.ids[positions])
    assert set(ids.tolist()) == {4, 5}  # neither masks nor punctuation are chosen
    assert abs(len(positions) / 15000 - 0.2) < 0.01
    rest = torch.ones(len(before.ids), dtype=torch.bool)
    rest[positions] = False
    assert torch.equal(after.ids[rest], before.ids[rest])
    shown = after.ids[positions]
    # A random piece is the original one time in six.
    for share, expected in (((shown == MASK), 0.8), ((shown == ids), 0.1 + 0.1 / 6)):
        assert abs(share.double().mean() - expected) < 0.02
    assert set(shown.tolist()) == {2, 4, 5, 6, 7, 8, 9}
    # Where nothing can be chosen nothing is.
    empty = Tokens(torch.zeros(0, dtype=torch.int64), torch.tensor([0, 0]))
    for tokens, maskable in ((empty, MASKABLE), (before, torch.zeros(10, dtype=torch.bool))):
        after, labels = label(tokens, maskable, 0.5, torch.Generator())
        assert torch.equal(after.ids, tokens.ids)
        assert (labels == NOT_HIDDEN).all()


def test_pairs_are_joined_english_first_each_side_cut_at_half_the_length() -> None:
    joined = join_pairs(sides(), 100)
    assert joined.lengths.tolist() == [5, 2, 5]
    assert joined.ids.tolist() == [4, 5, 3, 9, 3, 3, 9, 6, 7, 8, 4, 5]
    english = Tokens(torch.tensor([1, 2, 3, 4, 5]), torch.tensor([4, 0, 1]))
    joined = join_pairs((english, Tokens(torch.tensor([6, 7, 8, 9]), torch.tensor([1, 3, 0]))), 5)
    assert joined.lengths.tolist() == [3, 2, 1]
    assert joined.ids.tolist() == [1, 2, 6, 7, 8, 5]


def test_a_copy_in_random_order_takes_the_place_of_a_missing_translation() -> None:
    english, other = sides()
    there = torch.tensor([False, True, False])
    kept = Tokens(other.ids[there[other.sentence]], other.lengths * there)
    objectives = Objectives(mlm={"share": 0.9}, tlm=1, sentence_ctl={"shuffled": True})
    orders = set()
    for seed in range(50):
        hiding = hide((english, kept), objectives, MASKABLE, 20, torch.Generator().manual_seed(seed))
        first, second = hiding.read
        assert second.tokens.lengths.tolist() == [3, 1, 3]
        parts = second.tokens.ids.split([3, 1, 3])
        assert sorted(parts[0].tolist()) == [3, 4, 5] and sorted(parts[2].tolist()) == [6, 7, 8]
        labels = second.labels.split([3, 1, 3])
        assert int(parts[1] if labels[1] == NOT_HIDDEN else labels[1]) == 9
        orders.add(tuple(parts[2].tolist()))
        assert (first.labels != NOT_HIDDEN).any() and (torch.cat(labels[::2]) == NOT_HIDDEN).all()
        assert hiding.joined.tokens.lengths.tolist() == [3, 2, 3]  # a copy is no translation to read from
    assert len(orders) == 6
