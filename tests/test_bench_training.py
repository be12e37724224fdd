"""The training benchmarks: clock, corpora, tables, processes; the plain baseline is slower, not another system."""

import mmap
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from xsent.bench import processes
from xsent.bench.cli import numbers
from xsent.bench.training.plain import PlainSystem, dense_loss, dense_targets, inner_align, literal_sim, padded
from xsent.bench.training.spec import Spec, made_up_lines, made_up_words
from xsent.bench.training.speed import against_plain, by_corpus, by_layers, race, run
from xsent.bench.training.work import Clock, measure
from xsent.errors import DataError
from xsent.probe import process_memory
from xsent.train.data.batching import Batch
from xsent.train.model import ModelConfig
from xsent.train.objectives.contrastive import align, sim
from xsent.train.objectives.generative import generative_loss, ugt_targets, uniform_targets
from xsent.train.tokens import Tokens

ENGLISH = Tokens(torch.tensor([3, 4, 4, 5, 6, 7, 8]), torch.tensor([4, 1, 2]))
OTHER = Tokens(torch.tensor([9, 3, 10, 11, 12]), torch.tensor([2, 2, 1]))


def test_the_clock_leaves_out_the_last_step() -> None:
    times = iter([0.0, 0.25, 1.0, 2.0, 2.25, 4.0, 5.0, 9.0])  # asked, got, done; asked, got, done; asked, none
    batch: Any = None
    clock, turns = Clock(), []
    clock.before = turns.append
    with mock.patch("time.perf_counter", lambda: next(times)):
        batches: Iterator[Batch] = iter([mock.Mock(), mock.Mock()])
        for batch in clock.measured(batches):
            assert batch is not None
    assert clock.steps == [1.0] and clock.waits == [0.25] and turns == [0, 1, 2]
    assert clock.step == 1.0 and clock.waiting == 0.25


def test_made_up_pairs_are_different_words_of_the_wanted_length() -> None:
    words = made_up_words(1000)
    assert len(set(words)) == 1000
    lines = [line.decode().rstrip("\n").split("\t") for line in made_up_lines(2000, words=500, length=12, seed=1)]
    assert {(line[0], line[1]) for line in lines} == {("made-up", "xx")}
    lengths = [len(line[2].split()) for line in lines]
    assert 10 < sum(lengths) / len(lengths) < 14 and min(lengths) >= 2
    assert all([word + "x" for word in reversed(line[2].split())] == line[3].split() for line in lines)
    assert list(made_up_lines(5, words=500, length=12, seed=1)) == list(made_up_lines(5, words=500, length=12, seed=1))


def test_the_ratio_of_a_race_is_the_median_over_its_turns() -> None:
    ours, plain = ([(step, 2 * step) for step in steps] for steps in ([1.0, 2.0, 1.0], [4.0, 10.0, 3.0]))
    section = against_plain(Spec(".", batch_size=8), ours, plain)
    assert section.tables[0].rows == [["ours", "1.000", "8.0", "2.000"], ["plain", "4.000", "2.0", "8.000"]]
    assert "**4.00 times** faster (turns: 4.00, 5.00, 3.00; bar: 4)" in section.text


@pytest.mark.parametrize(("device", "kind"), [("cpu", "processor"), ("GPU", "step")])
def test_layers_stand_beside_the_papers(device: str, kind: str) -> None:
    costs = {"step": 99.0, "processor": 99.0, "device": device}
    results = {1: {**costs, kind: 0.6, "peak": 1000.0}, 6: {**costs, kind: 1.2, "peak": 1500.0}}
    (table,) = by_layers(Spec("."), results).tables
    assert [" ".join(row) for row in table.rows] == [
        "1 100 1.00 19.0 1.00 1,000 1.00 7,135 1.00",
        "6 200 2.00 44.0 2.32 1,500 1.50 28,024 3.93",
    ]
    assert ("processor min" in table.headings[1]) == (device == "cpu")


def test_memory_is_compared_with_the_smallest_corpus() -> None:
    one = {"prepare": {"anonymous": 100.0, "peak": 150.0}, "train": {"anonymous": 200.0, "peak": 300.0}}
    ten = {"prepare": {"anonymous": 105.0, "peak": 170.0}, "train": {"anonymous": 250.0, "peak": 900.0}}
    section = by_corpus({10: one, 100: ten})
    assert section.tables[0].rows[-1] == ["100", "train", "250", "900"]
    assert section.points[0] == "prepare: 100 pairs take 1.050 times what 10 take (bar: 1.10)"
    assert section.points[1].startswith("train: 100 pairs take 1.250 times")


@pytest.mark.parametrize("text", ["1,x", "", ","])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(DataError, match="expected whole numbers"):
        numbers(text)


def test_numbers_that_are_too_small() -> None:
    assert numbers("2,4", least=2) == [2, 4]
    with pytest.raises(DataError, match="'4,1': 1 must be at least 2"):
        numbers("4,1", least=2)


def test_memory_is_measured() -> None:
    with processes.AnonymousPeak() as peak:
        before = peak.mib
        # Pages of its own: the heap may have as much to spare from earlier tests.
        block = mmap.mmap(-1, 40 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(b"1" * len(block))
    assert peak.mib - before > 35
    assert processes.peak_memory() > peak.mib
    with pytest.raises(OSError, match="no VmNothing"):
        process_memory("VmNothing")


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    folder = tmp_path_factory.mktemp("made-up")
    return Spec(
        str(folder), num_layers=1, batch_size=8, steps=6, pairs=3000, words=200, length=5, vocabulary=500, dim=16
    )


@pytest.mark.parametrize("system", ["ours", "plain", "table"])
def test_every_system_is_measured(spec: Spec, system: str) -> None:
    result = measure("train", replace(spec, system=system))
    assert 0 < float(result["step"]) < 10 and 0 <= float(result["waiting"]) < 1 and float(result["peak"]) > 50
    assert [path.name for path in Path(spec.folder).glob("run-*")] == []


def test_systems_take_turns(spec: Spec) -> None:
    ours, plain = race(replace(spec, steps=8), {}, turns=3)
    assert len(ours) == len(plain) == 2 and min(*ours, *plain) > (0, 0)
    assert not list(Path(spec.folder).glob("run-*"))


def test_a_child_ends_with_its_parent() -> None:
    program = "import time; from xsent.bench.processes import end_with_parent, say; end_with_parent(); say({}); "
    with subprocess.Popen([sys.executable, "-c", program + "time.sleep(60)"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        child.stdin.close()
        assert child.wait(timeout=20) == 1


def test_a_failed_measurement_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^(?!Error).*nowhere"):
        run(Spec(str(tmp_path / "nowhere")), {}, "write")


@pytest.mark.parametrize("masked", [[True, False, True], [False, False, False]])
def test_ugt_is_ours(masked: list[bool]) -> None:
    generator = torch.Generator().manual_seed(1)
    hidden, table = torch.randn(3, 8, generator=generator), torch.randn(20, 8, generator=generator)
    bias, piece, where = torch.randn(20, generator=generator), torch.tensor([3, 6, 8]), torch.tensor(masked)
    plain = dense_loss(hidden @ table.T + bias, dense_targets(OTHER, piece, where, 20))
    ours = ugt_targets(piece, where, uniform_targets(OTHER.ids, OTHER.lengths))
    torch.testing.assert_close(plain, generative_loss(hidden, table, bias, ours))


def test_contrastive_losses_are_ours() -> None:
    u, v = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(2)).unbind()
    torch.testing.assert_close(inner_align(u, v), align(u, v))
    torch.testing.assert_close(literal_sim(u, v), sim(u, v, literal=True))


def test_padding_does_not_move_a_vector() -> None:
    assert padded(ENGLISH).tolist() == [[3, 4, 4, 5], [6, 0, 0, 0], [7, 8, 0, 0]]
    system = PlainSystem(ModelConfig(vocab_size=20, dim=16, num_layers=2, num_heads=2, ffn_dim=32)).eval()
    alone = system.encode(Tokens(torch.tensor([7, 8]), torch.tensor([2])))
    torch.testing.assert_close(system.encode(ENGLISH)[2:], alone)
