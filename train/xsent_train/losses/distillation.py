"""Distillation of a frozen teacher into the student, for languages it does not know yet (tan2022 section 2).

Shapes: B sentences, D dimensions, N vectors in the queue. `student`: the student's vectors of the sentences [B, D];
`teacher`: the teacher's of their translations [B, D], of any length. No gradient reaches the teacher or the queue. Each
loss is a scalar, the mean over the batch.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from xsent_train.losses.contrastive import align, unit

FLAT = 0.05  # of the mean variance, added to that of every axis: the flattest ones are noise
EQUAL = 1e-4  # cosines of one sentence with itself are within that of 1, in float16 too


def distil(student: Tensor, teacher: Tensor) -> Tensor:
    """Bring the student's vector of x to the teacher's of its translation y: 1 - cosine (LASER3, tan2022 section 2)."""
    return 1 - (unit(student) * unit(teacher.detach())).sum(dim=1).mean()


def contrastive_distil(
    student: Tensor,
    teacher: Tensor,
    queue: Tensor,
    *,
    temperature: float,
    ignore_above: float = 1.0,
    batch: bool = False,
) -> Tensor:
    """Tell the teacher's vector of the translation from those of earlier batches (LASER3-CO, tan2022 eq. 1).

    The queue has these vectors [N, D], of any length; with none the loss is 0. The other sentences of the batch are
    negatives too only if asked for: the hard ones, where a batch has sentences that are alike. With `ignore_above` this
    is CO-Filter (section 2.2): a vector whose cosine with the translation is above that is no negative either; 1 or
    more leaves out none but those of equal sentences in the batch.
    """
    query, key, others = unit(student), unit(teacher.detach()), unit(queue.detach().to(student.dtype))
    positive = (query * key).sum(dim=1, keepdim=True) / temperature  # [B, 1]
    negative = (query / temperature) @ others.T  # [B, N]
    if ignore_above < 1:
        negative = negative.masked_fill(key @ others.T > ignore_above, -torch.inf)
    if batch:
        same = key @ key.T > min(ignore_above, 1 - EQUAL)  # its own among them
        negative = torch.cat([negative, (query @ key.T / temperature).masked_fill(same, -torch.inf)], dim=1)
    return (torch.cat([positive, negative], dim=1).logsumexp(dim=1) - positive[:, 0]).mean()


def similarity_distil(student: Tensor, others: Tensor, teacher: Tensor) -> Tensor:
    """Hold sentences as near to each other as the teacher does: the squared difference of cosines.

    The similarity-preserving distillation of Tung & Mori 2019 (eq. 2 to 4), on cosines instead of normalised rows, and
    from one language to another: `others` are the student's vectors of the sentences compared with [B, D].
    """
    own, key = unit(student) @ unit(others).T, unit(teacher.detach())
    return (own - key @ key.T).square().mean()


class Whitening(NamedTuple):
    """A linear map after which all directions of a set of vectors vary nearly alike."""

    centre: Tensor  # their mean [D]
    matrix: Tensor  # the map of the centred vectors [D, D]

    @staticmethod
    def fit(vectors: Tensor) -> "Whitening":
        """The map that a sample of vectors [n, D] asks for."""
        centre = vectors.mean(dim=0)
        variances, axes = torch.linalg.eigh(torch.cov((vectors - centre).T))
        return Whitening(centre, axes / (variances + FLAT * variances.mean()).sqrt())

    def __call__(self, vectors: Tensor) -> Tensor:
        """Vectors [B, D] in the white space."""
        return (vectors - self.centre) @ self.matrix


def embedding_match(
    student: Tensor,
    teacher: Tensor,
    whitening: Whitening,
    *,
    contrast: float,
    temperature: float,
    ignore: Tensor | None = None,
) -> Tensor:
    """Bring the means of a student's rows [B, D] to those of the teacher's input rows of the English sides [B, D].

    Squared error where all directions count alike; in the plain space a few hold most of the variance. Finding the
    right one in the batch, by cosine there, asks for what tells sentences apart: with the weight `contrast`, but for
    pairs that are no negatives of each other, `ignore` [B, B].
    """
    student, teacher = whitening(student), whitening(teacher.detach())
    error = (student - teacher).square().mean()
    if not contrast:
        return error
    return error + contrast * align(student, teacher, temperature=temperature, ignore=ignore) / 2
