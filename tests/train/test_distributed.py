"""Two processes train like one with the joined batch."""

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from stages import DIM, PAIRS, model_and_batch
from torch import Tensor
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from toy import write_toy_recipe
from trainings import arguments, train

from xsent_train import main
from xsent_train.checkpoint import load_checkpoint
from xsent_train.data.batches import Batch
from xsent_train.data.masking import Labelled, MaskedPairs
from xsent_train.data.passages import Asked
from xsent_train.data.scored import ScoredBatch
from xsent_train.devices import average, gather, launch
from xsent_train.losses import Whitening
from xsent_train.objectives import Objectives
from xsent_train.recipe import StageConfig
from xsent_train.stage_model import TrainingModel

PLAIN = dict.fromkeys(("smlm", "ugt", "xtr", "sim", "sentence_ctl", "distil", "similarity_distil"), 1)
MASKED = {"mlm": {"share": 0.4}, "tlm": {"share": 0.4}}
SET = {**MASKED, "align": {"margin": 0.1}, "contrastive_distil": {"queue": 4, "batch": True}}
OTHER = {"similarity": {"pairs": PAIRS}, "retrieve": {"queries": PAIRS, "block": 4}}
COMMON = {"steps": 1, "table_learning_rate": 0.1, "ignore_above": 0.99}
SHAPE = {"num_layers": 2, "prefixes": (8, 16), "layer_prefixes": (0, 1, 2), "batch_size": PAIRS}
BOTH = StageConfig(name="both", **SHAPE, **COMMON, objectives=Objectives(**PLAIN, **SET, **OTHER))
ROWS = StageConfig(name="rows", num_layers=0, **COMMON, objectives=Objectives(embedding_match=1))


def training_model(stage: StageConfig) -> TrainingModel:
    model = model_and_batch(stage, DIM)[0].float()
    model.whitening = Whitening.fit(torch.randn(50, DIM))
    return model


def labelled_part(side: Labelled, start: int, stop: int) -> Labelled:
    begin, end = (int(side.tokens.lengths[:i].sum()) for i in (start, stop))
    return Labelled(side.tokens.part(start, stop), side.labels[begin:end])


def joined_batch(rank: int = 0, ranks: int = 1) -> Batch:
    """A rank's part of one batch."""
    hiding, _, teacher, queue, *_ = model_and_batch(BOTH, DIM)[1]
    start, stop = rank * PAIRS // ranks, (rank + 1) * PAIRS // ranks
    part = MaskedPairs(
        (hiding.sides[0].part(start, stop), hiding.sides[1].part(start, stop)),
        (labelled_part(hiding.read[0], start, stop), labelled_part(hiding.read[1], start, stop)),
        hiding.piece[start:stop],
        (hiding.masked[0][start:stop], hiding.masked[1][start:stop]),
        labelled_part(hiding.joined, start, stop),
    )
    group, numbers = torch.tensor([0, 1, 2, 3, 0, 5, 6, 7]), torch.arange(PAIRS)
    seen = torch.sin(torch.arange(3 * PAIRS * teacher.shape[1])).reshape(3, PAIRS, -1)[:, start:stop]
    scored = ScoredBatch(part.sides, numbers[start:stop] % 3.0, torch.cat([seen[0], seen[1]]))
    asked = Asked(part.sides, numbers // 4, numbers, group, seen[2])
    taught = teacher[start:stop].float(), queue.float()
    return Batch(part, group, *taught, scored=scored, asked=asked)


def found(stage: StageConfig, losses: Mapping[str, Tensor], model: TrainingModel) -> dict[str, Tensor]:
    """Losses and gradients of a stage by name."""
    gradients = {f"{stage.name}.{name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {**{f"{stage.name}.loss.{name}": loss for name, loss in losses.items()}, **gradients}


def write_gradients(out: Path) -> None:
    """Take one step of each stage of a part of the batch; write the losses and gradients that all ranks agree on."""
    fabric = launch(1)
    everything: dict[str, Tensor] = {}
    for stage in (BOTH, ROWS):
        model = training_model(stage)
        model.gather, model.average = partial(gather, fabric), partial(average, fabric)
        wrapped, _ = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
        losses = wrapped(joined_batch(fabric.global_rank, fabric.world_size))
        fabric.backward(torch.stack(list(losses.values())).sum())
        mean = {name: fabric.all_reduce(loss.detach(), reduce_op="mean") for name, loss in losses.items()}
        everything |= found(stage, mean, model)
    if fabric.is_global_zero:
        save_file(everything, out)


def run_command(arguments: list[str]) -> None:
    sys.argv = arguments
    main()


def be_one_of_two(rank: int, port: int, said: Path, action: Callable[[], object]) -> None:
    """Do what a rank does, without torchrun, which would end the other one; what it says goes into a file."""
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test", "GROUP_RANK": "0"}
    shared |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1", "CUDA_VISIBLE_DEVICES": ""}
    os.environ.update({**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
    torch.set_num_threads(1)
    action()


def run_both(action: Callable[[], object], folder: Path) -> list[tuple[int | None, str]]:
    """Exit codes of two ranks that do the same, and what they say."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forking, said = multiprocessing.get_context("forkserver"), [folder / "first", folder / "second"]  # that of `faults`
    ranks = [forking.Process(target=be_one_of_two, args=(i, port, said[i], action)) for i in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(200)
    return [(process.exitcode, file.read_text()) for process, file in zip(ranks, said, strict=True)]


def test_two_ranks_have_the_losses_and_gradients_of_the_joined_batch(tmp_path: Path) -> None:
    for code, said in run_both(partial(write_gradients, tmp_path / "two.safetensors"), tmp_path):
        assert code == 0, said
    two = load_file(tmp_path / "two.safetensors")

    one: dict[str, torch.Tensor] = {}
    objectives = set()
    for stage in (BOTH, ROWS):
        model = training_model(stage)
        losses = model(joined_batch())
        torch.stack(list(losses.values())).sum().backward()
        one |= found(stage, {name: loss.detach() for name, loss in losses.items()}, model)
        objectives |= set(losses)

    # Word CTL draws other negatives on each rank.
    assert objectives == set(Objectives.model_fields) - {"word_ctl"}
    assert two.keys() == one.keys()
    for name, value in one.items():
        assert value.abs().max() > 0, name
        torch.testing.assert_close(two[name], value, rtol=1e-4, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}")


@pytest.mark.network
def test_torchrun_trains_a_recipe_as_one_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = ("ugt = 0.1, sim", "sim"), ("dropout = 0.1\n", ""), ("steps = 150", "steps = 20")
    recipe = write_toy_recipe(tmp_path, *changes)  # a stage at random, one of clusters
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    # What `torchrun --standalone` does, but for its processes: these are forked, so that imports cost nothing.
    torchrun = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id="test",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        start_method="forkserver",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(tmp_path / "logs", redirects=Std.ALL),
    )
    elastic_launch(torchrun, run_command)(arguments(recipe, tmp_path / "two"))
    (line,) = "".join(file.read_text() for file in tmp_path.rglob("stdout.log")).splitlines()  # one rank speaks
    assert len(list(tmp_path.rglob("stdout.log"))) == 2
    two, one = load_checkpoint(Path(line)), load_checkpoint(train(recipe, tmp_path / "one"))
    assert two.step == one.step == 12
    for name, weight in one.weights.items():
        torch.testing.assert_close(two.weights[name], weight, rtol=1e-2, atol=1e-3)


def test_a_checkpoint_that_cannot_be_written_ends_all_ranks(tmp_path: Path) -> None:
    recipe = write_toy_recipe(tmp_path, ("steps = 150", "steps = 4"))
    out = tmp_path / "out"
    out.mkdir()
    (out / "checkpoints").write_text("")  # a file where the folder should be
    for code, said in run_both(partial(run_command, arguments(recipe, out)), tmp_path):
        assert code == 1, said
        assert f"{out / 'checkpoints'}" in said.splitlines()[-1] and "cannot be written" in said.splitlines()[-1]
