"""Mined negatives: the nearest wrong neighbours, without false ones, every pair once."""

from pathlib import Path

import numpy as np
import pytest
import torch

from xsent.train.data.mining import forget_orders, group_neighbours, nearest_wrong


def test_the_nearest_wrong_translation_comes_first() -> None:
    english = torch.eye(3)
    # The first sentence is nearest to its own translation, then to the third, then to the second.
    translations = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0, 0.0], [0.1, 1.0, 0.0], [0.5, 0.0, 1.0]]))
    near = nearest_wrong(english, translations, torch.arange(3), count=2, ignore_above=1.0)
    assert near[0].tolist() == [2, 1]


def test_what_says_the_same_is_no_negative() -> None:
    english = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.05], [0.0, 1.0], [1.0, 0.0]]))
    group = torch.tensor([0, 1, 2, 0])  # the last is the first again
    near = nearest_wrong(english, english, group, count=3, ignore_above=1.0)
    assert near[0].tolist() == [1, 2, -1]
    near = nearest_wrong(english, english, group, count=3, ignore_above=0.9)
    assert near[0].tolist() == [2, -1, -1]


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    english, translations = (torch.nn.functional.normalize(torch.randn(50, 8, generator=generator)) for _ in range(2))
    whole = nearest_wrong(english, translations, torch.arange(50), count=5, ignore_above=0.95)
    monkeypatch.setattr("xsent.train.data.mining.CHUNK", 7)
    assert torch.equal(nearest_wrong(english, translations, torch.arange(50), count=5, ignore_above=0.95), whole)


def test_each_pair_stands_once_behind_the_one_it_is_confused_with() -> None:
    near = np.array([[3, 1, 4], [0, 2, 3], [1, 0, 3], [0, 4, 1], [-1, -1, -1]])
    assert group_neighbours(near, 2).tolist() == [0, 3, 1, 2, 4]
    assert group_neighbours(near, 1).tolist() == [0, 3, 1, 2, 4]
    rng = np.random.default_rng(0)
    others = np.array([rng.permutation(np.delete(np.arange(100), i))[:12] for i in range(100)])
    order = group_neighbours(others, 3)
    assert sorted(order.tolist()) == list(range(100))


def test_orders_of_finished_windows_are_deleted(tmp_path: Path) -> None:
    for window in (3, 4, 5):
        (tmp_path / f"window-{window:06d}.u32").write_bytes(b"")
    forget_orders(tmp_path, 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["window-000004.u32", "window-000005.u32"]
    forget_orders(tmp_path / "none", 4)
