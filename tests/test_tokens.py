"""Groups of sentences that attend side by side."""

import pytest
import torch
from conftest import MakeEncoder

from xsent.train import model
from xsent.train.tokens import Packing, Tokens, group_of, group_sizes, pack


def test_a_group_is_of_nearly_one_length() -> None:
    # 4 takes up to 1.2 x 4 + 4 = 8.8, 9 up to 14.8, 20 up to 28, 29 up to 38.8
    assert group_sizes([4, 5, 8, 9, 14, 20, 28, 29]) == [3, 2, 2, 1]
    assert group_sizes([0, 0, 3, 4]) == [4]
    assert group_sizes([]) == []


def test_tokens_go_to_their_group_and_back() -> None:
    lengths = torch.tensor([30, 2, 31, 0, 3])
    packing = pack(lengths)
    assert [group.shape for group in packing.groups] == [(3, 3), (2, 31)]
    assert [group.tokens for group in packing.groups] == [5, 61]
    assert packing.order is not None and packing.back is not None
    # Sentences of 0, 2, 3, 30 and 31 tokens: the second, the fifth, the first and the third of the batch.
    assert packing.order.tolist() == [30, 31, 63, 64, 65, *range(30), *range(32, 63)]
    assert torch.equal(packing.order[packing.back], torch.arange(66))


def test_sentences_of_one_length_need_no_mask() -> None:
    assert group_of(torch.tensor([4, 4, 4])).mask is None
    mask = group_of(torch.tensor([4, 3])).mask
    assert mask is not None and mask.tolist() == [[True] * 4, [True] * 3 + [False]]


def test_groups_change_no_state(make_encoder: MakeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = torch.tensor([40, 1, 7, 0, 64, 8, 7, 33])
    tokens = Tokens(torch.arange(int(lengths.sum())) % 50, lengths)
    encoder = make_encoder()
    grouped = encoder.states(tokens)
    monkeypatch.setattr(model, "pack", lambda lengths: Packing([group_of(lengths)]))
    for a, b in zip(grouped, encoder.states(tokens), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
