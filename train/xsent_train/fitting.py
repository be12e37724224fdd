"""What is fitted to a trained encoder without training it: readouts and their queries, maps to other spaces.

All of these but one are in closed form. Shapes: B sentences, N tokens of the batch in one row, D dimensions.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xsent_train.losses import contrastive_distil, distil
from xsent_train.model import CHUNK, Encoder
from xsent_train.tokens import Tokens

RIDGE = 1e-3  # share of the mean variance that is added to the variance of every number
SPACE_STEPS = 400  # to fit a matrix into another model's space, after the ridge regression
SPACE_BATCH = 1024
SPACE_RATE = 3e-3
# For vectors that are spread as widely as can be. Those of some models are all near each other.
SPACE_TEMPERATURE = 0.05
SPACE_EQUAL = 0.93  # sentences with a larger cosine count as the same
SPACE_NEAR = 0.5  # weight of the cosine to a sentence's own vector, relative to finding that vector


@torch.no_grad()
def fit_readouts(encoder: Encoder, depths: Sequence[int], sides: Sequence[Tokens], targets: Tensor) -> None:
    """Fit an encoder's readouts at `depths` to targets [n, D] of sentences on one or two sides of n pairs."""
    means: list[list[Tensor]] = [[] for _ in depths]
    wanted = []
    for here, there, framed, states in _in_chunks(encoder, sides):
        for mean, depth in zip(means, depths, strict=True):
            mean.append(encoder.pool(states[depth], framed, depth)[there])
        wanted.append(targets[here].to(there.device)[there])
    for mean, depth in zip(means, depths, strict=True):
        readout = encoder.readout(depth)
        matrix = ridge(_with_ones(torch.cat(mean)), F.normalize(torch.cat(wanted), dim=1))
        readout.weight.copy_(matrix[:-1].T)
        readout.bias.copy_(matrix[-1])


@torch.no_grad()
def fit_queries(encoder: Encoder, wanted: Mapping[int, tuple[float, float | None]], sides: Sequence[Tokens]) -> None:
    """Fit the queries of the readouts at some depths to the sentences of one or two sides.

    Each depth needs two numbers: the token frequency h at which a piece's weight is halved, so that a piece of
    frequency p has the weight h / (h + p) (Arora et al. 2017, section 3); and the weight of the first token, or None to
    derive it from its frequency too. The query is the ridge regression of the logarithms of these weights on the
    states.
    """
    ids = torch.cat([encoder.framed(tokens).ids for tokens in sides])
    shares = (torch.bincount(ids, minlength=encoder.config.vocab_size) / len(ids)).to(encoder.table.weight.device)
    logs, size = {}, encoder.config.dim + 1
    for depth, (half, first) in wanted.items():
        logs[depth] = (half / (half + shares)).log()
        if first is not None:
            logs[depth][encoder.config.first] = math.log(first)
    squares, products = ({depth: shares.new_zeros(size, n).double() for depth in wanted} for n in (size, 1))
    for _, _, framed, states in _in_chunks(encoder, sides):
        for depth, log in logs.items():
            x = _with_ones(states[depth])
            squares[depth] += x.T @ x
            products[depth] += x.T @ log[framed.ids][:, None]
    for depth in wanted:
        encoder.readout(depth).query.copy_(solve_ridge(squares[depth], products[depth])[:-1, 0])


@torch.no_grad()
def project_languages(encoder: Encoder, directions: int, sides: Sequence[Tokens], language: Tensor) -> None:
    """Project the direction of language out of an encoder's readouts, in closed form.

    The sides are English sentences and their translations into the languages with these numbers [n]. The difference
    between the mean of a language and the mean of its English sentences is a direction of language; every depth has its
    own. Along the first `directions` principal axes of these, vectors get the mean over all sentences instead of their
    own value.
    """
    read: dict[int, list[Tensor]] = {depth: [] for depth in encoder.config.depths}
    for _, _, framed, states in _in_chunks(encoder, sides):
        for depth, parts in read.items():
            parts.append(encoder.readout(depth)(encoder.pool(states[depth], framed, depth)))
    languages = sorted(set(language.tolist()))
    for depth, parts in read.items():
        vectors = torch.cat(parts).double()
        english, others = F.normalize(vectors, dim=1).chunk(2)
        shift = others - english
        means = torch.stack([shift[language == number].mean(dim=0) for number in languages])
        axes = torch.linalg.svd(means, full_matrices=False).Vh[:directions]  # [directions, D]
        readout = encoder.readout(depth)
        along = axes.T @ axes
        readout.weight.sub_((along @ readout.weight.double()).to(readout.weight.dtype))
        readout.bias.sub_((along @ (readout.bias.double() - vectors.mean(dim=0))).to(readout.bias.dtype))


def _in_chunks(encoder: Encoder, sides: Sequence[Tokens]) -> Iterator[tuple[slice, Tensor, Tokens, list[Tensor]]]:
    """Yields chunks of each side: the slice, which sentences are not empty, their framed tokens, and their states."""
    for tokens in sides:
        for start in range(0, len(tokens.lengths), CHUNK):
            here = slice(start, min(start + CHUNK, len(tokens.lengths)))
            part = tokens.part(here.start, here.stop).to(encoder.table.weight.device)
            framed = encoder.framed(part)
            yield here, part.lengths > 0, framed, encoder.states(framed)


def _with_ones(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def fit_space(own: Sequence[Tensor], vectors: Tensor) -> Tensor:
    """The matrix [D, E] from an encoder's space to another model's, given unit vectors of both models.

    `own` are the encoder's of one or more sides [n, D], such as sentences and their translations; `vectors` are the
    other model's of the first side [n, E]. The matrix starts as the ridge regression of that side. Then a sentence of
    each side has to find its vector in batches that are, in turn, random sentences and neighbours
    (`contrastive_distil`): regression only brings vectors near, but an index is searched by rank.
    """
    matrix = nn.Parameter(ridge(own[0], vectors))
    optimizer = torch.optim.Adam([matrix], lr=SPACE_RATE)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, SPACE_STEPS)
    generator = torch.Generator().manual_seed(0)
    spread = 1 - float(vectors.mean(dim=0).square().sum())  # 1 - the mean cosine of two vectors
    size = min(SPACE_BATCH, len(vectors))
    for step in range(SPACE_STEPS):
        batch = torch.randint(len(vectors), (size,), generator=generator)
        if step % 2:
            batch = (vectors @ vectors[batch[0]]).topk(size).indices
        target = vectors[batch]
        loss = torch.zeros(())
        for x in own:
            mapped = x[batch] @ matrix
            find = contrastive_distil(
                mapped,
                target,
                target[:0],
                temperature=SPACE_TEMPERATURE * spread,
                ignore_above=1 - (1 - SPACE_EQUAL) * spread,
                batch=target,
            )
            loss = loss + find + SPACE_NEAR * distil(mapped, target)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        decay.step()
    return matrix.detach()


def ridge(x: Tensor, y: Tensor) -> Tensor:
    """The ridge-regression matrix [D, E] from x [n, D] to y [n, E]."""
    wide = x.double()
    return solve_ridge(wide.T @ wide, wide.T @ y.double()).to(x.dtype)


def solve_ridge(squares: Tensor, products: Tensor) -> Tensor:
    """The ridge-regression matrix [D, E] from x^T x [D, D], which is changed in place, and x^T y [D, E]."""
    squares.diagonal().add_(RIDGE * squares.trace() / len(squares))
    matrix: Tensor = torch.linalg.solve(squares, products)
    return matrix
