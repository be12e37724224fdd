"""The batches of a stage: functions of the step, divided among ranks, with the queue that a step would have."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from trainings import toy_store

from xsent_train.data.augmentation import Sides
from xsent_train.data.batches import Batch, Batches, ahead
from xsent_train.data.store import Store
from xsent_train.objectives import Objectives
from xsent_train.recipe import StageConfig

STAGE = StageConfig(
    name="s", num_layers=1, steps=20, batch_size=8, window=3, order="length", objectives=Objectives(align=1)
)
DISTILS = STAGE.model_copy(update={"objectives": Objectives(contrastive_distil={"queue": 20})})


NUMBERS = SimpleNamespace(rows=lambda pairs: pairs[:, None].astype(np.float32))  # the vector of a pair is its number


@pytest.fixture(scope="module")
def store(mini_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return toy_store(tmp_path_factory.mktemp("store"), mini_checkpoint / "sentencepiece.model")


def batches(store: Store, stage: StageConfig = STAGE, **settings: object) -> Batches:
    shares = np.full(len(store.cells), 1 / len(store.cells))
    return Batches(store, shares, stage, seed=1, maskable=torch.ones(500, dtype=torch.bool), max_length=64, **settings)  # type: ignore[arg-type]


def ids(batch: Batch) -> list[list[int]]:
    return [side.ids.tolist() for side in batch.hiding.sides]


def test_ranks_divide_each_batch(store: Store) -> None:
    whole = list(batches(store).since(0))
    ranks = [list(batches(store, rank=(rank, 2)).since(0)) for rank in (0, 1)]
    for one, first, second in zip(whole, *ranks, strict=True):
        for side in (0, 1):
            assert ids(first)[side] + ids(second)[side] == ids(one)[side]
        assert torch.equal(first.group, one.group) and torch.equal(second.group, one.group)


def test_processes_read_the_same_batches_as_a_thread(store: Store) -> None:
    expected = list(batches(store, DISTILS, teacher=NUMBERS).since(3))
    for now, before in zip(batches(store, DISTILS, teacher=NUMBERS, readers=2).since(3), expected, strict=True):
        assert ids(now) == ids(before)
        assert torch.equal(now.queue, before.queue) and torch.equal(now.group, before.group)


def test_what_adds_pieces_does_not_pass_the_longest(store: Store) -> None:
    stage = STAGE.model_copy(update={"respelled": 1.0, "max_tokens": 200})
    longer = SimpleNamespace(respell=lambda side, seed: side.framed(5, 6))  # as typing errors do
    made = batches(store, stage, spellings=longer)
    made = replace(made, max_length=4)
    assert max(int(side.lengths.max()) for batch in made.since(0) for side in batch.hiding.sides) == 4


def test_the_queue_holds_the_latest_vectors_a_resume_finds_it_and_drawn_names_all_pairs(store: Store) -> None:
    whole, seen = list(batches(store, DISTILS, teacher=NUMBERS).since(0)), list[float]()
    for batch in whole:
        assert batch.queue.flatten().tolist() == seen[-20:]
        seen += batch.teacher.flatten().tolist()
    for step in (1, 2, 5, 11):
        assert torch.equal(next(iter(batches(store, DISTILS, teacher=NUMBERS).since(step))).queue, whole[step].queue)
    drawn = batches(store, DISTILS).drawn().tolist()
    assert drawn == sorted(set(drawn)) and set(seen) <= set(drawn)


def test_in_order_of_length_without_shuffling(store: Store) -> None:
    lengths = []
    for batch in batches(store, STAGE.model_copy(update={"shuffle": False})).since(0):
        lengths += [sum(pair) for pair in zip(*(side.lengths.tolist() for side in batch.hiding.sides), strict=True)]
    window = 3 * 8
    for start in range(0, len(lengths) - window, window):
        assert lengths[start : start + window] == sorted(lengths[start : start + window])


def test_ahead_gives_the_same_items_and_the_same_errors() -> None:
    assert list(ahead(range(1, 5))) == [1, 2, 3, 4]
    assert list(ahead([])) == []
    breaks = mock.Mock(side_effect=OSError("gone"))
    items = ahead(chain([1], iter(breaks, None)))
    assert next(items) == 1
    with pytest.raises(OSError, match="gone"):
        next(items)


def test_swapped_copies_stand_last_with_groups_of_their_own_and_without_the_teacher(store: Store) -> None:
    def last_of_first(sides: Sides, languages: np.ndarray, most: int) -> tuple[Sides, torch.Tensor]:
        assert most == 2 and len(languages) == 8
        return sides, torch.tensor([3, 0])

    swaps, stage = SimpleNamespace(replace_last=last_of_first), STAGE.model_copy(update={"swapped": 0.25})
    plain, batch = (next(batches(store, stage, teacher=NUMBERS, swaps=s).since(4)) for s in (None, swaps))
    assert batch.copied.tolist() == [3, 0] and plain.copied is None
    assert torch.equal(batch.teacher, plain.teacher[:6])
    assert torch.equal(batch.group[:6], plain.group[:6])
    assert not set(batch.group[6:].tolist()) & set(plain.group.tolist())
