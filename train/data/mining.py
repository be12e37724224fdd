"""Hard negatives: the nearest wrong neighbours of each pair under the current encoder.

Random negatives are told apart within minutes. At the start of every window its pairs are encoded, and pairs that the
encoder confuses are put next to each other, so that they meet in one batch; the batch's own negatives do the rest.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.files import atomic_file
from xsent.train.config import StageConfig
from xsent.train.data.store import Store
from xsent.train.model import Encoder

CHUNK = 1024  # pairs encoded or compared at a time
SPARE = 4  # neighbours looked up for each one wanted: others may have taken the nearest


class Miner:
    """Orders windows by what the encoder confuses; keeps each order on disk, so that a resume sees the same one."""

    def __init__(self, store: Store, encoder: Encoder, stage: StageConfig, folder: Path) -> None:
        """Set up mining.

        Args:
            store: The pairs.
            encoder: The encoder in training.
            stage: Neighbours, threshold of false negatives, prefixes.
            folder: Where orders are kept.
        """
        self._store, self._encoder, self._stage, self._folder = store, encoder, stage, folder
        self._dim = min(stage.prefixes or (encoder.config.dim,))

    def __call__(self, window: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The order of a window's pairs in which confused ones stand together."""
        path = self._folder / f"window-{window:06d}.u32"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            order = self._mine(pairs)
            with atomic_file(path) as file:
                file.write(order.astype(np.uint32).tobytes())
        return np.fromfile(path, np.uint32).astype(np.int64)

    @torch.inference_mode()
    def _mine(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        was_training = self._encoder.training
        self._encoder.eval()
        english, translations = (self._vectors(pairs, side) for side in (0, 1))
        self._encoder.train(was_training)
        group = torch.from_numpy(self._store.group[pairs].astype(np.int64)).to(english.device)
        count = self._stage.neighbours * SPARE
        near = nearest_wrong(english, translations, group, count=count, ignore_above=self._stage.ignore_above)
        return group_neighbours(near.cpu().numpy(), self._stage.neighbours)

    def _vectors(self, pairs: NDArray[np.int64], side: int) -> Tensor:
        device = self._encoder.table.weight.device
        parts = []
        for start in range(0, len(pairs), CHUNK):
            tokens = self._store.tokens(pairs[start : start + CHUNK], side, self._stage.max_tokens)
            parts.append(F.normalize(self._encoder(tokens.to(device))[:, : self._dim].float(), dim=1))
        return torch.cat(parts)


def nearest_wrong(english: Tensor, translations: Tensor, group: Tensor, *, count: int, ignore_above: float) -> Tensor:
    """The pairs whose translation is nearest to each English sentence without being its own.

    A neighbour of the same English sentence, or whose English is as near as `ignore_above`, says the same: it comes
    last, as does the pair itself.

    Args:
        english: Unit vectors [n, D].
        translations: Unit vectors [n, D].
        group: Identity of each English sentence [n].
        count: Neighbours to find.
        ignore_above: Cosine of two English sentences above which they mean the same.

    Returns:
        Indices [n, min(count, n - 1)], the nearest first; -1 where it is a false negative.
    """
    found = []
    for start in range(0, len(english), CHUNK):
        part = slice(start, start + CHUNK)
        same = group[part, None] == group[None, :]
        if ignore_above < 1:
            same |= english[part] @ english.T > ignore_above
        scores = (english[part] @ translations.T).masked_fill(same, -torch.inf)
        best, index = scores.topk(min(count, len(english) - 1), dim=1)
        found.append(index.masked_fill(best == -torch.inf, -1))
    return torch.cat(found)


def group_neighbours(near: NDArray[np.int64], neighbours: int) -> NDArray[np.int64]:
    """Put each pair's nearest neighbours behind it, every pair once.

    Args:
        near: Neighbours of each pair, the nearest first, -1 for none [n, count].
        neighbours: How many follow a pair; those that stand somewhere already do not.

    Returns:
        A permutation of the pairs [n].
    """
    free = np.ones(len(near), np.bool_)
    order: list[int] = []
    for seed, candidates in enumerate(near):  # the pairs were drawn at random: so are the seeds
        if not free[seed]:
            continue
        wanted = candidates[candidates >= 0]
        followers = wanted[free[wanted]][:neighbours]
        free[seed] = False
        free[followers] = False
        order += [seed, *followers.tolist()]
    return np.array(order, np.int64)


def forget_orders(folder: Path, window: int) -> None:
    """Delete the orders of the windows before this one."""
    for path in folder.glob("window-*.u32"):
        if int(path.stem.removeprefix("window-")) < window:
            path.unlink()
