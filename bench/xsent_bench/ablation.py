"""An ablation: each row trained and measured in a process of its own, some at once; finished ones are kept.

python -m xsent_bench.ablation FOLDER [KEY SEED]; without a key what all rows read is made.
"""

import json
import logging
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

from xsent.bundle import builtin_path
from xsent.cli.terminal import one_line_errors
from xsent.cpu import processor_name
from xsent.errors import DataError, XsentError
from xsent.evaluation.translation import tatoeba
from xsent.files.atomic import atomic_file, remove_folder
from xsent_bench.pages import Section, Table, write_pages
from xsent_bench.plots import bars
from xsent_bench.processes import Child, answers, peak_memory, serve_parent
from xsent_bench.quality import by_direction, every_score, write_small_xsr
from xsent_bench.tables import NONE, descending, mean_cell
from xsent_bench.training import Clock
from xsent_bench.variants import GROUPS, METHOD, TABLE, Plan, Row, RowGroup, chosen
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.data.corpus import Corpus
from xsent_train.data.preparation import prepare
from xsent_train.trainer import Trainer

logger = logging.getLogger(__name__)

MODULE = "xsent_bench.ablation"
VALIDATION = {"p1": "held-out P@1", "loss": "held-out loss"}  # in a checkpoint, and as a heading
LAST = (*VALIDATION.values(), "s/1,000 steps", "peak MiB")  # headings after those of the scores
DECIMALS = {"held-out loss": 3, "peak MiB": 0}  # one elsewhere
# What the papers' numbers stand beside: mao2021's MLDoc text is licensed.
BESIDE = {"XSR en→fr": "paper XSR en→fr", "SIB en→fr": "paper MLDoc en→fr"}

Key = tuple[str, int]  # variant and seed
Values = Mapping[str, Sequence[float]]  # numbers over the seeds, by heading


@dataclass
class Ablation:
    """An ablation under way."""

    plan: Plan
    folder: Path
    command: str
    failed: list[Key] = field(default_factory=list)

    def run(self, seeds: Sequence[int], only: Collection[str], processes: int) -> Path:
        """Train and measure what is not finished, so many rows at once, and write the report after each.

        All rows of some groups, or of all, are trained with the first seed before any with the second. Ctrl-C saves the
        rows in training; the same command goes on with them. Of rows that fail the others are finished and reported.
        """
        groups = chosen(only)
        self.plan.check()
        self._claim_folder()
        keys = dict.fromkeys((row.key, seed) for seed in seeds for group in groups for row in group.rows)
        first: Key = (TABLE, 1)
        rows = [key for key in keys if key[0] != TABLE and not self.file(key).exists()]
        if rows or not self.file(first).exists():
            # In a process of its own, so that its memory is not counted as a row's.
            list(answers(MODULE, [str(self.folder)], threads=self.plan.threads))
        if not self.file(first).exists():
            self._train([first], 1)
        if not self.failed:
            self._train(rows, processes)
        if self.failed:
            logs = ", ".join(str(self.file(key, "log")) for key in self.failed)
            raise XsentError(f"{len(self.failed)} rows failed, see {logs}; the same command tries them again")
        return write_ablation(self.plan, self.folder, self.command)

    def file(self, key: Key, kind: str = "json") -> Path:
        """The figures of a row, or what it says while it trains."""
        return self.folder / "rows" / f"{key[0]}-{key[1]}.{kind}"

    def _claim_folder(self) -> None:
        """Keep the plan in the folder; that there is another is a DataError."""
        (self.folder / "rows").mkdir(parents=True, exist_ok=True)
        settings, path = json.dumps(asdict(self.plan)), self.folder / "plan.json"
        if not path.exists():
            path.write_text(settings)
        now, before = json.loads(settings), json.loads(path.read_text())
        if was := ", ".join(f"{name} = {before.get(name)!r}" for name in now if before.get(name) != now[name]):
            raise DataError(f"{self.folder} holds an ablation with {was}; name another --out, or the same settings")

    def _train(self, rows: Sequence[Key], processes: int) -> None:
        """Train rows, so many at once; of those that distil one at a time, as they share what the teacher says."""
        logger.info("%d rows to train, %d at once", len(rows), processes)
        distil = {key for key, variant in self.plan.variants().items() if variant.stage.objectives.distils}
        waiting, running = list(rows), dict[Key, Child]()
        try:
            while waiting or running:
                blocked = distil if any(key in distil for key, _ in running) else ()
                free = [key for key in waiting if key[0] not in blocked]
                if free and len(running) < processes:
                    waiting.remove(free[0])
                    arguments = [str(self.folder), free[0][0], str(free[0][1])]
                    messages = self.file(free[0], "log").open("w+b")
                    running[free[0]] = Child(MODULE, arguments, threads=self.plan.threads, messages=messages)
                    continue
                time.sleep(0.1)
                for key in [key for key, child in running.items() if child.has_ended]:
                    self._finish(key, running.pop(key))
        finally:
            for child in running.values():
                with child:
                    child.interrupt()

    def _finish(self, key: Key, child: Child) -> None:
        with child:
            try:
                child.answer()
            except DataError as error:
                logger.error("%s, seed %d: failed: %s", *key, error)
                self.failed.append(key)
                return
        write_ablation(self.plan, self.folder, self.command)
        logger.info("%s, seed %d: done", *key)


def prepare_rows(plan: Plan, folder: Path) -> None:
    """Make what all rows read and is not there: corpus, vocabulary, held-out pairs and store; a small XSR."""
    corpus = folder / "corpus.tsv"
    if not corpus.exists():
        with atomic_file(corpus) as file:
            for pair in Corpus([plan.source], frozenset(plan.languages)):
                if not pair.alone and max(len(pair.english), len(pair.translation)) <= plan.characters:
                    file.write(("\t".join(pair) + "\n").encode())
    recipe = plan.recipe(plan.variants()[TABLE], 1)
    made = prepare(recipe, [corpus], folder / "prepared", threads=plan.threads)
    # The same once more, under the key of trainings that start from a checkpoint, whose vocabulary is given.
    prepare(recipe, [corpus], folder / "prepared-warm", threads=plan.threads, vocabulary=made.tokenizer)
    write_small_xsr(plan.tests / "xsr", folder / "xsr", plan.languages[0], plan.distractors)


def train_and_measure(plan: Plan, folder: Path, key: str, seed: int) -> dict[str, float]:
    """Train one row, from where it was interrupted if it was, and measure it."""
    variant, run = plan.variants()[key], folder / "rows" / f"{key}-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    teacher = Path(plan.teacher) if plan.teacher else builtin_path()
    trainer = Trainer(
        plan.recipe(variant, seed),
        [folder / "corpus.tsv"],
        run,
        threads=plan.threads,
        prepared=folder / ("prepared-warm" if variant.warm else "prepared"),
        teacher=teacher if variant.stage.objectives.distils else None,
        start=next((folder / "rows" / f"{TABLE}-1" / "checkpoints").iterdir()) if variant.warm else None,
    )
    clock = Clock(trainer)
    trained = load_checkpoint(trainer.train())
    costs = {"peak MiB": peak_memory()}
    if busy := clock.steps()[1]:  # unless it was interrupted when all was trained
        # Processor seconds, unlike the wall's, do not count what other processes took.
        costs["s/1,000 steps"] = 1000 * fmean(busy)
    scores = every_score(CheckpointEncoder(trained), plan.tests, folder / "xsr", plan.languages)
    smaller = {
        "¼ of the dimensions": {"dim": plan.dim // 4},
        "1 layers": {"num_layers": 1},
        "0 layers": {"num_layers": 0},
    }
    for name, size in smaller.items() if variant.inside else ():
        found = tatoeba(CheckpointEncoder(trained, **size), plan.tests / "tatoeba", plan.languages)
        scores |= {f"{test} {name}": score for test, score in by_direction("Tatoeba", found).items()}
    validation = {VALIDATION[name]: fmean(values.values()) for name, values in trained.about["validation"].items()}
    if key != TABLE:
        remove_folder(run / "checkpoints")
    return {**scores, **validation, **costs}


def write_ablation(plan: Plan, folder: Path, command: str) -> Path:
    """Write `ablation.md`, which is returned, and `plots/` from the rows that are finished."""
    found: dict[str, list[dict[str, float]]] = {}
    for file in sorted((folder / "rows").glob("*.json")):
        found.setdefault(file.stem.rpartition("-")[0], []).append(json.loads(file.read_bytes()))
    about = f"`{command}` on {processor_name()}, {plan.threads} thread{'s' * (plan.threads > 1)} a row."
    first, *_ = plan.languages
    points = [text.format(**{**vars(plan), "languages": ", ".join(plan.languages), "first": first}) for text in METHOD]
    shown = [group_section(group, found) for group in GROUPS if any(row.key in found for row in group.rows)]
    return write_pages("Ablation", about, [Section("How it was measured", points=points), *shown], folder, "ablation")


def group_section(group: RowGroup, found: Mapping[str, Sequence[Mapping[str, float]]]) -> Section:
    """The table of a group, the papers' order of its rows and ours, and its plot."""
    every = [figures for rows in found.values() for figures in rows]
    names = [name for name in every[0] if all(name in figures for figures in every) and name not in LAST]
    measured = {row.label: values(row, found.get(row.key, [])) for row in group.rows}
    headings, beside = [*names, *LAST], [*BESIDE.values()] if any(row.paper for row in group.rows) else []
    rows = [
        [
            row.label,
            *(mean_cell(measured[row.label].get(name, []), DECIMALS.get(name, 1)) for name in headings),
            *([f"{number:.1f}" for number in row.paper] or [NONE] * len(beside)),
        ]
        for row in group.rows
    ]
    table = Table(["", *headings, *beside], rows)
    series = [name for name in BESIDE if name in names] or names[:2]  # another first language than the papers'
    plot = bars(group.name, group.title, {label: found for label, found in measured.items() if found}, series)
    return Section(group.title, group.note, orders(group, measured), table, [plot])


def values(row: Row, found: Sequence[Mapping[str, float]]) -> Values:
    """The numbers of a row by heading, one a seed; none while it is not finished."""
    ending = f" {row.inside}" if row.inside else ""  # it was not trained apart
    names = [name for name in found[0] if name.endswith(ending)] if found else []
    return {name.removesuffix(ending): [figures[name] for figures in found if name in figures] for name in names}


def orders(group: RowGroup, measured: Mapping[str, Values]) -> list[str]:
    """The paper's order of the rows and ours, where there are numbers of both."""
    found, compared = [], [row for row in group.rows if row.paper]
    for column, (name, paper) in enumerate(BESIDE.items()):
        if len(compared) > 1 and all(name in measured[row.label] for row in compared):
            ours = descending({row.label: fmean(measured[row.label][name]) for row in compared})
            found.append(f"{name}, best first, ours: {ours}")
            found.append(f"{paper}, best first: {descending({row.label: row.paper[column] for row in compared})}")
    return found


@one_line_errors()
def main(folder: str, *row: str) -> None:
    """See the module."""
    place = Path(folder)
    raw = json.loads((place / "plan.json").read_text())
    plan = Plan(**raw | {"languages": tuple(raw["languages"])})
    if not row:
        return prepare_rows(plan, place)
    figures = train_and_measure(plan, place, row[0], int(row[1]))
    with atomic_file(place / "rows" / f"{row[0]}-{row[1]}.json") as file:
        file.write(json.dumps(figures).encode())


if __name__ == "__main__":
    serve_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    main(*sys.argv[1:])
