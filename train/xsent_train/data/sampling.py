"""The order in which pairs are drawn: by source and language with a temperature, and without any state.

A cell is the set of pairs of one source and language. Draw number i of a cell is a pure function of (seed, cell, i),
so a resumed training sees exactly the same pairs as an uninterrupted one, whatever the size of the corpus.
"""

import logging
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError

logger = logging.getLogger(__name__)

Cell = tuple[str, str]


def cell_shares(counts: Mapping[Cell, int], *, temperature: float, weights: Mapping[str, float]) -> dict[Cell, float]:
    """The share of each cell in training: proportional to weight x size^temperature.

    A temperature of 1 keeps the proportions of the corpus, 0 makes all cells equal. Weights are by source, else 1.
    """
    mass = {cell: weights.get(cell[0], 1.0) * n**temperature for cell, n in counts.items()}
    total = math.fsum(mass.values())
    return {cell: m / total for cell, m in mass.items()}


def reweigh(shares: NDArray[np.float64], cells: Sequence[Cell], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """Multiply the shares of cells [cells] by factors by source. Raises DataError if nothing is left."""
    if not weights:
        return shares
    sources = [source for source, _ in cells]
    if unknown := sorted(set(weights) - set(sources)):
        known = ", ".join(sorted(set(sources)))
        logger.warning("weights name no known source: %s; sources are %s", ", ".join(unknown), known)
    mass = shares * [weights.get(source, 1.0) for source in sources]
    if not mass.any():
        raise DataError("the weights of a stage exclude all sources; give one a weight above 0")
    return np.asarray(mass / mass.sum(), np.float64)


def draw(seed: int, cell: int, size: int, start: int, stop: int) -> NDArray[np.int64]:
    """Draws `start` to `stop` (exclusive) of a cell; every epoch visits each of its `size` pairs once.

    The order of an epoch is an affine permutation i -> (a i + b) mod size with a coprime to size.
    """
    rows = []
    for epoch in range(start // size, (stop - 1) // size + 1):
        rng = np.random.default_rng((seed, cell, epoch))
        step, shift = coprime(rng, size), int(rng.integers(size))
        first = epoch * size
        draws = np.arange(max(start, first), min(stop, first + size), dtype=np.int64) - first
        rows.append((draws * step + shift) % size)
    return np.concatenate(rows) if rows else np.empty(0, np.int64)


def evenly(count: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of the numbers from 0 to `count` (exclusive), evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(np.int64))


def coprime(rng: np.random.Generator, size: int) -> int:
    """A random number below `size` that shares no factor with it (1 for a size of 1)."""
    while True:
        candidate = int(rng.integers(1, max(size, 2)))
        if math.gcd(candidate, size) == 1:
            return candidate


def window_rows(
    cell_starts: NDArray[np.int64], shares: NDArray[np.float64], size: int, *, seed: int, window: int
) -> NDArray[np.int64]:
    """The rows of a store in a window of `size` pairs, in random order; a function of the seed and the window's number.

    A window is a fixed number of batches drawn together, to which each cell contributes its share. The rows of cell c
    are cell_starts[c] to cell_starts[c + 1] [cells + 1]; the shares add up to 1 [cells].
    """
    rng = np.random.default_rng((seed, 1, window))
    draws = size + len(shares)  # a few more than needed, because each cell is rounded down
    parts = []
    for cell, share in enumerate(shares):
        begin, end = (math.floor(w * draws * share) for w in (window, window + 1))
        count = int(cell_starts[cell + 1] - cell_starts[cell])
        if count and end > begin:
            parts.append(cell_starts[cell] + draw(seed, cell, count, begin, end))
    return rng.permutation(np.concatenate(parts))[:size]


def shuffled(batches: NDArray[np.int64], *, seed: int, window: int) -> NDArray[np.int64]:
    """The batches of a window in random order [batches of a window, batch_size]."""
    return np.random.default_rng((seed, 2, window)).permutation(batches)
