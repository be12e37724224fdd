"""Which sentences of a batch attend side by side: those of nearly one length, so that little is spent on padding."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from xsent.train.tokens import token_positions

# A group's longest sentence has at most STRETCH times the tokens of its shortest, and SLACK more.
STRETCH, SLACK = 1.2, 4


class Group(NamedTuple):
    """Sentences whose tokens lie together."""

    tokens: int  # how many they have
    where: tuple[Tensor, Tensor]  # for each token its sentence in the group and its position there, 2 x [tokens]
    mask: Tensor | None  # real positions [b, T]; None where all sentences are equally long
    shape: tuple[int, int]  # sentences and the tokens of the longest (b, T)


class Packing(NamedTuple):
    """The tokens of a batch in groups."""

    groups: Sequence[Group]
    order: Tensor | None  # the token of the batch at each place [N]; None where they stay as they are
    back: Tensor | None  # the place of each token of the batch [N]


def pack(lengths: Tensor) -> Packing:
    """Put the sentences of a batch, by their lengths [B], into groups of nearly one length.

    On a processor attention over padding is what costs; on a GPU many small calls are, so that all stay together there.
    """
    device = lengths.device
    if device.type != "cpu":
        return Packing([group_of(lengths)], None, None)
    ranks = lengths.argsort(stable=True)
    ascending = lengths[ranks]
    groups = [group_of(part) for part in torch.split(ascending, group_sizes(ascending.tolist()))]
    if len(groups) == 1:
        return Packing([group_of(lengths)], None, None)
    first = (lengths.cumsum(0) - lengths)[ranks]
    order = torch.repeat_interleave(first, ascending) + token_positions(ascending)
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order))
    return Packing(groups, order, back)


def group_sizes(lengths: Sequence[int]) -> list[int]:
    """How many sentences each group takes, of lengths that ascend."""
    sizes: list[int] = []
    limit = -1.0
    for length in lengths:
        if length > limit:
            sizes.append(0)
            limit = STRETCH * length + SLACK
        sizes[-1] += 1
    return sizes


def group_of(lengths: Tensor) -> Group:
    """Some sentences as a group."""
    sentence, position = torch.repeat_interleave(lengths), token_positions(lengths)
    # At least one position a sentence: a softmax over none would be NaN.
    longest = max(int(lengths.max()), 1) if len(lengths) else 1
    even = len(sentence) == longest * len(lengths)
    mask = None
    if not even:
        mask = torch.arange(longest, device=lengths.device) < lengths.clamp(min=1)[:, None]
    return Group(len(sentence), (sentence, position), mask, (len(lengths), longest))
