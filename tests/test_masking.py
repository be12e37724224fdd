"""Masking hides one word piece of one side, never punctuation."""

import torch

from xsent.train.data.masking import mask_one_side
from xsent.train.model import Tokens

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
        after, hidden, masked = mask_one_side(before, MASKABLE, MASK, torch.Generator().manual_seed(seed))
        changed = [a.ids != b.ids for a, b in zip(after, before, strict=True)]
        for i in range(3):
            places = [
                (side, int(p)) for side in (0, 1) for p in (changed[side] & (before[side].sentence == i)).nonzero()
            ]
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


def test_the_same_seed_hides_the_same_pieces() -> None:
    runs = [mask_one_side(sides(), MASKABLE, MASK, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(runs[0][0], runs[1][0], strict=True))
