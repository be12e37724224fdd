"""Hiding one piece of one side of each pair, for the generative objectives (mao2021 section 3.2)."""

import torch
from torch import Tensor

from xsent.train.model import Tokens


def mask_one_side(
    sides: tuple[Tokens, Tokens], maskable: Tensor, mask_id: int, generator: torch.Generator
) -> tuple[tuple[Tokens, Tokens], Tensor, tuple[Tensor, Tensor]]:
    """Replace one random word piece of one random side of every pair.

    Args:
        sides: Both sides of a batch of B pairs.
        maskable: Which pieces may be hidden [V]: words, never punctuation.
        mask_id: The piece that stands in.
        generator: Source of chance.

    Returns:
        The two sides with pieces hidden; the hidden piece of each pair [B]; for each side, whether it was the one
        masked [B]. A pair whose chosen side has no maskable piece stays whole on both sides.
    """
    pick = torch.rand(len(sides[0].lengths), generator=generator) < 0.5
    hidden = torch.zeros_like(sides[0].lengths)
    masked: list[Tokens] = []
    chosen: list[Tensor] = []
    for side, wanted in zip(sides, (pick, ~pick), strict=True):
        # The largest of random scores over the maskable pieces of each sentence picks one of them evenly.
        scores = torch.rand(len(side.ids), generator=generator)
        scores = torch.where(maskable[side.ids], scores, -1.0)
        best = torch.full((len(side.lengths),), -1.0).scatter_reduce_(0, side.sentence, scores, "amax")
        wanted = wanted & (best >= 0)
        hit = (scores == best[side.sentence]) & wanted[side.sentence] & (scores >= 0)
        hidden[side.sentence[hit]] = side.ids[hit]
        masked.append(Tokens(torch.where(hit, mask_id, side.ids), side.lengths))
        chosen.append(wanted)
    return (masked[0], masked[1]), hidden, (chosen[0], chosen[1])
