"""Linear maps fitted to a trained encoder without training it: where a new space begins, and how an old one is read.

The mean of an encoder's states after some of its layers says much of what all layers say; a ridge regression per depth
leads from it into the space of the teachers. The same leads from there into the space of one of them.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from xsent_train.model import Encoder
from xsent_train.tokens import Tokens

CHUNK = 256  # sentences encoded at a time
RIDGE = 1e-3  # of the mean variance, added to that of every number


@torch.no_grad()
def fit_readouts(encoder: Encoder, depths: Sequence[int], sides: Sequence[Tokens], targets: Tensor) -> None:
    """Fit an encoder's readouts of some depths to targets [n, D], of sentences on one or two sides of n pairs."""
    means: list[list[Tensor]] = [[] for _ in depths]
    wanted = []
    for tokens in sides:
        for here, part in _parts(encoder, tokens):
            framed = encoder.framed(part)
            states = encoder.states(framed)
            there = part.lengths > 0
            for mean, depth in zip(means, depths, strict=True):
                mean.append(encoder.mean(states[depth], framed)[there])
            wanted.append(targets[here].to(there.device)[there])
    for mean, depth in zip(means, depths, strict=True):
        readout = encoder.readouts[str(depth)]
        assert isinstance(readout, nn.Linear)
        x = torch.cat([torch.cat(mean), torch.ones(sum(map(len, mean)), 1, device=mean[0].device)], dim=1)
        matrix = ridge(x, nn.functional.normalize(torch.cat(wanted), dim=1))
        readout.weight.copy_(matrix[:-1].T)
        readout.bias.copy_(matrix[-1])


@torch.no_grad()
def fit_space(encoder: Encoder, tokens: Tokens, vectors: Tensor) -> Tensor:
    """The matrix [D, E] from an encoder's unit vectors of sentences to another model's vectors [n, E] of them."""
    own = [nn.functional.normalize(encoder(part), dim=1) for _, part in _parts(encoder, tokens)]
    return ridge(torch.cat(own).cpu(), vectors)


def ridge(x: Tensor, y: Tensor) -> Tensor:
    """The matrix [D, E] that leads from x [n, D] to y [n, E] with the least squared error, and a little less."""
    wide = x.double()
    return solve_ridge(wide.T @ wide, wide.T @ y.double()).to(x.dtype)


def solve_ridge(squares: Tensor, products: Tensor) -> Tensor:
    """The same of what is known of x and y: x^T x [D, D], to which the ridge is added, and x^T y [D, E]."""
    squares.diagonal().add_(RIDGE * squares.trace() / len(squares))
    matrix: Tensor = torch.linalg.solve(squares, products)
    return matrix


def _parts(encoder: Encoder, tokens: Tokens) -> Iterator[tuple[slice, Tokens]]:
    """Some sentences at a time, where the encoder is, and which they are."""
    for start in range(0, len(tokens.lengths), CHUNK):
        stop = min(start + CHUNK, len(tokens.lengths))
        yield slice(start, stop), tokens.part(start, stop).to(encoder.table.weight.device)
