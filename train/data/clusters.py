"""Groups of pairs that mean similar things, so that a batch can be made of hard negatives.

Random negatives are told apart within minutes. Spherical k-means over the English vectors of the current table puts
sentences that it confuses into one cluster; the sampler then cuts its batches along the clusters, which are numbered so
that neighbours have numbers side by side. The table alone, as it is a hundred times faster than the layers, and near
enough to say what is similar; without what all its vectors have in common.
"""

import logging
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from xsent.train.data.store import Store
from xsent.train.model import Encoder

logger = logging.getLogger(__name__)

CHUNK = 16_384  # pairs encoded at a time
SAMPLE_PER_CLUSTER = 64  # pairs that the centroids are fitted on
ITERATIONS = 8
DIM = 128  # numbers of a vector that are compared, the first


@torch.inference_mode()
def cluster_pairs(store: Store, encoder: Encoder, *, clusters: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    """The cluster of every pair of a store, chunk after chunk; 0 for those that are never drawn."""
    rng = np.random.default_rng((seed, 3))
    drawn = np.sort(store.pairs(np.arange(store.cell_starts[-1])))
    sample = np.unique(drawn[rng.integers(len(drawn), size=SAMPLE_PER_CLUSTER * clusters)])
    parts = (sample[start : start + CHUNK] for start in range(0, len(sample), CHUNK))
    vectors = torch.cat([english_means(store, encoder, part) for part in parts])
    common = vectors.mean(dim=0)
    vectors = F.normalize(vectors - common, dim=1)
    first = rng.choice(len(sample), min(clusters, len(sample)), replace=False)
    centroids = vectors[torch.from_numpy(first)]
    for _ in range(ITERATIONS):
        centroids = move(centroids, vectors)
    centroids = chained(centroids)
    for start in tqdm(range(0, len(store), CHUNK), desc="clusters", unit="chunk", disable=None):
        numbers = np.zeros(min(CHUNK, len(store) - start), np.uint16)
        rows = drawn[slice(*np.searchsorted(drawn, [start, start + CHUNK]))]
        found = nearest_centroid(english_means(store, encoder, rows) - common, centroids)
        numbers[rows - start] = found.cpu().numpy()
        yield numbers
    logger.info("%d pairs in %d clusters", len(drawn), len(centroids))


def english_means(store: Store, encoder: Encoder, rows: NDArray[np.int64]) -> Tensor:
    """The mean rows of the English sides of some pairs [rows, DIM]."""
    tokens = store.tokens(rows, 0, encoder.config.max_length).to(encoder.table.weight.device)
    return encoder.static(tokens)[:, :DIM]


def nearest_centroid(vectors: Tensor, centroids: Tensor) -> Tensor:
    """The centroid with the largest cosine for each vector [n]."""
    return torch.cat(
        [(vectors[i : i + CHUNK] @ centroids.T).argmax(dim=1) for i in range(0, max(len(vectors), 1), CHUNK)]
    )


def move(centroids: Tensor, vectors: Tensor) -> Tensor:
    """The direction of the mean of each cluster; an empty cluster stays where it is."""
    assigned = nearest_centroid(vectors, centroids)
    sums = torch.zeros_like(centroids).index_add_(0, assigned, vectors)
    empty = torch.bincount(assigned, minlength=len(centroids)) == 0
    return F.normalize(torch.where(empty[:, None], centroids, sums), dim=1)


def chained(centroids: Tensor) -> Tensor:
    """The centroids in the order of a walk that goes on to the nearest one where it has not been yet."""
    similar = centroids @ centroids.T
    path = [0]
    for _ in range(len(centroids) - 1):
        similar[:, path[-1]] = -torch.inf
        path.append(int(similar[path[-1]].argmax()))
    return centroids[path]
