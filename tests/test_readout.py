"""The readout against a regression by NumPy."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from trainings import toy_store

from xsent.train import teachers
from xsent.train.data.store import Store
from xsent.train.model import Encoder, ModelConfig
from xsent.train.teachers import RIDGE, fit_readout

DIM = 8


class Looks:
    """A teacher whose vectors are made up."""

    def __init__(self, pairs: int) -> None:
        self.vectors = np.random.default_rng(2).normal(size=(pairs, DIM)).astype(np.float32)

    def rows(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of some pairs."""
        return self.vectors[pairs]


@pytest.fixture
def store(tmp_path: Path, mini_checkpoint: Path) -> Store:
    """Pairs, and English sentences alone."""
    alone = "".join(f"wiki\tone cat sees {number} dogs\n" for number in range(50))
    return toy_store(tmp_path, mini_checkpoint / "sentencepiece.model", more=alone)


def test_it_is_the_ridge_regression_of_both_sides(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "CHUNK", 77)
    encoder = Encoder(ModelConfig(vocab_size=500, dim=DIM, num_layers=1, num_heads=2, ffn_dim=8, readout=True))
    torch.nn.init.normal_(encoder.table.weight, generator=torch.Generator().manual_seed(1))
    teacher, pairs = Looks(len(store)), np.arange(10, len(store))
    assert encoder.readout is not None
    start = encoder.readout.weight.clone()
    assert torch.equal(start, torch.eye(DIM))
    fit_readout(encoder, store, teacher, pairs)

    means, targets = [], []
    unit = teacher.vectors / np.linalg.norm(teacher.vectors, axis=1, keepdims=True)
    table = encoder.table.weight.detach().double().numpy()
    for pair in pairs:
        for side in (0, 1):
            if len(ids := store.tokens(np.array([pair]), side, 64).ids.numpy()):
                means.append(table[ids].mean(axis=0))
                targets.append(unit[pair])
    x, y = np.array(means), np.array(targets)
    assert len(x) == 2 * 190 + 50
    # The offset goes free; what is kept small is the rest, by a share of the mean square.
    penalty = RIDGE * (x**2).sum(axis=0).mean()
    centred, wanted = x - x.mean(axis=0), y - y.mean(axis=0)
    weight = np.linalg.solve(centred.T @ centred + penalty * np.eye(DIM), centred.T @ wanted)
    assert np.allclose(encoder.readout.weight.detach().numpy(), weight.T, atol=1e-5)
    assert np.allclose(encoder.readout.bias.detach().numpy(), y.mean(axis=0) - x.mean(axis=0) @ weight, atol=1e-5)


def test_few_of_many_pairs_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "READ_OUT", 40)
    read: list[int] = []

    class Counting(Looks):
        def rows(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
            read.extend(pairs.tolist())
            return super().rows(pairs)

    encoder = Encoder(ModelConfig(vocab_size=500, dim=DIM, num_layers=1, num_heads=2, ffn_dim=8, readout=True))
    fit_readout(encoder, store, Counting(len(store)), np.arange(len(store)))
    assert len(read) == 40 and read[0] == 0 and read[-1] == len(store) - 1
