"""The cost of a training step by layers, on a synthetic corpus; results: docs/contributing/findings.md.

Each training runs in its own process: python training.py --child SPEC
"""

import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import torch
import typer

from xsent.cli.terminal import markdown_table, one_line_errors
from xsent.files.atomic import atomic_file
from xsent_bench.cli import numbers
from xsent_bench.processes import answers, peak_memory, say, serve_parent
from xsent_bench.results import NONE, Measurement, number, shown
from xsent_train.objectives import Align, Objective, Objectives, Sim
from xsent_train.recipe import CorpusConfig, Recipe, StageConfig, VocabularyConfig
from xsent_train.trainer import Trainer

CHILD = "--child"  # first argument of a process that trains
BATCH = 128  # the paper's
PAPER = Objectives(ugt=Objective(), align=Align(weight=2.0, temperature=0.0), sim=Sim(weight=2.0, literal=True))
TABLE_5 = {  # mao2021, by layers: minutes per 10,000 steps at batch 128 on a V100, and memory in MB
    1: (19, 7_135),
    2: (24, 11_607),
    3: (29, 16_804),
    4: (34, 21_923),
    6: (44, 28_024),
}
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
MEAN, LONGEST = 24.5, 100  # words per sentence
DEVIATION = 0.75  # of the logarithm of a sentence's length; 0.77 in 100,000 real pairs


@dataclass(frozen=True)
class TrainingSpec:
    """A measured training."""

    folder: str  # of the synthetic corpus and the data prepared from it
    num_layers: int = 2
    batch_size: int = BATCH
    steps: int = 12
    threads: int = 1
    pairs: int = 200_000  # in the corpus
    words: int = 40_000  # different ones in it
    vocabulary: int = 50_000
    dim: int = 512

    def recipe(self) -> Recipe:
        """The whole training, with the sizes of mao2021."""
        stage = StageConfig(
            name=f"layers-{self.num_layers}",
            num_layers=self.num_layers,
            steps=self.steps,
            objectives=PAPER,
            batch_size=self.batch_size,
            learning_rate=1e-4,
            table_learning_rate=1e-4,
            dropout=0.1,
            validate_every=self.steps,
        )
        return Recipe(
            name="benchmark",
            languages=("xx",),
            corpus=CorpusConfig(files=("corpus.tsv",), validation_pairs=20),
            vocabulary=VocabularyConfig(size=self.vocabulary, sentences=100_000),
            stages=(stage,),
            dim=self.dim,
            ffn_dim=2 * self.dim,
            checkpoint_minutes=60,
        )


def train_and_time(spec: TrainingSpec) -> dict[str, float | str]:
    """In a child: train as `xsent-train` does; returns its costs. On a GPU the memory is the peak of its tensors."""
    folder = Path(spec.folder)
    corpus = folder / "corpus.tsv"
    if not corpus.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(corpus) as file:
            file.writelines(made_up_pairs(spec.pairs, spec.words))
    ends = list[float]()  # of the steps; the last is before validation
    with TemporaryDirectory(dir=folder) as run:
        trainer = Trainer(spec.recipe(), folder, Path(run), threads=spec.threads, prepared=folder / "prepared")
        trainer.train(on_step=lambda: ends.append(time.perf_counter()))
    step = float(np.median(np.diff(ends)))
    device, peak = "CPU", peak_memory()
    if torch.cuda.is_available():
        device, peak = torch.cuda.get_device_name(), torch.cuda.max_memory_allocated() / 2**20
    return {"step_seconds": step, "pairs_per_second": spec.batch_size / step, "peak_mib": peak, "device": device}


def made_up_pairs(pairs: int, words: int) -> Iterator[bytes]:
    """Lines of a corpus; a translation has the words of the English side in reverse, each with another ending.

    The n-th word is about n times rarer than the first (Zipf). Lengths are log-normal, as in real text.
    """
    english = made_up_words(words)
    rng = np.random.default_rng(1)
    likely = 1 / (10 + np.arange(words))
    bounds = np.cumsum(likely / likely.sum())
    for length in np.clip(rng.lognormal(np.log(MEAN) - DEVIATION**2 / 2, DEVIATION, pairs).round(), 2, LONGEST):
        drawn = [english[place] for place in np.searchsorted(bounds, rng.random(int(length)))]
        yield f"made-up\txx\t{' '.join(drawn)}\t{' '.join(f'{word}x' for word in reversed(drawn))}\n".encode()


def made_up_words(number: int) -> list[str]:
    """Different words of two to four syllables, the shortest first."""
    words = ("".join(syllables) for count in (2, 3, 4) for syllables in product(SYLLABLES, repeat=count))
    return list(islice(words, number))


@one_line_errors()
def training(
    out: Annotated[Path, typer.Option(help="Folder of the synthetic corpus, which a second run reuses.")],
    layers: Annotated[str, typer.Option(help="Numbers of layers, separated by commas.")] = "1,2,3,4,6",
    batches: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "128",
    steps: Annotated[int, typer.Option(min=2, help="Steps per training.")] = 12,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
) -> None:
    """Measure a training step on synthetic text: seconds, pairs per second and peak memory, beside the paper's.

    About 25 tokens per side, 50,000 pieces, 512 dimensions, UGT + 2 align + 2 sim (literal) as in mao2021. Its table 5
    (batch 128, one V100; minutes per 10,000 steps, megabytes) is shown, too: compare the columns × 1 layer. It takes a
    GPU, if there is one, unless CUDA_VISIBLE_DEVICES is empty.
    """
    spec = TrainingSpec(str(out), steps=steps, threads=threads)
    measured = []
    for batch, depth in product(numbers(batches, least=2), numbers(layers)):
        command = json.dumps(asdict(replace(spec, num_layers=depth, batch_size=batch)))
        (cost,) = answers([__file__, CHILD, command], threads=threads)
        axes = {"layers": depth, "batch": batch, "device": cost.pop("device")}
        measured.append(Measurement("training", axes, cost))
    typer.echo(training_table(measured))


def training_table(measured: Sequence[Measurement]) -> str:
    """Training steps and their costs as multiples of one layer's, beside the paper's."""
    one_layer = {m.axes["batch"]: m for m in measured if m.axes["layers"] == 1}
    rows = []
    for m in measured:
        one = one_layer.get(m.axes["batch"])
        paper = TABLE_5.get(int(m.axes["layers"]))
        cells = [*(str(m.axes[axis]) for axis in ("layers", "batch", "device")), shown(m, "pairs_per_second")]
        for column, figure in enumerate(("step_seconds", "peak_mib")):
            cells += [shown(m, figure), number(m.figures[figure] / one.figures[figure]) if one else NONE]
            cells += [number(paper[column]), number(paper[column] / TABLE_5[1][column])] if paper else [NONE, NONE]
        rows.append(cells)
    times = "× 1 layer"
    costs = ["pairs/s", "s/step", times, "paper, min", times, "peak MiB", times, "paper, MB", times]
    return markdown_table(["layers", "batch", "device", *costs], rows)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    if sys.argv[1:2] == [CHILD]:
        serve_parent()
        with one_line_errors():
            say(train_and_time(TrainingSpec(**json.loads(sys.argv[2]))))
    else:
        typer.run(training)
