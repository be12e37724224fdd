"""The batches of a stage: rows drawn by the sampler, ordered by length or cluster, read from the store."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from xsent.train.config import StageConfig
from xsent.train.data.sampling import Sampler
from xsent.train.data.store import Store
from xsent.train.model import Tokens

Batch = tuple[tuple[Tokens, Tokens], Tensor]  # English and translation; identity of each English sentence [B]


class Batches:
    """All batches of a stage; batch number i is a pure function of recipe, store and i."""

    def __init__(
        self,
        store: Store,
        shares: NDArray[np.float64],
        stage: StageConfig,
        *,
        seed: int,
        clusters: NDArray[np.uint16] | None = None,
    ) -> None:
        """Set up the batches.

        Args:
            store: Tokenised pairs.
            shares: Share of each cell of the store in training.
            stage: Batch size, window and order.
            seed: Seed of the draws.
            clusters: Cluster of each pair, for `order = "cluster"`.
        """
        self._store, self._stage, self._clusters = store, stage, clusters
        self._sampler = Sampler(store.cell_starts, shares, batch_size=stage.batch_size, window=stage.window, seed=seed)

    def since(self, step: int) -> Iterator[Batch]:
        """The batches of the steps from `step` to the last of the stage."""
        window = -1
        for now in range(step, self._stage.steps):
            if now // self._stage.window != window:
                window = now // self._stage.window
                cut = self._sampler.batches(window, self._key)
            yield self._read(self._store.pairs(cut[now % self._stage.window]))

    def _key(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        pairs = self._store.pairs(entries)
        if self._clusters is not None:
            return self._clusters[pairs].astype(np.int64)
        if self._stage.order == "length":
            return self._store.lengths(pairs, 0) + self._store.lengths(pairs, 1)
        return np.arange(len(entries))

    def _read(self, pairs: NDArray[np.int64]) -> Batch:
        english, translation = (self._store.tokens(pairs, side, self._stage.max_tokens) for side in (0, 1))
        return (english, translation), torch.from_numpy(self._store.group[pairs].astype(np.int64))
