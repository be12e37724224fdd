"""A linear map from the mean of a sentence's rows to its vector: an encoder with layers as one without."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.train.data.batching import Looks
from xsent.train.data.sampling import evenly
from xsent.train.data.store import Store
from xsent.train.model import Encoder

CHUNK = 8192  # pairs read at a time
PAIRS = 200_000  # at most; the map has a row for each dimension
RIDGE = 1e-3  # of the mean variance, added to that of every direction


@torch.no_grad()
def fit_readout(encoder: Encoder, store: Store, teacher: Looks, pairs: NDArray[np.int64]) -> None:
    """Set the readout of an encoder by ridge regression of the teacher's vectors on the means of its rows.

    Both sides of a pair are to lie at the teacher's vector of its English side. In double precision, and in one pass:
    only sums over the sentences are kept.
    """
    assert encoder.readout is not None
    device, width = encoder.table.weight.device, encoder.config.dim
    squares = torch.zeros(width + 1, width + 1, dtype=torch.float64, device=device)
    products = torch.zeros(width + 1, width, dtype=torch.float64, device=device)
    chosen = pairs[evenly(len(pairs), PAIRS)]
    for start in range(0, len(chosen), CHUNK):
        part = chosen[start : start + CHUNK]
        targets = F.normalize(torch.from_numpy(teacher.rows(part)).to(device), dim=1).double()
        for side in (0, 1):
            tokens = store.tokens(part, side, encoder.config.max_length).to(device)
            means = F.pad(encoder.static(tokens), (0, 1), value=1.0).double()  # [B, D + 1]
            there = (tokens.lengths > 0).double()[:, None]  # English alone has no other side
            squares += (means * there).T @ means
            products += (means * there).T @ targets
        store.forget()
    solved = ridge(squares, products).to(encoder.readout.weight.dtype)
    encoder.readout.weight.copy_(solved[:-1].T)
    encoder.readout.bias.copy_(solved[-1])


def ridge(squares: Tensor, products: Tensor) -> Tensor:
    """The map [D + 1, E] of least squares, kept small but for its offset, the last row."""
    penalty = RIDGE * squares.diagonal()[:-1].mean() * torch.ones_like(squares.diagonal())
    penalty[-1] = 0
    solved: Tensor = torch.linalg.solve(squares + penalty.diag(), products)
    return solved
