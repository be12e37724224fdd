"""Two processes train like one with the joined batch."""

import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rank
import torch
from safetensors.torch import load_file
from toy import write_toy_recipe
from trainings import arguments, train

from xsent_train.checkpoint import load_checkpoint
from xsent_train.recipe import Objectives

TORCHRUN = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]


def run_both(action: Callable[[], object], folder: Path) -> list[tuple[int | None, str]]:
    """Exit codes of two ranks that do the same, and what they say."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forking, said = multiprocessing.get_context("forkserver"), [folder / "first", folder / "second"]  # that of `faults`
    ranks = [forking.Process(target=rank.be_one_of_two, args=(i, port, said[i], action)) for i in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(200)
    return [(process.exitcode, file.read_text()) for process, file in zip(ranks, said, strict=True)]


def test_two_ranks_have_the_losses_and_gradients_of_the_joined_batch(tmp_path: Path) -> None:
    for code, said in run_both(partial(rank.write_gradients, tmp_path / "two.safetensors"), tmp_path):
        assert code == 0, said
    two = load_file(tmp_path / "two.safetensors")

    one: dict[str, torch.Tensor] = {}
    objectives = set()
    for stage in rank.STAGES:
        model = rank.training_model(stage)
        losses = model(rank.joined_batch())
        torch.stack(list(losses.values())).sum().backward()
        one |= rank.found(stage, {name: loss.detach() for name, loss in losses.items()}, model)
        objectives |= set(losses)

    # Word CTL draws other negatives on each rank.
    assert objectives == set(Objectives.model_fields) - {"word_ctl"}
    assert two.keys() == one.keys()
    for name, value in one.items():
        assert value.abs().max() > 0, name
        torch.testing.assert_close(two[name], value, rtol=1e-4, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}")


def test_torchrun_trains_a_recipe_as_one_process_does(tmp_path: Path) -> None:
    changes = ("ugt = 0.1, sim", "sim"), ("dropout = 0.1\n", ""), ("steps = 150", "steps = 20")
    recipe, program = write_toy_recipe(tmp_path, *changes), tmp_path / "train.py"  # a stage at random, one of clusters
    program.write_text("from xsent_train import main; main()")
    command = [*TORCHRUN, str(program), *arguments(recipe, tmp_path / "two")[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()  # one rank speaks
    two, one = load_checkpoint(Path(line)), load_checkpoint(train(recipe, tmp_path / "one"))
    assert two.step == one.step == 12
    for name, weight in one.weights.items():
        torch.testing.assert_close(two.weights[name], weight, rtol=1e-2, atol=1e-3)


def test_a_checkpoint_that_cannot_be_written_ends_all_ranks(tmp_path: Path) -> None:
    recipe = write_toy_recipe(tmp_path, ("steps = 150", "steps = 4"))
    out = tmp_path / "out"
    out.mkdir()
    (out / "checkpoints").write_text("")  # a file where the folder should be
    for code, said in run_both(partial(rank.run_command, arguments(recipe, out)), tmp_path):
        assert code == 1, said
        assert f"{out / 'checkpoints'}" in said.splitlines()[-1] and "cannot be written" in said.splitlines()[-1]
