"""Two processes train like one with the joined batch."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import rank
import torch
from safetensors.torch import load_file
from toy import write_toy_recipe
from trainings import COMMAND, arguments, train

from xsent_train.checkpoint import load_checkpoint
from xsent_train.recipe import Objectives

TWO = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([*TWO, *arguments], capture_output=True, text=True, env=environment, timeout=100)


def test_two_ranks_have_the_losses_and_gradients_of_the_joined_batch(tmp_path: Path) -> None:
    out = tmp_path / "two.safetensors"
    result = run(rank.__file__, str(out))
    assert result.returncode == 0, result.stderr
    two = load_file(out)

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


@pytest.mark.parametrize("order", ["random", "cluster"])
def test_torchrun_trains_a_recipe_as_one_process_does(tmp_path: Path, order: str) -> None:
    changes = ("ugt = 0.1, sim", "sim"), ("dropout = 0.1\n", ""), ("steps = 150", "steps = 20")
    recipe = write_toy_recipe(tmp_path, ('order = "cluster"', f'order = "{order}"'), *changes)
    program = tmp_path / "train.py"
    program.write_text(COMMAND[2])
    result = run(str(program), *arguments(recipe, tmp_path / "two")[3:])
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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Without torchrun, which would end the other rank.
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test", "GROUP_RANK": "0"}
    shared |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}
    shared |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    ranks = [
        subprocess.Popen(
            arguments(recipe, out),
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in ranks:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 1
        assert f"{out / 'checkpoints'}" in errors.splitlines()[-1] and "cannot be written" in errors.splitlines()[-1]
