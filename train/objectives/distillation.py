"""Distillation of a frozen teacher into the student, for languages it does not know yet (tan2022 section 2).

Shapes: B sentences, D dimensions, N vectors in the queue. No gradient reaches the teacher or the queue.
"""

import torch
from torch import Tensor

from xsent.train.objectives.contrastive import unit


def distil(student: Tensor, teacher: Tensor) -> Tensor:
    """Bring the student's vector of x to the teacher's of its translation y: 1 - cosine (LASER3, tan2022 section 2).

    Args:
        student: The student's vectors of the sentences [B, D].
        teacher: The teacher's vectors of their translations [B, D], of any length.

    Returns:
        The mean over the batch, a scalar between 0 and 2.
    """
    return 1 - (unit(student) * unit(teacher.detach())).sum(dim=1).mean()


def co(student: Tensor, teacher: Tensor, queue: Tensor, *, temperature: float, ignore_above: float = 1.0) -> Tensor:
    """Tell the teacher's vector of the translation from those of earlier batches (LASER3-CO, tan2022 eq. 1).

    The other sentences of the batch are no negatives. With `ignore_above` this is CO-Filter (section 2.2): an entry of
    the queue that nearly is the translation is no negative either.

    Args:
        student: The student's vectors of the sentences [B, D].
        teacher: The teacher's vectors of their translations [B, D], of any length.
        queue: The teacher's vectors of earlier batches [N, D], of any length; N may be 0.
        temperature: Divisor of the cosines.
        ignore_above: Cosine with the translation above which an entry is left out; 1 or more leaves none out.

    Returns:
        The mean over the batch, a scalar; 0 with an empty queue.
    """
    query, key, others = unit(student), unit(teacher.detach()), unit(queue.detach().to(student.dtype))
    positive = (query * key).sum(dim=1, keepdim=True) / temperature  # [B, 1]
    negative = (query / temperature) @ others.T  # [B, N]
    if ignore_above < 1:
        negative = negative.masked_fill(key @ others.T > ignore_above, -torch.inf)
    return (torch.cat([positive, negative], dim=1).logsumexp(dim=1) - positive[:, 0]).mean()


def relate(student: Tensor, others: Tensor, teacher: Tensor) -> Tensor:
    """Hold sentences as near to each other as the teacher does: the squared difference of cosines.

    The similarity-preserving distillation of Tung & Mori 2019 (eq. 2 to 4), on cosines instead of normalised rows, and
    from one language to another.

    Args:
        student: The student's vectors of the sentences, or of their translations [B, D].
        others: The student's vectors of the sentences that they are compared with [B, D].
        teacher: The teacher's vectors of the sentences [B, E].

    Returns:
        The mean over all B x B pairs, a scalar between 0 and 4.
    """
    own, key = unit(student) @ unit(others).T, unit(teacher.detach())
    return (own - key @ key.T).square().mean()
