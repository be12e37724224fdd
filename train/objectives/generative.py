"""Generative objectives: what a sentence vector says of the pieces of both sides (method: mao2021 section 3.2).

Shapes: B sentences, D dimensions, V pieces, M target entries.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Targets:
    """A sparse distribution over the pieces for each sentence.

    Attributes:
        ids: Pieces with mass [M].
        sentence: The sentence of each entry [M].
        weight: Its mass [M]; the entries of one sentence add up to 1.
    """

    ids: Tensor
    sentence: Tensor
    weight: Tensor


def uniform_targets(ids: Tensor, lengths: Tensor) -> Targets:
    """All mass spread evenly over the distinct pieces of each sentence (XTR, mao2021 eq. 2).

    Args:
        ids: Pieces of all sentences, one after the other [N].
        lengths: Pieces of each sentence [B].
    """
    sentence = torch.repeat_interleave(lengths)
    distinct = torch.unique(torch.stack([sentence, ids]), dim=1)  # [2, M]
    counts = torch.bincount(distinct[0], minlength=len(lengths))
    return Targets(distinct[1], distinct[0], 1.0 / counts[distinct[0]])


def ugt_targets(hidden: Tensor, masked: Tensor, other: Targets) -> Targets:
    """Half of the mass on the hidden piece, half as before (UGT = SMLM + XTR, mao2021 eq. 4), for the masked sentences.

    A piece that is hidden on this side and stands on the other side gets both masses.

    Args:
        hidden: The piece that was masked in each sentence [B]; anything where none was.
        masked: Whether a sentence had a piece masked [B].
        other: The uniform target over the other side's pieces.
    """
    sentences = masked.nonzero()[:, 0]
    weight = torch.where(masked[other.sentence], 0.5 * other.weight, other.weight)
    return Targets(
        torch.cat([other.ids, hidden[sentences]]),
        torch.cat([other.sentence, sentences]),
        torch.cat([weight, weight.new_full((len(sentences),), 0.5)]),
    )


def generative_loss(hidden: Tensor, table: Tensor, bias: Tensor, targets: Targets) -> Tensor:
    """Cross-entropy of softmax(table . hidden + bias) against sparse targets (mao2021 eq. 1 to 4).

    Exact without a dense [B, V] target: logsumexp(logits) - sum_i q_i logit_i.

    Args:
        hidden: Output of the generative head [B, D].
        table: Token table, tied with the encoder's [V, D].
        bias: Bias of each piece [V].
        targets: What each sentence should predict.

    Returns:
        The mean over the batch, a scalar.
    """
    logits = hidden @ table.T + bias  # [B, V]
    hit = (targets.weight * logits[targets.sentence, targets.ids]).sum()
    return (torch.logsumexp(logits, dim=1).sum() - hit) / len(hidden)
