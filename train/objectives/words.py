"""Word-level contrast: a pair against the pieces that stand in it and those that do not (wei2020 section 3.1).

Shapes: B pairs, D dimensions, V pieces, M entries of the bags, K negatives of a pair.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from xsent.train.objectives.contrastive import unit
from xsent.train.objectives.generative import Targets


def word_ctl(
    query: Tensor,
    table: Tensor,
    bag: Targets,
    allowed: Tensor,
    *,
    temperature: float,
    negatives: int,
    generator: torch.Generator | None = None,
    chunk: int = 0,
) -> Tensor:
    """Tell the pieces of a pair from the rest of the vocabulary (HiCTL, wei2020 eq. 5 and 6).

    The score of a pair and a piece is the cosine of the pair's vector and the piece's row, over the temperature. Each
    piece of the bag is asked for by itself, against all negatives of the pair (eq. 5).

    Args:
        query: Vector of each pair [B, D].
        table: Token table [V, D]; it learns too.
        bag: The distinct pieces of each pair, both sides; their weights do not matter.
        allowed: Pieces that count, in the bag and as negatives [V]. A piece that never is a negative, as [MASK] should
            not be, must be no positive either: it would only ever be pulled towards every pair.
        temperature: Divisor of the cosines.
        negatives: Pieces drawn from outside the bag, for each pair.
        generator: Source of chance, on the tensors' device.
        chunk: Pairs whose scores [chunk, V] are in memory at a time; 0 takes all at once. Nothing of that size is
            kept for the backward pass.

    Returns:
        The mean over the pairs of the mean over their pieces (eq. 6), a scalar; a pair without pieces adds 0.
    """
    count = allowed[bag.ids]
    bag = _evenly(bag.ids[count], bag.sentence[count], len(query))
    scaled, rows = unit(query) / temperature, unit(table)
    losses = []
    for part, words in bag.chunks(len(query), chunk):
        scores = scaled[part] @ rows.T  # [B, V]
        drawn, real = sample_negatives(scores.detach(), words, allowed, count=negatives, generator=generator)
        against = scores.gather(1, drawn).masked_fill(~real, torch.finfo(scores.dtype).min).logsumexp(dim=1)  # [B]
        right = scores[words.sentence, words.ids]  # [M]
        # -log(e^right / (e^right + e^against))
        losses.append((words.weight * F.softplus(against[words.sentence] - right)).sum())
    return torch.stack(losses).sum() / max(len(query), 1)


def sample_negatives(
    scores: Tensor, bag: Targets, allowed: Tensor, *, count: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw distinct pieces from outside each bag, in proportion to softmax(scores): hard ones more often (wei2020).

    The largest of scores plus Gumbel noise are such a draw without replacement (Kool et al. 2019).

    Args:
        scores: Similarity of each pair with each piece, over the temperature [B, V]; without gradient.
        bag: The pieces of each pair, which are never drawn.
        allowed: Pieces that may be drawn [V].
        count: Pieces to draw for each pair.
        generator: Source of chance, on the tensors' device.

    Returns:
        The pieces [B, K], K = `count` or V if that is less; which of them count [B, K]: all, unless fewer than K
        pieces are left outside the bag.
    """
    # Minus the logarithm of exponential noise is Gumbel noise; in place, as these are the largest tensors there are.
    keys = torch.empty_like(scores).exponential_(generator=generator).log_().neg_().add_(scores)
    keys.masked_fill_(~allowed, -torch.inf)
    keys[bag.sentence, bag.ids] = -torch.inf
    best, drawn = keys.topk(min(count, scores.shape[1]), dim=1, sorted=False)
    return drawn, best > -torch.inf


def _evenly(ids: Tensor, sentence: Tensor, count: int) -> Targets:
    sizes = torch.bincount(sentence, minlength=count)
    return Targets(ids, sentence, 1.0 / sizes[sentence])
