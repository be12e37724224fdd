"""The objectives of the papers: pure functions of tensors that return one number, or one for each depth.

- Contrastive losses (mao2021 section 3.3, wei2020 section 3.1) compare all pairs with each other.
- Distillation of a frozen teacher into the student, for languages that it does not know yet (tan2022 section 2). No
  gradient reaches the teacher or the queue.
- On scored pairs, cosines learn to agree with people's scores. Finding the passage that answers a query is `align`.
- On the pieces of its pair, a sentence vector learns to predict them (mao2021 section 3.2), or to distinguish them from
  others (wei2020 section 3.1).

Shapes: B sentences or pairs, D dimensions, V pieces, N tokens of all or vectors in the queue, M target entries, K
negatives per pair. `u`, `v`: vectors of the two sides [B, D]; `ignore`: pairs that are not negatives of each other,
whichever sides are compared, [B, B], False on the diagonal. `student`, `teacher`: the student's vectors of sentences
and the teacher's of their translations [B, D], of any length. Functions that compare vectors also take those of L
depths at once [L, B, D] and return L numbers, because a GPU would wait for the many small operations of one depth after
another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

FLAT = 0.05  # share of the mean variance that is added to every axis, because the flattest ones are noise
EQUAL = 1e-4  # tolerance for the cosine of a sentence with itself, which is 1; covers float16


def diagonal(scores: Tensor) -> Tensor:
    """The scores of pairs with themselves [..., B]."""
    return scores.diagonal(0, -2, -1)


def unit(x: Tensor) -> Tensor:
    """Rows divided by their lengths, so that inner products are cosines [..., D].

    A row that is nearly zero, like that of an empty sentence, becomes zero and gets no gradient. With the usual tiny
    constant as the divisor, its gradient would swamp all others when the norm of the gradients is clipped.
    """
    length = x.norm(dim=-1, keepdim=True)
    return x.div(length.masked_fill(length < 1e-8, torch.inf))


def align(
    u: Tensor, v: Tensor, *, temperature: float = 0.0, margin: float = 0.0, ignore: Tensor | None = None
) -> Tensor:
    """Find the translation in the batch, in both directions (mao2021 eq. 5).

    The paper uses the plain inner product. A temperature changes it to cosine / temperature (InfoNCE), where an
    additive margin lowers the score of the true pair (Yang et al. 2019). The cross-entropies of both directions are
    summed, and averaged over the batch.
    """
    if temperature:
        u, v = unit(u) / temperature, unit(v)
    scores = u @ v.mT  # [..., B, B]
    if temperature and margin:
        diagonal(scores).sub_(margin / temperature)
    if ignore is not None:
        scores = scores.masked_fill(ignore, lowest(scores))
    # The two cross-entropies share their scores, without a transposed or normalised copy.
    everyone = scores.logsumexp(dim=-1) + scores.logsumexp(dim=-2)
    return (everyone - 2 * diagonal(scores)).mean(dim=-1)


def sentence_ctl(u: Tensor, v: Tensor, *, temperature: float, ignore: Tensor | None = None) -> Tensor:
    """Find the translation among all sentences of the batch, in both languages (HiCTL, wei2020 eq. 2 to 4).

    A query's negatives are the 2B - 2 sentences of the other pairs; in `align`, they are the B - 1 of the other side.
    Eq. 2 queries with u, eq. 3 with v, and eq. 4 combines them; they are summed as in `align`.
    """
    sides = unit(u), unit(v)
    total = u.new_zeros(())
    for own, other in (sides, sides[::-1]):
        within, across = (own / temperature @ side.mT for side in (own, other))  # [..., B, B]
        true = diagonal(across)
        if ignore is not None:
            within, across = (s.masked_fill(ignore, lowest(s)) for s in (within, across))
        diagonal(within).fill_(lowest(within))  # a sentence is not an answer to itself
        everyone = torch.logaddexp(within.logsumexp(dim=-1), across.logsumexp(dim=-1))
        total = total + (everyone - true).sum(dim=-1)
    return total / u.shape[-2]


def false_negatives(u: Tensor, v: Tensor, group: Tensor, threshold: float) -> Tensor:
    """Which pairs of a batch should not be contrasted: the same English sentence, or nearly the same meaning.

    Two pairs are near when either side's vectors have a cosine above the threshold (the pre-filter of LASER3-CO,
    tan2022 section 2.2, applied to a batch instead of a queue). With a threshold of 1 or more, only `group` counts: the
    identity of each pair's English sentence [B]. Returns the `ignore` of other functions, a symmetric matrix.
    """
    same = group[:, None] == group[None, :]
    if threshold < 1:
        for side in (unit(u.detach()), unit(v.detach())):
            same = same | (side @ side.T > threshold)
    return same.fill_diagonal_(False)


def sim(u: Tensor, v: Tensor, *, temperature: float = 1.0, literal: bool = False) -> Tensor:
    """Make the two within-language similarity distributions agree (mao2021 eq. 6): -log cos(pi/2 (P_u - P_v)).

    The paper's literal form, a sum over inner products, keeps each sentence's similarity with itself, which dominates
    the row (the loss is then below 2e-5). The default form masks the diagonal, compares cosines / temperature, and
    takes the mean over the entries.
    """
    sides = (u, v) if literal else (unit(u), unit(v))
    # A view, so that both gradients of a side are added in the order in which the published tables were trained.
    scores = [side[...] @ side.mT for side in sides]  # [..., B, B]
    if not literal:
        for own in scores:
            diagonal(own.div_(temperature)).fill_(lowest(own))
    difference = scores[0].softmax(dim=-1) - scores[1].softmax(dim=-1)
    # Stay short of +-pi/2, where the cosine is 0 and its logarithm infinite.
    angle = (math.pi / 2 * difference).clamp(-math.pi / 2 + 1e-3, math.pi / 2 - 1e-3)
    total = -torch.log(torch.cos(angle)).sum(dim=(-2, -1))
    return total if literal else total / max(u.shape[-2] ** 2, 1)


def lowest(scores: Tensor) -> float:
    """A score that excludes an entry from a softmax; with -inf, a row of excluded entries would be NaN."""
    return torch.finfo(scores.dtype).min


def distil(student: Tensor, teacher: Tensor) -> Tensor:
    """Bring the student's vector of x to the teacher's of its translation y: 1 - cosine (LASER3, tan2022 section 2)."""
    return 1 - (unit(student) * unit(teacher.detach())).sum(dim=-1).mean(dim=-1)


def contrastive_distil(
    student: Tensor,
    teacher: Tensor,
    queue: Tensor,
    *,
    temperature: float,
    ignore_above: float = 1.0,
    batch: Tensor | None = None,
) -> Tensor:
    """Distinguish the teacher's vector of the translation from those of earlier batches (LASER3-CO, tan2022 eq. 1).

    The queue has these vectors [N, D], of any length; if it is empty, the loss is 0. `batch` has the teacher's vectors
    of all ranks [n, D]; a sentence's negatives are then also those of the other sentences, hard ones if the batch has
    similar sentences. `ignore_above` makes this CO-Filter (section 2.2): vectors with a cosine above it to the
    translation are not negatives. With 1 or more, only those of equal sentences in the batch are excluded.
    """
    query, key, others = unit(student), unit(teacher.detach()), unit(queue.detach().to(student.dtype))
    positive = (query * key).sum(dim=-1, keepdim=True) / temperature  # [..., B, 1]
    negative = (query / temperature) @ others.T  # [..., B, N]
    if ignore_above < 1:
        negative = negative.masked_fill(key @ others.T > ignore_above, -torch.inf)
    if batch is not None:
        keys = unit(batch.detach())
        same = key @ keys.T > min(ignore_above, 1 - EQUAL)  # including its own
        negative = torch.cat([negative, (query @ keys.T / temperature).masked_fill(same, -torch.inf)], dim=-1)
    return (torch.cat([positive, negative], dim=-1).logsumexp(dim=-1) - positive[..., 0]).mean(dim=-1)


def similarity_distil(student: Tensor, others: Tensor, teacher: Tensor) -> Tensor:
    """Keep sentences as near to each other as in the teacher's space: the squared difference of cosines.

    This is the similarity-preserving distillation of Tung & Mori 2019 (eq. 2 to 4), on cosines instead of normalised
    rows, and across languages: `others` are the student's vectors of the sentences to compare with [B, D]. Several
    sides [S, L, B, D] may be compared with the same others [L, B, D] at once.
    """
    own, key = unit(student) @ unit(others).mT, unit(teacher.detach())
    return (own - key @ key.T).square().mean(dim=(-2, -1))


def similarity(u: Tensor, v: Tensor, scores: Tensor) -> Tensor:
    """Agree with people on the similarity of sentence pairs: 1 - Pearson's correlation of cosines and scores [B].

    The loss is 1 if all scores, or all cosines, are equal.
    """
    cosines = (unit(u) * unit(v)).sum(dim=-1)  # [..., B]
    wanted, actual = (x - x.mean(dim=-1, keepdim=True) for x in (scores.to(cosines.dtype), cosines))
    return 1 - (unit(wanted) * unit(actual)).sum(dim=-1)


class Whitening(NamedTuple):
    """A linear map that gives all directions of a set of vectors nearly the same variance."""

    centre: Tensor  # their mean [D]
    matrix: Tensor  # the map of the centred vectors [D, D]

    @staticmethod
    def fit(vectors: Tensor) -> "Whitening":
        """Fit the map to a sample of vectors [n, D]."""
        centre = vectors.mean(dim=0)
        variances, axes = torch.linalg.eigh(torch.cov((vectors - centre).T))
        return Whitening(centre, axes / (variances + FLAT * variances.mean()).sqrt())

    def __call__(self, vectors: Tensor) -> Tensor:
        """Vectors [B, D] in the whitened space."""
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

    The squared error is taken in the whitened space, where all directions count alike; in the plain space, a few hold
    most of the variance. Finding the right vector in the batch, by cosine in that space, stresses what distinguishes
    sentences. It has the weight `contrast`; pairs in `ignore` [B, B] are not negatives of each other.
    """
    student, teacher = whitening(student), whitening(teacher.detach())
    error = (student - teacher).square().mean()
    if not contrast:
        return error
    return error + contrast * align(student, teacher, temperature=temperature, ignore=ignore) / 2


@dataclass(frozen=True)
class Targets:
    """A sparse distribution over the pieces for each sentence."""

    ids: Tensor  # pieces with mass [M]
    sentence: Tensor  # the sentence of each entry [M]
    weight: Tensor  # its mass [M]; those of a sentence sum to 1; a sentence without entries predicts nothing

    @staticmethod
    def join(parts: "Sequence[Targets]", count: int) -> "Targets":
        """Join the targets of several batches of `count` sentences, batch after batch."""
        sentences = [part.sentence + i * count for i, part in enumerate(parts)]
        ids, weights = ([getattr(part, name) for part in parts] for name in ("ids", "weight"))
        return Targets(torch.cat(ids), torch.cat(sentences), torch.cat(weights))


def uniform_targets(ids: Tensor, lengths: Tensor) -> Targets:
    """All mass spread evenly over the distinct pieces of each sentence (XTR, mao2021 eq. 2 and 3).

    `ids` are the pieces of all sentences, one after another [N]; `lengths` are their numbers of pieces [B].
    """
    # One number for sentence and piece, because finding distinct rows of a matrix takes fifty times as long.
    distinct = torch.unique(torch.repeat_interleave(lengths.long()) << 32 | ids)
    return even_targets(distinct & 0xFFFFFFFF, distinct >> 32, len(lengths))


def even_targets(ids: Tensor, sentence: Tensor, count: int) -> Targets:
    """The same mass for all pieces of each of `count` sentences."""
    return Targets(ids, sentence, 1.0 / torch.bincount(sentence, minlength=count)[sentence])


def smlm_targets(hidden: Tensor, present: Tensor) -> Targets:
    """All mass on the piece that was hidden in the pair (SMLM, mao2021 eq. 1); the same target for both sides.

    The masked side predicts it from the rest of the sentence, the other side from the translation. `hidden` has the
    piece of each pair [B], `present` whether one was hidden [B]; a pair without one has no entry.
    """
    sentence = present.nonzero()[:, 0]
    return Targets(hidden[sentence], sentence, torch.ones(len(sentence), device=hidden.device))


def ugt_targets(hidden: Tensor, masked: Tensor, other: Targets) -> Targets:
    """Half of the mass on the hidden piece, half as before (UGT = SMLM + XTR, mao2021 eq. 4), for the masked sentences.

    `hidden` has the piece of each sentence [B], `masked` whether one was hidden in it [B], `other` is the uniform
    target over the other side's pieces. A piece that is hidden on this side and present on the other one gets both
    masses. If the other side is empty, the hidden piece gets all mass.
    """
    sentences = masked.nonzero()[:, 0]
    shared = torch.zeros_like(masked).index_fill_(0, other.sentence, True)
    weight = torch.where(masked[other.sentence], 0.5 * other.weight, other.weight)
    return Targets(
        torch.cat([other.ids, hidden[sentences]]),
        torch.cat([other.sentence, sentences]),
        torch.cat([weight, torch.where(shared[sentences], 0.5, 1.0)]),
    )


def generative_loss(hidden: Tensor, table: Tensor, bias: Tensor, targets: Targets) -> Tensor:
    """Cross-entropy of softmax(table . hidden + bias) against sparse targets (mao2021 eq. 1 to 4).

    Exact without a dense [B, V] target: logsumexp(logits) - sum_i q_i logit_i. `hidden` is the output of the generative
    head [B, D], the table is the encoder's [V, D]; the mean is over the batch, and a sentence without an entry adds 0.
    """
    logits = hidden @ table.T + bias  # [B, V]
    hit = (targets.weight * logits[targets.sentence, targets.ids]).sum()
    mass = targets.weight.new_zeros(len(hidden)).index_add_(0, targets.sentence, targets.weight)
    return ((mass * logits.logsumexp(dim=1)).sum() - hit) / max(len(hidden), 1)


def token_loss(hidden: Tensor, table: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
    """Cross-entropy of hidden tokens, each predicted from its own position (MLM and TLM, the baselines of mao2021).

    Like `generative_loss`, for the hidden tokens [M, D] with the pieces `ids` [M]; 0 if there are none.
    """
    targets = Targets(ids, torch.arange(len(ids), device=ids.device), torch.ones(len(ids), device=ids.device))
    return generative_loss(hidden, table, bias, targets)


def word_ctl(
    query: Tensor, table: Tensor, bag: Targets, allowed: Tensor, *, temperature: float, negatives: int
) -> Tensor:
    """Distinguish the pieces of a pair from the rest of the vocabulary (HiCTL, wei2020 eq. 5 and 6).

    The score of a pair [B, D] and a piece [V, D] is the cosine of their vectors, divided by the temperature. Each piece
    in a pair's bag, from both sides and of any weight, competes separately with `negatives` pieces from outside the bag
    (eq. 5). Only `allowed` pieces count [V], in the bag and as negatives: a piece that is never a negative, such as
    [MASK], would only be pulled towards every pair.

    Returns the mean over the pairs of the mean over their pieces (eq. 6); a pair without pieces adds 0.
    """
    count = allowed[bag.ids]
    bag = even_targets(bag.ids[count], bag.sentence[count], len(query))
    scores = unit(query) / temperature @ unit(table).T  # [B, V]
    drawn, real = sample_negatives(scores.detach(), bag, allowed, count=negatives)
    against = scores.gather(1, drawn).masked_fill(~real, lowest(scores)).logsumexp(dim=1)  # [B]
    right = scores[bag.sentence, bag.ids]  # [M]
    # -log(e^right / (e^right + e^against))
    return (bag.weight * F.softplus(against[bag.sentence] - right)).sum() / max(len(query), 1)


def sample_negatives(scores: Tensor, bag: Targets, allowed: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Draw distinct pieces from outside each bag, in proportion to softmax(scores), so hard ones more often (wei2020).

    The largest of scores plus Gumbel noise are such a draw without replacement (Kool et al. 2019). The scores [B, V]
    have no gradient; only `allowed` pieces [V] are drawn. Returns K = `count` pieces per pair, or V if that is less,
    and which of them count, both [B, K]: all, unless there are fewer outside the bag.
    """
    # Minus the logarithm of exponential noise is Gumbel noise. In place, because no tensor is larger than this one.
    keys = torch.empty_like(scores).exponential_().log_().neg_().add_(scores)
    keys.masked_fill_(~allowed, -torch.inf)
    keys[bag.sentence, bag.ids] = -torch.inf
    best, drawn = keys.topk(min(count, scores.shape[1]), dim=1, sorted=False)
    return drawn, best > -torch.inf
