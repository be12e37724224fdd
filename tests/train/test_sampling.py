"""Sampling: shares, epochs without repetition, windows that follow from (seed, number) alone, neighbouring clusters."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent_train.data.batches import chained
from xsent_train.data.sampling import cell_shares, draw, reweigh, shuffled, window_rows


def test_shares_follow_temperature_and_weights() -> None:
    counts = {("talk", "de"): 100, ("manual", "de"): 10_000}
    assert cell_shares(counts, temperature=1, weights={}) == pytest.approx(
        {("talk", "de"): 1 / 101, ("manual", "de"): 100 / 101}
    )
    assert cell_shares(counts, temperature=0.5, weights={"talk": 10})[("talk", "de")] == pytest.approx(0.5)
    assert cell_shares(counts, temperature=0, weights={})[("talk", "de")] == pytest.approx(0.5)


def test_a_stage_weighs_sources_anew(caplog: pytest.LogCaptureFixture) -> None:
    cells = [("law", "de"), ("law", "fr"), ("talk", "fr")]
    shares = np.array([0.5, 0.3, 0.2])
    assert reweigh(shares, cells, {}) is shares
    np.testing.assert_allclose(reweigh(shares, cells, {"talk": 4.0}), [0.5 / 1.6, 0.3 / 1.6, 0.8 / 1.6])
    assert reweigh(shares, cells, {"law": 0.0}).tolist() == [0, 0, 1]
    assert reweigh(shares, cells, {"walk": 3.0, "law": 0.0}).tolist() == [0, 0, 1]  # of a larger corpus, or a mistake
    assert "weights name no known source: walk; sources are law, talk" in caplog.text
    with pytest.raises(DataError, match="exclude all sources"):
        reweigh(shares, cells, {"law": 0, "talk": 0})


@given(size=st.integers(1, 60), start=st.integers(0, 200), seed=st.integers(0, 9))
def test_every_epoch_of_a_cell_visits_each_pair_once(size: int, start: int, seed: int) -> None:
    epoch = start // size
    assert sorted(draw(seed, 0, size, epoch * size, (epoch + 1) * size)) == list(range(size))
    whole = draw(seed, 0, size, 0, start + 50)
    assert np.array_equal(draw(seed, 0, size, start, start + 50), whole[start:])


def rows_of(window: int) -> NDArray[np.int64]:
    return window_rows(np.array([0, 10, 1010]), np.array([0.25, 0.75]), 80, seed=1, window=window)


def test_a_window_has_the_cells_in_their_shares() -> None:
    rows = np.concatenate([rows_of(window) for window in range(20)])
    assert len(rows) == 20 * 80
    assert (rows < 10).mean() == pytest.approx(0.25, abs=0.02)
    counts = np.bincount(rows[rows < 10])
    assert counts.max() - counts.min() <= 8  # a small cell is repeated evenly


def test_shuffling_moves_batches_and_leaves_them_whole() -> None:
    batches = rows_of(0).reshape(10, 8)
    moved = shuffled(batches, seed=1, window=0)
    assert not np.array_equal(moved, batches)
    assert sorted(map(tuple, moved)) == sorted(map(tuple, batches))
    assert np.array_equal(shuffled(batches, seed=1, window=0), moved)


def test_clusters_side_by_side_are_neighbours() -> None:
    degrees = torch.tensor([40.0, 90, 60, 10, 95])  # from 40 to 60, the nearest, to 90, to 95, and back to what is left
    radians = torch.deg2rad(degrees)
    centroids = torch.stack([radians.cos(), radians.sin()], dim=1)
    assert torch.equal(chained(centroids), centroids[[0, 2, 1, 4, 3]])
