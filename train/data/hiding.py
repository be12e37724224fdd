"""What an objective hides from the encoder, and what stands there."""

from typing import NamedTuple

import torch
from torch import Tensor

from xsent.train.data.masking import join_pairs, mask_one_side, mask_tokens
from xsent.train.data.vocabulary import MASK
from xsent.train.objectives.settings import Objectives
from xsent.train.tokens import Tokens

NOT_HIDDEN = -1


class Labelled(NamedTuple):
    """Sentences of which some tokens are to be predicted from their own position."""

    tokens: Tokens  # what the encoder reads
    labels: Tensor  # what stood at each position, or -1 where nothing is to be predicted [N]

    def part(self, start: int, stop: int) -> "Labelled":
        """The sentences from `start` to `stop` (exclusive)."""
        if start == 0 and stop == len(self.tokens.lengths):
            return self
        begin, end = (int(self.tokens.lengths[:i].sum()) for i in (start, stop))
        return Labelled(self.tokens.part(start, stop), self.labels[begin:end])

    def to(self, device: torch.device) -> "Labelled":
        """The same on another device."""
        return Labelled(self.tokens.to(device), self.labels.to(device, non_blocking=True))


class Hiding(NamedTuple):
    """Both sides of B pairs, and what of them is hidden."""

    sides: tuple[Tokens, Tokens]  # English and translation as they are
    read: tuple[Labelled, Labelled]  # what the encoder reads of them
    piece: Tensor | None = None  # the one piece that is hidden of each pair [B]; None where no objective hides one
    masked: tuple[Tensor, Tensor] | None = None  # for each side whether it is the one that the piece is hidden of [B]
    joined: Labelled | None = None  # the pairs as one sentence each, for TLM

    def to(self, device: torch.device) -> "Hiding":
        """The same on another device."""
        return Hiding(
            (self.sides[0].to(device), self.sides[1].to(device)),
            (self.read[0].to(device), self.read[1].to(device)),
            None if self.piece is None else self.piece.to(device),
            None if self.masked is None else (self.masked[0].to(device), self.masked[1].to(device)),
            None if self.joined is None else self.joined.to(device),
        )


def hide(
    sides: tuple[Tokens, Tokens],
    objectives: Objectives,
    maskable: Tensor,
    max_length: int,
    generator: torch.Generator,
) -> Hiding:
    """Hide of English and translation what the objectives of a stage want hidden.

    Only what is `maskable` [V]; pairs that are joined are cut to `max_length` tokens.
    """
    read, piece, masked = sides, None, None
    if objectives.generative:
        read, piece, masked = mask_one_side(sides, maskable, MASK, generator)
    share = objectives.mlm.share if objectives.mlm else 0.0
    labelled = (label(read[0], maskable, share, generator), label(read[1], maskable, share, generator))
    joined = None
    if objectives.tlm:
        joined = label(join_pairs(sides, max_length), maskable, objectives.tlm.share, generator)
    return Hiding(sides, labelled, piece, masked, joined)


def label(tokens: Tokens, maskable: Tensor, share: float, generator: torch.Generator) -> Labelled:
    """Hide a share of the tokens as BERT does (MLM)."""
    labels = torch.full_like(tokens.ids, NOT_HIDDEN)
    if share:
        tokens, positions, ids = mask_tokens(tokens, maskable, share, generator, mask_id=MASK)
        labels[positions] = ids
    return Labelled(tokens, labels)
