"""Trainings of toy recipes: in this process, as commands, killed."""

import io
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import faults
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from toy import write_toy_corpus
from typer.testing import CliRunner

from xsent_export.cli import app as export_app
from xsent_train import fitting, main
from xsent_train.checkpoint import load_checkpoint
from xsent_train.data.corpus import Corpus
from xsent_train.data.store import Store, build_store
from xsent_train.recipe import load_recipe
from xsent_train.trainer import Trainer


def open_trainer(recipe: Path, run: Path, threads: int = 1, **settings: Any) -> Trainer:  # noqa: ANN401  the trainer's
    """The trainer of a recipe whose files lie beside it."""
    return Trainer(load_recipe(recipe), recipe.parent, run, threads=threads, **settings)


def train(recipe: Path, run: Path, threads: int = 1, **settings: Any) -> Path:  # noqa: ANN401  the trainer's
    """Train in this process."""
    return open_trainer(recipe, run, threads, **settings).train()


def look(text: str) -> NDArray[np.float32]:
    """A direction of each text, of 6 numbers, none of them near the middle of all."""
    vector = np.random.default_rng(list(text.encode())).normal(size=6) + 1
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


class Says:
    """A teacher that remembers what it was asked."""

    def __init__(self, vector: Callable[[str], NDArray[np.float32]] = look) -> None:
        self.asked: list[str] = []
        self._vector = vector

    def encode(self, sentences: list[str], /) -> NDArray[np.float32]:
        """Vectors [n, D]."""
        self.asked += sentences
        return np.stack([self._vector(text) for text in sentences])


def toy_store(folder: Path, tokenizer: Path, pairs: int = 200) -> Store:
    """A store of the toy corpus."""
    path = write_toy_corpus(folder / "pairs.tsv", pairs)
    build_store(folder / "store", Corpus([path]), tokenizer, key="k", max_length=64, threads=1)
    return Store(folder / "store")


def arguments(recipe: Path, run: Path, threads: int = 1) -> list[str]:
    """The command that trains."""
    return ["xsent-train", str(recipe), "--data", str(recipe.parent), "--out", str(run), "--threads", str(threads)]


def kill_in_the_middle(command: list[str], run: Path, stage: str, steps: int, *, write: int) -> None:
    """Kill a training at a write into its run, between the third and the last step of a stage."""
    run.mkdir(parents=True, exist_ok=True)
    short_fits = {"xsent_train.fitting.SPACE_STEPS": fitting.SPACE_STEPS}  # as in this process
    ended = faults.run(run, command, faults.Fault(faults.KILL, write), short_fits)
    assert ended.code == -signal.SIGKILL, (ended.said, len(ended.writes))
    assert 3 <= load_checkpoint(max(run.glob(f"checkpoints/{stage}-*"))).step < steps  # really in the middle


def assert_same_weights(resumed: Path, whole: Path) -> None:
    """Compare two checkpoints to the bit."""
    there, expected = load_file(resumed / "model.safetensors"), load_file(whole / "model.safetensors")
    assert there.keys() == expected.keys()
    for name, weights in expected.items():
        assert np.array_equal(there[name], weights), name


def command(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `xsent-train`."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["xsent-train", *map(str, arguments)]), redirect_stdout(out):
        with redirect_stderr(err), pytest.raises(SystemExit) as ending:
            main()
    return int(ending.value.code or 0), out.getvalue(), err.getvalue()


def train_command(recipe: Path, out: Path, *options: object) -> tuple[int, str, str]:
    """What `command` gives for a training."""
    return command(recipe, "--data", recipe.parent, "--out", out, "--threads", 1, *options)


def export_command(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `xsent-export`."""
    result = CliRunner().invoke(export_app, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr
