"""The rows of an ablation: each trained and measured in a process of its own, some at once; finished ones are kept.

python -m xsent.bench.ablation.rows PLAN FOLDER [KEY SEED]; without a key what all rows read is made.
"""

import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from xsent.bench.ablation.groups import chosen, variants
from xsent.bench.ablation.plan import TABLE, Plan, Variant
from xsent.bench.ablation.report import VALIDATION, write_report
from xsent.bench.machine import environment
from xsent.bench.processes import Child, answer_alone, answers, end_with_parent, peak_memory, say
from xsent.bench.quality import every_score, retrieval, write_small_xsr
from xsent.bench.results import Measurement, Results
from xsent.bench.training.work import Clock
from xsent.bundle import builtin_path
from xsent.errors import DataError, XsentError
from xsent.files import atomic_file, remove_folder
from xsent.terminal import one_line_errors
from xsent.train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent.train.data.corpus import Corpus
from xsent.train.data.preparation import prepare
from xsent.train.trainer import Trainer
from xsent.train.validation import mean

logger = logging.getLogger(__name__)

MODULE = "xsent.bench.ablation.rows"
RESULTS = "results.json"
Key = tuple[str, int]  # variant and seed


def run_ablation(
    plan: Plan, folder: Path, seeds: Sequence[int], only: Sequence[str], processes: int, command: str
) -> Path:
    """Train and measure what is not finished, so many rows at once, and write the report after each.

    All rows of some groups, or of all, are trained with the first seed before any with the second. Ctrl-C saves the
    rows in training; the same command goes on with them. Of rows that fail the others are finished and reported.
    """
    wanted = chosen(plan, only)
    plan.check()
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    ablation = Ablation(plan, folder, open_results(plan, folder, command))
    keys = dict.fromkeys((row.variant.key, seed) for seed in seeds for group in wanted for row in group.rows)
    rows = [key for key in keys if key[0] != TABLE and not ablation.has(key)]
    if rows or not ablation.has((TABLE, 1)):
        # In a process of its own, so that its memory is not counted as a row's.
        list(answers(MODULE, [json.dumps(asdict(plan)), str(folder)], threads=plan.threads))
    if not ablation.has((TABLE, 1)):
        ablation.train([(TABLE, 1)], 1)
    if not ablation.failed:
        ablation.train(rows, processes)
    if ablation.failed:
        logs = ", ".join(str(ablation.log(key)) for key in ablation.failed)
        raise XsentError(f"{len(ablation.failed)} rows failed, see {logs}; the same command tries them again")
    return ablation.report()


def open_results(plan: Plan, folder: Path, command: str) -> Results:
    """What an ablation's folder has so far; that it belongs to another plan is a DataError."""
    now = json.loads(json.dumps(asdict(plan)))
    if not (folder / RESULTS).exists():
        return Results(command, {**environment(), "plan": now})
    results = Results.read(folder / RESULTS)
    before = results.environment.get("plan", {})
    if was := ", ".join(f"{name} = {before.get(name)!r}" for name in now if before.get(name) != now[name]):
        raise DataError(f"{folder} holds an ablation with {was}; name another --out, or the same settings")
    results.command = command
    return results


@dataclass
class Ablation:
    """An ablation under way."""

    plan: Plan
    folder: Path
    results: Results
    failed: list[Key] = field(default_factory=list)

    def has(self, key: Key) -> bool:
        """Whether a row is finished."""
        return bool(self.results.of("ablation", variant=key[0], seed=key[1]))

    def log(self, key: Key) -> Path:
        """What a row says while it trains."""
        return self.folder / "rows" / f"{key[0]}-{key[1]}.log"

    def report(self) -> Path:
        """Write what there is."""
        self.results.write(self.folder / RESULTS)
        return write_report(self.plan, self.results, self.folder)

    def train(self, rows: Sequence[Key], processes: int) -> None:
        """Train rows, so many at once; of those that distil one at a time, as they share what the teacher says."""
        logger.info("%d rows to train, %d at once", len(rows), processes)
        distil = {key for key, variant in variants(self.plan).items() if variant.stage.objectives.distils}
        waiting, running = list(rows), dict[Key, Child]()
        try:
            while waiting or running:
                blocked = distil if any(key in distil for key, _ in running) else ()
                free = [key for key in waiting if key[0] not in blocked]
                if free and len(running) < processes:
                    waiting.remove(free[0])
                    running[free[0]] = self._start(free[0])
                    continue
                time.sleep(0.1)
                for key in [key for key, child in running.items() if child.has_ended]:
                    self._finish(key, running.pop(key))
        finally:
            for child in running.values():
                with child:
                    child.interrupt()

    def _start(self, key: Key) -> Child:
        arguments = [json.dumps(asdict(self.plan)), str(self.folder), key[0], str(key[1])]
        return Child(MODULE, arguments, threads=self.plan.threads, messages=self.log(key).open("w+b"))

    def _finish(self, key: Key, child: Child) -> None:
        with child:
            try:
                figures = child.answer()
            except DataError as error:
                logger.error("%s, seed %d: failed: %s", *key, error)
                self.failed.append(key)
                return
        assert figures is not None
        self.results.measurements.append(Measurement("ablation", {"variant": key[0], "seed": key[1]}, figures))
        self.report()
        logger.info("%s, seed %d: done", *key)


def prepare_rows(plan: Plan, folder: Path) -> None:
    """Make what all rows read and is not there: corpus, vocabulary, held-out pairs and store; a small XSR."""
    corpus = folder / "corpus.tsv"
    if not corpus.exists():
        with atomic_file(corpus) as file:
            for pair in Corpus([plan.source], frozenset(plan.languages)):
                if not pair.alone and max(len(pair.english), len(pair.translation)) <= plan.characters:
                    file.write(("\t".join(pair) + "\n").encode())
    recipe = plan.recipe(plan.table(), 1)
    made = prepare(recipe, [corpus], folder / "prepared", threads=plan.threads)
    # The same once more, under the key of trainings that start from a checkpoint, whose vocabulary is given.
    prepare(recipe, [corpus], folder / "prepared-warm", threads=plan.threads, vocabulary=made.tokenizer)
    write_small_xsr(plan.tests / "xsr", folder / "xsr", plan.languages[0], plan.distractors)


def train_and_measure(plan: Plan, folder: Path, key: str, seed: int) -> dict[str, Any]:
    """Train one row, from where it was interrupted if it was, and measure it."""
    variant, run = variants(plan)[key], folder / "rows" / f"{key}-{seed}"
    clock = Clock()
    trained = load_checkpoint(clock.attach(trainer_of(plan, folder, variant, run, seed)).train())
    costs = {"peak MiB": peak_memory()}
    if clock.steps:  # unless it was interrupted when all was trained
        # Processor seconds, unlike the wall's, do not count what other processes took.
        costs |= {"s/1,000 steps": 1000 * fmean(clock.processor), "wall s/1,000 steps": 1000 * clock.step}
        costs["waiting %"] = 100 * clock.waiting
    scores = every_score(CheckpointEncoder(trained), plan.tests, folder / "xsr", plan.languages)
    smaller = {f"{dim} dimensions": CheckpointEncoder(trained, dim=dim) for dim in variant.shorter}
    smaller |= {f"{layers} layers": CheckpointEncoder(trained, num_layers=layers) for layers in variant.shallower}
    for suffix, encoder in smaller.items():
        found = retrieval(encoder, plan.tests / "tatoeba", plan.languages)
        scores |= {f"{name} {suffix}": score for name, score in found.items()}
    validation = {VALIDATION[name]: mean(values) for name, values in trained.about["validation"].items()}
    if key != TABLE:
        remove_folder(run / "checkpoints")
    return {**scores, **validation, **costs}


def trainer_of(plan: Plan, folder: Path, variant: Variant, run: Path, seed: int) -> Trainer:
    """What trains a row."""
    run.mkdir(parents=True, exist_ok=True)
    teacher = Path(plan.teacher) if plan.teacher else builtin_path()
    return Trainer(
        plan.recipe(variant, seed),
        [folder / "corpus.tsv"],
        run,
        threads=plan.threads,
        prepared=folder / ("prepared-warm" if variant.warm else "prepared"),
        teacher=teacher if variant.stage.objectives.distils else None,
        start=next((folder / "rows" / f"{TABLE}-1" / "checkpoints").iterdir()) if variant.warm else None,
    )


@one_line_errors()
def main(plan: str, folder: str, *row: str) -> None:
    """See the module."""
    raw = json.loads(plan)
    opened = Plan(**raw | {"languages": tuple(raw["languages"])})
    if row:
        say(train_and_measure(opened, Path(folder), row[0], int(row[1])))
    else:
        prepare_rows(opened, Path(folder))


if __name__ == "__main__":
    end_with_parent()
    answer_alone()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    main(*sys.argv[1:])
