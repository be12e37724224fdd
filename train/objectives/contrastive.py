"""Contrastive objectives on sentence vectors (mao2021 section 3.3, wei2020 section 3.1).

Shapes: B pairs, D dimensions. u, v: vectors of the two sides [B, D].
"""

import math

import torch
from torch import Tensor


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
    temperature: float | None = None,
    margin: float = 0.0,
    ignore: Tensor | None = None,
) -> Tensor:
    """Find the translation among the batch, in both directions (mao2021 eq. 5).

    The paper's form is the plain inner product; with a temperature it is cosine / temperature (InfoNCE), where an
    additive margin makes the true pair's score smaller by that much (Yang et al. 2019).

    Args:
        u: Vectors of one side [B, D].
        v: Vectors of the other side [B, D].
        temperature: None for inner products, else the divisor of the cosine.
        margin: Subtracted from the true pair's cosine; needs a temperature.
        ignore: Pairs (j, k) that are no negatives of each other, [B, B], False on the diagonal.

    Returns:
        The mean over the batch of both directions' cross-entropies, summed; a scalar.
    """
    if temperature is None:
        if margin:
            raise ValueError(f"margin = {margin} needs a temperature; the inner product has no scale to subtract from")
        scores = u @ v.T  # [B, B]
    else:
        scores = (unit(u) / temperature) @ unit(v).T
        if margin:
            scores = scores - margin / temperature * torch.eye(len(u), device=u.device)
    if ignore is not None:
        scores = scores.masked_fill(ignore, -torch.inf)
    # The two cross-entropies share their true scores; this way no transposed or normalised copy is made.
    return (scores.logsumexp(dim=1) + scores.logsumexp(dim=0) - 2 * scores.diagonal()).mean()


def sentence_ctl(u: Tensor, v: Tensor, *, temperature: float, ignore: Tensor | None = None) -> Tensor:
    """Find the translation among all sentences of the batch, in both languages (HiCTL, wei2020 eq. 2 to 4).

    A query's negatives are the 2B - 2 sentences of the other pairs, where `align` has the B - 1 of the other side.
    Eq. 2 asks from u, eq. 3 from v, and eq. 4 brings both together.

    Args:
        u: Vectors of one side [B, D].
        v: Vectors of the other side [B, D].
        temperature: Divisor of the cosines.
        ignore: Pairs (j, k) that are no negatives of each other, whichever sides are compared; [B, B], False on the
            diagonal.

    Returns:
        The mean over the batch of both directions' cross-entropies, summed, as `align` has it; a scalar.
    """
    both = unit(torch.cat([u, v]))
    scores = (both / temperature) @ both.T  # [2B, 2B]
    left_out = torch.eye(len(both), dtype=torch.bool, device=u.device)  # a sentence is no answer to itself
    if ignore is not None:
        left_out = left_out | ignore.repeat(2, 2)
    true = scores.diagonal(len(u))  # [B]: u_j with v_j, both directions' positive
    everyone = scores.masked_fill(left_out, -torch.inf).logsumexp(dim=1)  # [2B]
    return (everyone.sum() - 2 * true.sum()) / len(u)


def false_negatives(u: Tensor, v: Tensor, group: Tensor, threshold: float) -> Tensor:
    """Which pairs of a batch should not be told apart: the same English sentence, or nearly the same meaning.

    Two pairs are near when either side's vectors have a cosine above the threshold (the pre-filter of LASER3-CO,
    tan2022 section 3.2, applied to a batch instead of a queue).

    Args:
        u: Vectors of one side [B, D].
        v: Vectors of the other side [B, D].
        group: Identity of each pair's English sentence [B].
        threshold: Cosine above which two sentences count as the same; 1 or more looks at `group` alone.

    Returns:
        A symmetric boolean matrix [B, B], False on the diagonal.
    """
    same = group[:, None] == group[None, :]
    if threshold < 1:
        for side in (u.detach(), v.detach()):
            side = unit(side)
            same = same | (side @ side.T > threshold)
    return same.fill_diagonal_(False)


def sim(u: Tensor, v: Tensor, *, temperature: float = 1.0, literal: bool = False) -> Tensor:
    """Make the two within-language similarity distributions agree (mao2021 eq. 6): -log cos(pi/2 (P_u - P_v)).

    The literal form keeps each sentence's similarity with itself, which swallows the row (the loss is then below
    2e-5). Ours masks the diagonal, compares cosines / temperature and takes the mean over the entries.

    Args:
        u: Vectors of one side [B, D].
        v: Vectors of the other side [B, D].
        temperature: Divisor of the cosines; ignored by the literal form.
        literal: The paper's form: inner products, diagonal included, the sum.

    Returns:
        A scalar.
    """
    if literal:
        scores = u @ u.T, v @ v.T
    else:
        diagonal = torch.eye(len(u), dtype=torch.bool, device=u.device)
        # A row of one pair has nothing else in it, and a softmax over -inf alone would be NaN.
        least = torch.finfo(u.dtype).min
        sides = (unit(side) for side in (u, v))
        scores_u, scores_v = ((s @ s.T / temperature).masked_fill(diagonal, least) for s in sides)
        scores = scores_u, scores_v
    difference = scores[0].softmax(dim=1) - scores[1].softmax(dim=1)  # [B, B]
    # Short of +-pi/2, where the cosine is 0 and its logarithm infinite.
    angle = (math.pi / 2 * difference).clamp(-math.pi / 2 + 1e-3, math.pi / 2 - 1e-3)
    loss = -torch.log(torch.cos(angle))
    return loss.sum() if literal else loss.mean()
