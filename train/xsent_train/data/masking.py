"""Masking of pieces for the objectives that predict them: one per pair (SMLM, UGT), or a share (MLM, TLM).

Pieces are hidden on the CPU, where batches are prepared. Shapes: B pairs, N tokens, V pieces.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from xsent_train.objectives import Objectives
from xsent_train.tokens import MASK, Tokens

NOT_HIDDEN = -1
# Shares of the chosen tokens that become [MASK] or a random piece, as in BERT (Devlin et al. 2019). The rest does not
# change, so that visible tokens must be represented too.
BECOME_MASK, BECOME_ANY = 0.8, 0.1

Sides = tuple[Tokens, Tokens]  # English and translation


class Labelled(NamedTuple):
    """Sentences in which some tokens are to be predicted from their own position."""

    tokens: Tokens  # as the encoder reads them
    labels: Tensor  # the original piece at each position to predict, and -1 elsewhere [N]


class MaskedPairs(NamedTuple):
    """Both sides of B pairs, and their hidden pieces."""

    sides: Sides  # English and translation, unchanged
    read: tuple[Labelled, Labelled]  # the sides as the encoder reads them, perhaps with copies as translations
    piece: Tensor | None = None  # the hidden piece of each pair [B]; None if no objective hides one
    masked: tuple[Tensor, Tensor] | None = None  # for each side, whether the hidden piece is on it [B]
    joined: Labelled | None = None  # the pairs as one sentence each, for TLM


def hide(
    sides: Sides, objectives: Objectives, maskable: Tensor, max_length: int, generator: torch.Generator
) -> MaskedPairs:
    """Hide `maskable` pieces [V] as the objectives require; joined pairs are cut at `max_length` tokens."""
    read, piece, masked = sides, None, None
    if objectives.generative:
        read, piece, masked = mask_one_side(sides, maskable, generator)
    share = objectives.mlm.share if objectives.mlm else 0.0
    labelled = (label(read[0], maskable, share, generator), label(read[1], maskable, share, generator))
    if objectives.shuffles:
        labelled = labelled[0], with_shuffled_copies(sides[0], labelled[1], generator)
    joined = None
    if objectives.tlm:
        joined = label(join_pairs(sides, max_length), maskable, objectives.tlm.share, generator)
    return MaskedPairs(sides, labelled, piece, masked, joined)


def mask_one_side(
    sides: Sides, maskable: Tensor, generator: torch.Generator
) -> tuple[Sides, Tensor, tuple[Tensor, Tensor]]:
    """Replace one random word piece on one random side of every pair.

    Pieces that are not `maskable` [V], such as punctuation, are never hidden. Returns the two sides with pieces hidden;
    the hidden piece of each pair [B]; and for each side, whether it was masked [B]. A pair whose chosen side has no
    maskable piece is not changed.
    """
    pick = torch.rand(len(sides[0].lengths), generator=generator) < 0.5
    hidden = torch.zeros_like(sides[0].lengths)
    masked: list[Tokens] = []
    chosen: list[Tensor] = []
    for side, wanted in zip(sides, (pick, ~pick), strict=True):
        # The largest of random scores over the maskable pieces of a sentence picks one of them uniformly. In double
        # precision, so that no two scores of a sentence are equal.
        scores = torch.rand(len(side.ids), generator=generator, dtype=torch.float64)
        scores = scores.masked_fill(~maskable[side.ids], -1.0)
        best = scores.new_full((len(side.lengths),), -1.0).scatter_reduce_(0, side.sentence, scores, "amax")
        wanted = wanted & (best >= 0)
        hit = (scores == best[side.sentence]) & wanted[side.sentence]
        hidden[side.sentence[hit]] = side.ids[hit]
        masked.append(Tokens(torch.where(hit, MASK, side.ids), side.lengths))
        chosen.append(wanted)
    return (masked[0], masked[1]), hidden, (chosen[0], chosen[1])


def label(tokens: Tokens, maskable: Tensor, share: float, generator: torch.Generator) -> Labelled:
    """Choose a share of the tokens to predict, and hide most of them as BERT does (MLM).

    Tokens that are already hidden or not `maskable` [V] are never chosen.
    """
    labels = torch.full_like(tokens.ids, NOT_HIDDEN)
    if not share:
        return Labelled(tokens, labels)
    free = maskable[tokens.ids] & (tokens.ids != MASK)
    positions = (free & (torch.rand(len(free), generator=generator) < share)).nonzero()[:, 0]
    labels[positions] = originals = tokens.ids[positions]
    pieces = maskable.nonzero()[:, 0]
    others = pieces[torch.randint(max(len(pieces), 1), (len(positions),), generator=generator)]
    lot = torch.rand(len(positions), generator=generator)
    shown = torch.where(lot < BECOME_MASK + BECOME_ANY, others, originals).masked_fill(lot < BECOME_MASK, MASK)
    return Labelled(Tokens(tokens.ids.index_copy(0, positions, shown), tokens.lengths), labels)


def with_shuffled_copies(sentences: Tokens, others: Labelled, generator: torch.Generator) -> Labelled:
    """The other side of some pairs, where a copy of the sentence in random order takes the place of an empty one.

    Nothing is to be predicted in a copy (HiCTL's positive for text of one language, wei2020 section 3.1).
    """
    tokens, empty = others.tokens, others.tokens.lengths == 0
    lot = torch.rand(len(sentences.ids), generator=generator, dtype=torch.float64)
    copies = sentences.ids[(sentences.sentence + lot).argsort()][empty[sentences.sentence]]
    order = torch.cat([tokens.sentence, sentences.sentence[empty[sentences.sentence]]]).argsort(stable=True)
    ids, labels = torch.cat([tokens.ids, copies]), torch.cat([others.labels, torch.full_like(copies, NOT_HIDDEN)])
    lengths = torch.where(empty, sentences.lengths, tokens.lengths)
    return Labelled(Tokens(ids[order], lengths), labels[order])


def join_pairs(sides: Sides, max_length: int) -> Tokens:
    """Each pair as one sentence, English first, either side cut at half of `max_length` (TLM, wei2020 section 3.1)."""
    half = max_length // 2
    cut = [side.cut(half) for side in sides]
    order = torch.cat([side.sentence for side in cut]).argsort(stable=True)  # English stays before its translation
    return Tokens(torch.cat([side.ids for side in cut])[order], cut[0].lengths + cut[1].lengths)
