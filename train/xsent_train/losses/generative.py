"""Losses between a sentence vector and the pieces of its pair: it predicts them, or tells them from others.

The generative objectives (mao2021 section 3.2), and the contrast with words (wei2020 section 3.1).
Shapes: B sentences or pairs, D dimensions, V pieces, N tokens of all, M target entries, K negatives of a pair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from xsent_train.losses.contrastive import recomputed, unit


@dataclass(frozen=True)
class Targets:
    """A sparse distribution over the pieces for each sentence."""

    ids: Tensor  # pieces with mass [M]
    sentence: Tensor  # the sentence of each entry [M]
    weight: Tensor  # its mass [M]; the entries of one sentence add up to 1, or it has none and predicts nothing

    @staticmethod
    def join(parts: "Sequence[Targets]", count: int) -> "Targets":
        """The targets of several batches of `count` sentences as those of one, batch after batch."""
        sentences = [part.sentence + i * count for i, part in enumerate(parts)]
        ids, weights = ([getattr(part, name) for part in parts] for name in ("ids", "weight"))
        return Targets(torch.cat(ids), torch.cat(sentences), torch.cat(weights))

    def chunks(self, count: int, size: int) -> Iterator[tuple[slice, "Targets"]]:
        """Cut a batch of `count` sentences into chunks of at most `size`, or one where `size` is 0.

        Yields the sentences of a chunk, and their entries with sentences counted from the chunk's first.
        """
        if not 0 < size < count:
            yield slice(0, count), self
            return
        order = self.sentence.argsort(stable=True)
        starts = torch.arange(0, count + size, size, device=order.device)
        ends = torch.searchsorted(self.sentence[order], starts).tolist()
        for i in range(len(ends) - 1):
            entries, first = order[ends[i] : ends[i + 1]], i * size
            chosen = Targets(self.ids[entries], self.sentence[entries] - first, self.weight[entries])
            yield slice(first, min(first + size, count)), chosen


def uniform_targets(ids: Tensor, lengths: Tensor) -> Targets:
    """All mass spread evenly over the distinct pieces of each sentence (XTR, mao2021 eq. 2 and 3).

    Pieces of all sentences stand one after the other [N]; `lengths` says how many each has [B].
    """
    # One number for sentence and piece: distinct rows of a matrix would take fifty times as long.
    distinct = torch.unique(torch.repeat_interleave(lengths.long()) << 32 | ids)
    return even_targets(distinct & 0xFFFFFFFF, distinct >> 32, len(lengths))


def even_targets(ids: Tensor, sentence: Tensor, count: int) -> Targets:
    """The same mass for all pieces of each of `count` sentences."""
    return Targets(ids, sentence, 1.0 / torch.bincount(sentence, minlength=count)[sentence])


def smlm_targets(hidden: Tensor, present: Tensor) -> Targets:
    """All mass on the piece that was hidden in the pair (SMLM, mao2021 eq. 1); the same target for both sides.

    The masked side predicts it from what is left of the sentence, the other side from the translation. `hidden` has
    the piece of each pair [B], `present` whether one was hidden [B]; a pair without one has no entry.
    """
    sentence = present.nonzero()[:, 0]
    return Targets(hidden[sentence], sentence, torch.ones(len(sentence), device=hidden.device))


def ugt_targets(hidden: Tensor, masked: Tensor, other: Targets) -> Targets:
    """Half of the mass on the hidden piece, half as before (UGT = SMLM + XTR, mao2021 eq. 4), for the masked sentences.

    `hidden` has the piece of each sentence [B], `masked` whether one was hidden in it [B], `other` is the uniform
    target over the other side's pieces. A piece that is hidden on this side and stands on the other side gets both
    masses. Where the other side is empty, the hidden piece has all.
    """
    sentences = masked.nonzero()[:, 0]
    shared = torch.zeros_like(masked).index_fill_(0, other.sentence, True)
    weight = torch.where(masked[other.sentence], 0.5 * other.weight, other.weight)
    return Targets(
        torch.cat([other.ids, hidden[sentences]]),
        torch.cat([other.sentence, sentences]),
        torch.cat([weight, torch.where(shared[sentences], 0.5, 1.0)]),
    )


def generative_loss(hidden: Tensor, table: Tensor, bias: Tensor, targets: Targets, *, chunk: int = 0) -> Tensor:
    """Cross-entropy of softmax(table . hidden + bias) against sparse targets (mao2021 eq. 1 to 4).

    Exact without a dense [B, V] target: logsumexp(logits) - sum_i q_i logit_i. `hidden` is the output of the generative
    head [B, D], the table tied with the encoder's [V, D]; the mean is over the batch, and a sentence without an entry
    adds 0. Of at most `chunk` sentences the logits are in memory at a time, at the price of computing them twice; 0
    keeps the logits of all.
    """
    entropy = recomputed(_cross_entropy) if chunk else _cross_entropy
    losses = [entropy(hidden[rows], table, bias, chosen) for rows, chosen in targets.chunks(len(hidden), chunk)]
    return torch.stack(losses).sum() / max(len(hidden), 1)


def token_loss(hidden: Tensor, table: Tensor, bias: Tensor, ids: Tensor, *, chunk: int = 0) -> Tensor:
    """Cross-entropy of hidden tokens, each predicted from its own place (MLM and TLM, the baselines of mao2021).

    As `generative_loss` for the hidden tokens [M, D], whose pieces are `ids` [M]; 0 where there are none.
    """
    targets = Targets(ids, torch.arange(len(ids), device=ids.device), torch.ones(len(ids), device=ids.device))
    return generative_loss(hidden, table, bias, targets, chunk=chunk)


def _cross_entropy(hidden: Tensor, table: Tensor, bias: Tensor, targets: Targets) -> Tensor:
    logits = hidden @ table.T + bias  # [B, V]
    hit = (targets.weight * logits[targets.sentence, targets.ids]).sum()
    mass = targets.weight.new_zeros(len(hidden)).index_add_(0, targets.sentence, targets.weight)
    return (mass * logits.logsumexp(dim=1)).sum() - hit


def word_ctl(
    query: Tensor,
    table: Tensor,
    bag: Targets,
    allowed: Tensor,
    *,
    temperature: float,
    negatives: int,
    chunk: int = 0,
) -> Tensor:
    """Tell the pieces of a pair from the rest of the vocabulary (HiCTL, wei2020 eq. 5 and 6).

    The score of a pair [B, D] and a piece [V, D] is the cosine of their vectors, over the temperature. Each piece of a
    pair's bag, of both sides and of whatever weight, is asked for by itself, against `negatives` pieces from outside
    the bag (eq. 5). Only `allowed` pieces count [V], in the bag and as negatives: one that never is a negative, as
    [MASK] should not be, would only ever be pulled towards every pair.

    The scores of `chunk` pairs are in memory at a time, 0 takes all; nothing of that size is kept for the backward
    pass. Returns the mean over the pairs of the mean over their pieces (eq. 6); a pair without pieces adds 0.
    """
    count = allowed[bag.ids]
    bag = even_targets(bag.ids[count], bag.sentence[count], len(query))
    scaled, rows = unit(query) / temperature, unit(table)
    losses = []
    for part, words in bag.chunks(len(query), chunk):
        scores = scaled[part] @ rows.T  # [B, V]
        drawn, real = sample_negatives(scores.detach(), words, allowed, count=negatives)
        against = scores.gather(1, drawn).masked_fill(~real, torch.finfo(scores.dtype).min).logsumexp(dim=1)  # [B]
        right = scores[words.sentence, words.ids]  # [M]
        # -log(e^right / (e^right + e^against))
        losses.append((words.weight * F.softplus(against[words.sentence] - right)).sum())
    return torch.stack(losses).sum() / max(len(query), 1)


def sample_negatives(scores: Tensor, bag: Targets, allowed: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Draw distinct pieces from outside each bag, in proportion to softmax(scores): hard ones more often (wei2020).

    The largest of scores plus Gumbel noise are such a draw without replacement (Kool et al. 2019). The scores [B, V]
    have no gradient; only pieces that are `allowed` [V] are drawn. Returns K = `count` pieces a pair, or V if that is
    less, and which of them count, both [B, K]: all, unless fewer are left outside the bag.
    """
    # Minus the logarithm of exponential noise is Gumbel noise; in place, as these are the largest tensors there are.
    keys = torch.empty_like(scores).exponential_().log_().neg_().add_(scores)
    keys.masked_fill_(~allowed, -torch.inf)
    keys[bag.sentence, bag.ids] = -torch.inf
    best, drawn = keys.topk(min(count, scores.shape[1]), dim=1, sorted=False)
    return drawn, best > -torch.inf
