"""Hiding pieces, for the objectives that ask what stood there: one of each pair (SMLM, UGT), or a share (MLM, TLM).

Pieces are hidden on the CPU, where batches are made. Shapes: B pairs, N tokens, V pieces, M chosen tokens.
"""

import torch
from torch import Tensor

from xsent.train.tokens import Tokens

# Of the tokens that are chosen, as in BERT (Devlin et al. 2019): the share that becomes [MASK], the share that becomes
# any piece; the rest stays, so that the encoder must have a mind about tokens that it can see.
BECOME_MASK, BECOME_ANY = 0.8, 0.1


def mask_one_side(
    sides: tuple[Tokens, Tokens], maskable: Tensor, mask_id: int, generator: torch.Generator
) -> tuple[tuple[Tokens, Tokens], Tensor, tuple[Tensor, Tensor]]:
    """Replace one random word piece of one random side of every pair.

    Pieces that are not `maskable` [V], as punctuation, are never hidden.

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
        # In double precision, so that no two of a sentence are equal.
        scores = torch.rand(len(side.ids), generator=generator, dtype=torch.float64)
        scores = scores.masked_fill(~maskable[side.ids], -1.0)
        best = scores.new_full((len(side.lengths),), -1.0).scatter_reduce_(0, side.sentence, scores, "amax")
        wanted = wanted & (best >= 0)
        hit = (scores == best[side.sentence]) & wanted[side.sentence] & (scores >= 0)
        hidden[side.sentence[hit]] = side.ids[hit]
        masked.append(Tokens(torch.where(hit, mask_id, side.ids), side.lengths))
        chosen.append(wanted)
    return (masked[0], masked[1]), hidden, (chosen[0], chosen[1])


def mask_tokens(
    tokens: Tokens,
    maskable: Tensor,
    share: float,
    generator: torch.Generator,
    *,
    mask_id: int,
    protected: Tensor | None = None,
) -> tuple[Tokens, Tensor, Tensor]:
    """Choose a share of the tokens to be predicted, and hide most of them (MLM, Devlin et al. 2019).

    Of the chosen, 80% become [MASK], 10% a random maskable piece, 10% stay. Never chosen are tokens that are hidden
    already, not `maskable` [V], or `protected` [N].

    Returns:
        The sentences with pieces hidden; the places of the chosen tokens in `ids` [M]; what stood there [M].
    """
    free = maskable[tokens.ids] & (tokens.ids != mask_id)
    if protected is not None:
        free &= ~protected
    positions = (free & (torch.rand(len(free), generator=generator) < share)).nonzero()[:, 0]
    originals = tokens.ids[positions]
    pieces = maskable.nonzero()[:, 0]
    others = pieces[torch.randint(max(len(pieces), 1), (len(positions),), generator=generator)]
    lot = torch.rand(len(positions), generator=generator)
    shown = torch.where(lot < BECOME_MASK + BECOME_ANY, others, originals).masked_fill(lot < BECOME_MASK, mask_id)
    return Tokens(tokens.ids.index_copy(0, positions, shown), tokens.lengths), positions, originals


def join_pairs(sides: tuple[Tokens, Tokens], max_length: int) -> Tokens:
    """Each pair as one sentence, English first, for objectives that read both at once (TLM, wei2020 section 3.1).

    Each side is cut at half of `max_length` tokens.
    """
    half = max_length // 2
    cut = [Tokens(side.ids[side.position < half], side.lengths.clamp(max=half)) for side in sides]
    order = torch.cat([side.sentence for side in cut]).argsort(stable=True)  # English stays before its translation
    return Tokens(torch.cat([side.ids for side in cut])[order], cut[0].lengths + cut[1].lengths)
