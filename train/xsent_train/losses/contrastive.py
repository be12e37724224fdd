"""Contrastive objectives on sentence vectors (mao2021 section 3.3, wei2020 section 3.1).

Shapes: B pairs, D dimensions. `u`, `v`: vectors of the two sides [B, D]; `ignore`: pairs that are no negatives of each
other, whichever sides are compared, [B, B], False on the diagonal. Each loss is a scalar.

Every loss compares all pairs with all. With a `chunk` that many rows of the comparison are in memory at a time, and are
computed again in the backward pass; the loss is the same.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

T = TypeVar("T")


def recomputed(function: Callable[..., T], *, random: bool = False) -> Callable[..., T]:
    """The same function, which computes its intermediate results again in the backward pass instead of keeping them.

    With `random`, both computations draw the same random numbers, such as dropout.
    """
    return partial(checkpoint, function, use_reentrant=False, preserve_rng_state=random)


def in_blocks(function: Callable[[slice], T], count: int, chunk: int) -> Iterator[T]:
    """A function of some rows, for blocks of at most `chunk` of all `count`; 0 takes all at once and keeps them."""
    size, block = (chunk, recomputed(function)) if chunk else (max(count, 1), function)
    return (block(slice(start, min(start + size, count))) for start in range(0, count, size))


def unit(x: Tensor) -> Tensor:
    """Rows over their lengths, so that inner products are cosines [..., D].

    An all but zero row, as an empty sentence has, becomes zero and takes no gradient: divided by a tiny constant, as
    usual, that row's gradient would swamp the rest when the norm of all gradients is clipped.
    """
    length = x.norm(dim=-1, keepdim=True)
    return x.div(length.masked_fill(length < 1e-8, torch.inf))


def align(
    u: Tensor,
    v: Tensor,
    *,
    temperature: float = 0.0,
    margin: float = 0.0,
    ignore: Tensor | None = None,
    chunk: int = 0,
) -> Tensor:
    """Find the translation among the batch, in both directions (mao2021 eq. 5).

    The paper's form is the plain inner product; with a temperature it is cosine / temperature (InfoNCE), where an
    additive margin makes the true pair's score smaller by that much (Yang et al. 2019). The cross-entropies of both
    directions are summed, and the mean is over the batch.
    """
    if temperature:
        u, v = unit(u) / temperature, unit(v)
    shift = margin / temperature if temperature else 0.0

    def block(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        scores = u[rows] @ v.T  # [b, B]
        if shift:
            scores.diagonal(rows.start).sub_(shift)
        if ignore is not None:
            scores = scores.masked_fill(ignore[rows], least(scores))
        return scores.logsumexp(dim=1), scores.logsumexp(dim=0), scores.diagonal(rows.start)

    # The two cross-entropies share their scores; this way no transposed or normalised copy is made.
    over_v, over_u, true = zip(*in_blocks(block, len(u), chunk), strict=True)
    everyone = torch.cat(over_v) + torch.stack(over_u).logsumexp(dim=0)
    return (everyone - 2 * torch.cat(true)).mean()


def sentence_ctl(u: Tensor, v: Tensor, *, temperature: float, ignore: Tensor | None = None, chunk: int = 0) -> Tensor:
    """Find the translation among all sentences of the batch, in both languages (HiCTL, wei2020 eq. 2 to 4).

    A query's negatives are the 2B - 2 sentences of the other pairs, where `align` has the B - 1 of the other side.
    Eq. 2 asks from u, eq. 3 from v, and eq. 4 brings both together; summed as `align` has it.
    """
    sides = unit(u), unit(v)

    def block(rows: slice) -> Tensor:
        total = u.new_zeros(())
        for own, other in (sides, sides[::-1]):
            within, across = (own[rows] / temperature @ side.T for side in (own, other))  # [b, B]
            true = across.diagonal(rows.start)
            if ignore is not None:
                within, across = (s.masked_fill(ignore[rows], least(s)) for s in (within, across))
            within.diagonal(rows.start).fill_(least(within))  # a sentence is no answer to itself
            total = total + torch.logaddexp(within.logsumexp(dim=1), across.logsumexp(dim=1)).sum() - true.sum()
        return total

    return torch.stack(list(in_blocks(block, len(u), chunk))).sum() / len(u)


def false_negatives(u: Tensor, v: Tensor, group: Tensor, threshold: float) -> Tensor:
    """Which pairs of a batch should not be told apart: the same English sentence, or nearly the same meaning.

    Two pairs are near when either side's vectors have a cosine above the threshold (the pre-filter of LASER3-CO,
    tan2022 section 3.2, applied to a batch instead of a queue); with 1 or more, `group` says all: the identity of each
    pair's English sentence [B]. Returns the `ignore` of other functions, a symmetric matrix.
    """
    same = group[:, None] == group[None, :]
    if threshold < 1:
        for side in (unit(u.detach()), unit(v.detach())):
            same = same | (side @ side.T > threshold)
    return same.fill_diagonal_(False)


def sim(u: Tensor, v: Tensor, *, temperature: float = 1.0, literal: bool = False, chunk: int = 0) -> Tensor:
    """Make the two within-language similarity distributions agree (mao2021 eq. 6): -log cos(pi/2 (P_u - P_v)).

    The paper's literal form, a sum over inner products, keeps each sentence's similarity with itself, which swallows
    the row (the loss is then below 2e-5). Ours masks the diagonal, compares cosines / temperature and takes the mean
    over the entries.
    """
    sides = (u, v) if literal else (unit(u), unit(v))

    def block(rows: slice) -> Tensor:
        scores = [side[rows] @ side.T for side in sides]  # [b, B]
        if not literal:
            for own in scores:
                own.div_(temperature).diagonal(rows.start).fill_(least(own))
        difference = scores[0].softmax(dim=1) - scores[1].softmax(dim=1)
        # Short of +-pi/2, where the cosine is 0 and its logarithm infinite.
        angle = (math.pi / 2 * difference).clamp(-math.pi / 2 + 1e-3, math.pi / 2 - 1e-3)
        return -torch.log(torch.cos(angle)).sum()

    total = torch.stack(list(in_blocks(block, len(u), chunk))).sum()
    return total if literal else total / max(len(u) ** 2, 1)


def least(scores: Tensor) -> float:
    """A score that leaves an entry out of a softmax; a row of -inf alone would be NaN."""
    return torch.finfo(scores.dtype).min
