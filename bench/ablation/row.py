"""One row of an ablation, in a process of its own: train a variant, measure it, write `result.json`."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import xsent
from xsent.bench.ablation.place import RESULT, Place
from xsent.bench.ablation.plan import Plan, load_plan
from xsent.bench.ablation.variants import TABLE, Variant, variants
from xsent.bench.clock import Clock, ClockedTrainer
from xsent.bench.processes import end_with_parent, peak_memory
from xsent.bench.quality import measure
from xsent.evaluation import tatoeba
from xsent.failures import one_line_errors
from xsent.files import atomic_file, remove_folder
from xsent.retrieval import Encodes
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint
from xsent.train.validation import mean


def train_and_measure(place: Place) -> None:
    """Train and measure one row from the start; the result appears when it is complete."""
    plan = load_plan(place.folder)
    variant = variants(plan)[place.key]
    if place.run.exists():  # what a killed process left
        remove_folder(place.run)
    place.run.mkdir(parents=True)
    trained, costs = train(place, plan, variant)
    peak = peak_memory()
    scores = measure(CheckpointEncoder(trained), plan.tests, plan.languages, distractors=plan.distractors)
    for suffix, encoder in smaller(trained, variant):
        for score in tatoeba(encoder, plan.tests / "tatoeba", plan.languages).languages:
            scores[f"Tatoeba {score.language}→en {suffix}"] = score.xx_en.p_at_1
            scores[f"Tatoeba en→{score.language} {suffix}"] = score.en_xx.p_at_1
    validation = {name: mean(values) for name, values in trained.about["validation"].items()}
    result = {"key": place.key, "seed": place.seed, "scores": scores, "validation": validation}
    result["costs"] = {**costs, "peak MiB": peak}
    with atomic_file(place.run / RESULT) as file:
        file.write(json.dumps(result, indent=1, ensure_ascii=False).encode())
    if place.key != TABLE:
        remove_folder(place.run / "checkpoints")


def train(place: Place, plan: Plan, variant: Variant) -> tuple[Checkpoint, dict[str, float]]:
    """Train a row: the checkpoint, and what its steps cost."""
    table = Place(place.folder, TABLE, 1).run / "checkpoints"
    teacher = Path(plan.teacher) if plan.teacher else Path(xsent.__file__).parent / "builtin"
    trainer = ClockedTrainer(
        variant.recipe(plan, place.seed),
        [place.corpus],
        place.run,
        threads=plan.threads,
        prepared=place.prepared(warm=variant.warm),
        teacher=teacher if variant.distils else None,
        start=next(table.iterdir()) if variant.warm else None,
    )
    clock = Clock()
    trained = load_checkpoint(trainer.train_with(clock))
    costs = {"s/1,000 steps": 1000 * clock.processor_step, "wall s/1,000 steps": 1000 * clock.step}
    return trained, {**costs, "waiting %": 100 * clock.waiting}


def smaller(trained: Checkpoint, variant: Variant) -> Iterator[tuple[str, Encodes]]:
    """The encoders inside a trained one that a variant wants measured too, by name."""
    for dim in variant.shorter:
        yield f"{dim} dimensions", CheckpointEncoder(trained, dim=dim)
    for layers in variant.shallower:
        yield f"{layers} layers", CheckpointEncoder(trained, num_layers=layers)


def main() -> None:
    """Train and measure the row that the command line names: folder, variant, seed."""
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    folder, key, seed = sys.argv[1:]
    with one_line_errors():
        train_and_measure(Place(Path(folder), key, int(seed)))


if __name__ == "__main__":
    main()
