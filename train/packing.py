"""Which sentences of a batch attend side by side: those of nearly one length, so that little is spent on padding."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# A group's longest sentence has at most STRETCH times the tokens of its shortest, and SLACK more.
STRETCH, SLACK = 1.2, 4


class Group(NamedTuple):
    """Sentences whose tokens lie together.

    Attributes:
        tokens: How many tokens they have.
        where: For each token its sentence in the group and its position there, 2 x [tokens].
        mask: Real positions [b, T]; None where all sentences are equally long.
        shape: Sentences and the tokens of the longest (b, T).
    """

    tokens: int
    where: tuple[Tensor, Tensor]
    mask: Tensor | None
    shape: tuple[int, int]


class Packing(NamedTuple):
    """The tokens of a batch in groups.

    Attributes:
        groups: The groups.
        order: The token of the batch at each place [N]; None where they stay as they are.
        back: The place of each token of the batch [N].
    """

    groups: Sequence[Group]
    order: Tensor | None
    back: Tensor | None


def pack(lengths: Tensor) -> Packing:
    """Put the sentences of a batch into groups of nearly one length.

    On a processor attention over padding is what costs; on a GPU many small calls are, so that all stay together there.

    Args:
        lengths: Tokens of each sentence [B].
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


def token_positions(lengths: Tensor) -> Tensor:
    """The position of each token in its sentence, sentence after sentence [N]."""
    start = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    return torch.arange(len(start), device=lengths.device) - start


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
