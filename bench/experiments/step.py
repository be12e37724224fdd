"""A step of a distilling stage with swapped words, from the built-in model: pairs per second, operators per step."""

import logging
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import torch
import typer
from torch.profiler import ProfilerActivity, profile

from training import made_up_pairs
from xsent.bundle import Bundle, builtin_path
from xsent.cli.terminal import format_facts, one_line_errors
from xsent.errors import DataError
from xsent_train.objectives import Align, Distil, Objective, Objectives
from xsent_train.recipe import CorpusConfig, Recipe, StageConfig
from xsent_train.trainer import Trainer

WARM = 2  # steps before the timed ones
READS = ("aten::_local_scalar_dense", "aten::nonzero")  # operators whose result a GPU would have to be waited for
PAIRS, WORDS = 20_000, 5_000  # of the corpus


def recipe_of(layers: int, batch: int, steps: int) -> Recipe:
    """A training of the shape of the built-in model, which is its own teacher."""
    depths = [depth for depth in Bundle.open(builtin_path()).depths if depth <= layers]
    if layers < 1 or depths[-1] != layers:
        raise DataError(
            f"--layers {layers}: the built-in model has {', '.join(map(str, depths[1:]))}; take one of them"
        )
    stage = StageConfig(
        name="distil",
        num_layers=layers,
        steps=steps,
        objectives=Objectives(distil=Distil(weight=3), similarity_distil=Objective(weight=90), align=Align(weight=3)),
        batch_size=batch,
        layer_prefixes=tuple(depths),
        prefixes=(128, 384),
        max_tokens=64,
        swapped=0.2,
        ignore_above=0.98,
        learning_rate=1e-5,
        window=steps,
        validate_every=steps,
    )
    return Recipe(
        name="benchmark",
        languages=("xx",),
        corpus=CorpusConfig(files=("pairs.tsv",), validation_pairs=20),
        stages=(stage,),
        readouts=True,
        dim=384,
        num_heads=12,
        ffn_dim=1536,
        activation="gelu",
        norm_eps=1e-12,
        max_length=254,
        checkpoint_minutes=60,
    )


class Clock:
    """The time of each step, on the wall and of all cores, and the operators of the last one."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.times: list[tuple[float, float]] = []
        self.operators: Counter[str] = Counter()
        self._profile = profile(activities=[ProfilerActivity.CPU])

    def __call__(self) -> None:
        """Note the end of a step."""
        self.times.append((time.perf_counter(), time.process_time()))
        if len(self.times) == self.steps - 1:
            self._profile.start()
        elif len(self.times) == self.steps:
            self._profile.stop()
            averages = self._profile.key_averages()
            self.operators.update({one.key: one.count for one in averages if one.key.startswith("aten::")})

    def facts(self, batch: int) -> dict[str, object]:
        """Medians of the timed steps."""
        wall, cpu = np.median(np.diff(self.times[WARM:-1], axis=0), axis=0).tolist()
        return {
            "pairs per second": round(batch / wall),
            "pairs per second of one core": round(batch / cpu),
            "operators per step": self.operators.total(),
            "of them, results that are read": sum(self.operators[name] for name in READS),
        }


@one_line_errors()
def step(
    pairs: Annotated[Path | None, typer.Option(help="Pairs to train on; default: made-up ones.")] = None,
    language: Annotated[str, typer.Option(help="Their languages, separated by commas.")] = "xx",
    layers: Annotated[int, typer.Option(help="Layers that are trained.")] = 3,
    batch: Annotated[int, typer.Option(min=10, help="Pairs per step.")] = 128,
    steps: Annotated[int, typer.Option(min=WARM + 3, help="Steps.")] = 10,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 2,
) -> None:
    """Measure a training step. On a busy machine, compare the pairs per second of one core."""
    recipe = recipe_of(layers, batch, steps).model_copy(update={"languages": tuple(language.split(","))})
    clock = Clock(steps)
    with TemporaryDirectory() as folder:
        corpus = pairs or Path(folder) / "pairs.tsv"
        if pairs is None:
            corpus.write_bytes(b"".join(made_up_pairs(PAIRS, WORDS)))
        run, ours = Path(folder) / "run", builtin_path()
        Trainer(recipe, [corpus], run, threads=threads, teacher=ours, start=ours).train(on_step=clock)
    typer.echo(format_facts({"layers": layers, "batch": batch, "threads": threads, **clock.facts(batch)}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    torch.set_num_threads(1)
    typer.run(step)
