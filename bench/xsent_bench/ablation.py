"""The papers' ablations at small scale: every variant trained on the same pairs and budget, measured, and reported.

Each row of a table is trained in a process of its own, and is finished when its figures are in OUT/rows:
python -m xsent_bench.ablation OUT [VARIANT SEED]; without a variant it prepares the data of all rows.
"""

import json
import logging
import sys
import time
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from xsent.bundle import builtin_path
from xsent.cli.terminal import one_line_errors
from xsent.cpu import processor_name
from xsent.errors import DataError, XsentError
from xsent.evaluation.translation import tatoeba
from xsent.files.atomic import atomic_file, remove_folder
from xsent_bench.processes import Child, answers, peak_memory, serve_parent
from xsent_bench.quality import by_direction, every_score, write_small_xsr
from xsent_bench.report import Section, Table, write_pages
from xsent_bench.results import NONE
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.data.corpus import Corpus
from xsent_train.data.preparation import prepare
from xsent_train.recipe import (
    Align,
    ContrastiveDistil,
    CorpusConfig,
    Distil,
    Objectives,
    Recipe,
    StageConfig,
    VocabularyConfig,
)
from xsent_train.trainer import Trainer

logger = logging.getLogger(__name__)

MODULE = "xsent_bench.ablation"
TABLE = "table"  # the variant from which the warm ones start
COSINE = Objectives(align=Align(temperature=0.05))
CONTENTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("ablation.toml").read_text(encoding="utf-8"))
METHOD: list[str] = CONTENTS["method"]  # the first points of the report, with names of the plan's fields
SCRATCH = {key: Objectives(**objectives) for key, objectives in CONTENTS["scratch"].items()}

VALIDATION = {"p1": "held-out P@1", "loss": "held-out loss"}  # names in a checkpoint, and headings
LAST = (*VALIDATION.values(), "s/1,000 steps", "peak MiB")  # headings after those of the scores
DECIMALS = {"held-out loss": 3, "peak MiB": 0}  # one for other headings
# Our headings, and the papers'. mao2021's MLDoc text is licensed; SIB-200 replaces it.
PAPERS = {"XSR en→fr": "paper XSR en→fr", "SIB en→fr": "paper MLDoc en→fr"}

Key = tuple[str, int]  # variant and seed
Figures = Mapping[str, float]  # of a row, by heading


@dataclass(frozen=True)
class Variant:
    """An encoder to train and measure."""

    stage: StageConfig
    dim: int
    warm: bool  # whether it starts from the table that all warm variants share; else from nothing
    inside: bool  # whether the encoders inside are measured too: a quarter of the dimensions, one layer, none


@dataclass(frozen=True)
class AblationPlan:
    """What every row of an ablation has in common."""

    data: str  # folder with `train/pairs.tsv` (or compressed) and the test sets under `eval`
    teacher: str = ""  # folder of the model to distil from; empty is the built-in one
    pairs: int = 64_000  # that a row sees
    table_pairs: int = 1_024_000  # that the shared table sees
    languages: tuple[str, ...] = ("fr", "de")  # other than English
    characters: int = 120  # of the longest sentence that is kept, on either side: many rows must be affordable
    vocabulary: int = 8_000
    dim: int = 128  # unless a row is about it
    max_tokens: int = 32  # read of a sentence in training
    batch_size: int = 128  # unless a row is about it
    clusters: int = 1024  # from which batches of hard negatives are drawn
    validation_share: float = 0.005  # of English sentences, held out
    validation_pairs: int = 1000  # a language, held out
    distractors: int = 20_000  # further candidates of the retrieval test
    threads: int = 1  # of a row

    @property
    def source(self) -> Path:
        """The file of pairs. Raises DataError if there is none."""
        found = sorted((Path(self.data) / "train").glob("pairs.tsv*"))
        if not found:
            raise DataError(f"{self.data}: no train/pairs.tsv, .gz or .xz in this folder; name the data folder")
        return found[0]

    @property
    def tests(self) -> Path:
        """The folder of the test sets."""
        return Path(self.data) / "eval"

    def check(self) -> None:
        """Raises DataError if data or teacher are missing."""
        if self.source and not self.tests.is_dir():
            raise DataError(f"{self.data}: no folder eval in it; expected eval/tatoeba, xsr, sib200 and stsb")
        if self.teacher and not Path(self.teacher).is_dir():
            raise DataError(f"{self.teacher}: no such folder; --teacher takes the folder of a model")

    def recipe(self, variant: Variant, seed: int) -> Recipe:
        """The recipe of a row; all rows prepare the same vocabulary, held-out pairs and store."""
        return Recipe(
            name=variant.stage.name,
            languages=self.languages,
            corpus=CorpusConfig(
                files=("corpus.tsv",),
                validation_share=self.validation_share,
                validation_pairs=self.validation_pairs,
            ),
            stages=(variant.stage,),
            dim=variant.dim,
            num_heads=max(1, variant.dim // 64),
            ffn_dim=2 * variant.dim,
            max_length=2 * self.max_tokens,
            seed=seed,
            checkpoint_minutes=10,
            vocabulary=VocabularyConfig(size=self.vocabulary, sentences=300_000),
        )

    def variants(self) -> dict[str, Variant]:
        """Every variant by its key; several tables may show the same."""
        return {variant.stage.name: variant for variant in self._variants()}

    def _variants(self) -> Iterator[Variant]:
        table: dict[str, Any] = {"num_layers": 0, "clip": 0.0, "table_learning_rate": 5e-3}
        yield self._variant(TABLE, COSINE, batch=8, pairs=self.table_pairs, **table)  # in large random batches
        for key, objectives in SCRATCH.items():
            yield self._scratch(key, objectives)
        system = SCRATCH["ugt-align-sim"]
        for layers in (0, 1, 4):
            yield self._scratch(f"scratch-{layers}", system, num_layers=layers)
        for name, factor in (("half", 0.5), ("double", 2.0)):
            yield self._scratch(f"batch-{name}", system, batch=factor)
            yield self._scratch(f"dim-{name}", system, dim=int(factor * self.dim))
        for layers in (0, 1, 3, 4, 6):
            yield self._warm(f"layers-{layers}", num_layers=layers)
        yield self._warm("distil", Objectives(distil=Distil()))
        yield self._warm("co", Objectives(contrastive_distil=ContrastiveDistil()))
        filtered = Objectives(contrastive_distil=ContrastiveDistil(ignore_above=0.9))
        yield self._warm("co-filter", filtered, order="length", shuffle=False)
        yield self._warm("layers-2", inside=True)
        yield self._warm("cluster", inside=True, order="cluster", clusters=self.clusters)
        yield self._warm("prefixes", inside=True, prefixes=(self.dim // 4, self.dim))
        yield self._warm("layer-prefixes", inside=True, layer_prefixes=(0, 1, 2))

    def _scratch(self, key: str, objectives: Objectives, **settings: Any) -> Variant:  # noqa: ANN401
        """A variant that starts from nothing."""
        return self._variant(key, objectives, learning_rate=1e-3, table_learning_rate=6e-3, **settings)

    def _warm(self, key: str, objectives: Objectives = COSINE, **settings: Any) -> Variant:  # noqa: ANN401
        """A variant that starts from the shared table, which learns little under new layers."""
        settings |= {"learning_rate": 3e-4, "table_learning_rate": 3e-4}
        return self._variant(key, objectives, batch=2, warm=True, **settings)

    def _variant(
        self,
        key: str,
        objectives: Objectives,
        *,
        batch: float = 1,  # in multiples of the plan's batch size
        pairs: int = 0,  # 0: as many as every row sees
        dim: int = 0,  # 0: the plan's
        warm: bool = False,
        inside: bool = False,
        **settings: Any,  # noqa: ANN401
    ) -> Variant:
        size = int(batch * self.batch_size)
        steps = max(1, (pairs or self.pairs) // size)
        settings = {"num_layers": 2, "max_tokens": self.max_tokens, "warmup": max(1, steps // 10), **settings}
        stage = StageConfig(
            name=key, steps=steps, objectives=objectives, batch_size=size, validate_every=steps, **settings
        )
        return Variant(stage, dim or self.dim, warm, inside)


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    label: str  # the paper's name of it
    key: str  # of its variant
    paper: Sequence[float] = ()  # its numbers; empty where it has none
    inside: str = ""  # the smaller encoder inside whose scores are shown instead

    def numbers(self, found: Sequence[Figures]) -> dict[str, list[float]]:
        """Its numbers by heading, one for each seed in `found`; empty if there is none."""
        ending = f" {self.inside}" if self.inside else ""  # an encoder inside was not trained by itself
        names = [name for name in found[0] if name.endswith(ending)] if found else []
        return {name.removesuffix(ending): [figures[name] for figures in found if name in figures] for name in names}


@dataclass(frozen=True)
class RowGroup:
    """A table."""

    name: str  # which `--only` takes
    title: str
    note: str
    rows: Sequence[Row]


GROUPS = [RowGroup(**{**group, "rows": [Row(*row) for row in group["rows"]]}) for group in CONTENTS["groups"]]


def choose_groups(only: Collection[str]) -> list[RowGroup]:
    """The groups of these names, or all. Raises DataError for other names."""
    names = [group.name for group in GROUPS]
    if unknown := sorted({*only} - {*names}):
        raise DataError(f"no group {', '.join(unknown)}; there are {', '.join(names)}")
    return [group for group in GROUPS if not only or group.name in only]


@dataclass(frozen=True)
class Ablation:
    """An ablation in a folder."""

    plan: AblationPlan
    folder: Path
    command: str

    def run(self, seeds: Sequence[int], only: Collection[str]) -> Path:
        """Train and measure the rows that are not finished, and write the report, which is returned, after each.

        All rows of the chosen groups are trained with the first seed before any with the second. Ctrl-C saves the row
        in training, and the same command resumes. If rows fail, the others are finished and reported first.
        """
        groups = choose_groups(only)
        self.plan.check()
        self._claim_folder()
        shared = (TABLE, 1)
        rows = [(row.key, seed) for seed in seeds for group in groups for row in group.rows if row.key != TABLE]
        waiting = [key for key in dict.fromkeys([shared, *rows]) if not self.file(key).exists()]
        if waiting:
            logger.info("%d rows to train", len(waiting))
            # In a process of its own, so that its memory does not count as a row's.
            list(answers(MODULE, [str(self.folder)], threads=self.plan.threads))
        failed = list[Key]()
        for key in waiting:
            if not self._train(key):
                failed.append(key)
                if key == shared:
                    break
        if failed:
            logs = ", ".join(str(self.file(key, "log")) for key in failed)
            raise XsentError(f"{len(failed)} rows failed, see {logs}; the same command tries them again")
        return write_ablation(self.plan, self.folder, self.command)

    def file(self, key: Key, kind: str = "json") -> Path:
        """The figures of a row, or the log of its training."""
        return self.folder / "rows" / f"{key[0]}-{key[1]}.{kind}"

    def _claim_folder(self) -> None:
        """Write the plan into the folder. Raises DataError if there is another."""
        (self.folder / "rows").mkdir(parents=True, exist_ok=True)
        path = self.folder / "plan.json"
        settings = json.dumps(asdict(self.plan))
        if not path.exists():
            path.write_text(settings)
        now = json.loads(settings)
        before = json.loads(path.read_text())
        if was := ", ".join(f"{name} = {before.get(name)!r}" for name in now if before.get(name) != now[name]):
            raise DataError(f"{self.folder} holds an ablation with {was}; name another --out, or the same settings")

    def _train(self, key: Key) -> bool:
        """Train and measure a row in a child, and write the report; returns whether the row is finished."""
        variant, seed = key
        log = self.file(key, "log").open("w+b")
        arguments = [str(self.folder), variant, str(seed)]
        with Child(MODULE, arguments, threads=self.plan.threads, messages=log) as child:
            try:
                child.answer()
            except KeyboardInterrupt:
                child.interrupt()
                raise
            except DataError as error:
                logger.error("%s, seed %d: failed: %s", variant, seed, error)
                return False
        logger.info("%s, seed %d: done", variant, seed)
        write_ablation(self.plan, self.folder, self.command)
        return True


def prepare_rows(plan: AblationPlan, folder: Path) -> None:
    """Make what all rows read and is missing: corpus, vocabulary, held-out pairs and store; a small XSR."""
    corpus = folder / "corpus.tsv"
    if not corpus.exists():
        with atomic_file(corpus) as file:
            for pair in Corpus([plan.source], frozenset(plan.languages)):
                if not pair.alone and max(len(pair.english), len(pair.translation)) <= plan.characters:
                    file.write(("\t".join(pair) + "\n").encode())
    recipe = plan.recipe(plan.variants()[TABLE], 1)
    made = prepare(recipe, [corpus], folder / "prepared", threads=plan.threads)
    # Again for trainings that start from a checkpoint: their vocabulary is given, so that their key differs.
    prepare(recipe, [corpus], folder / "prepared-warm", threads=plan.threads, vocabulary=made.tokenizer)
    write_small_xsr(plan.tests / "xsr", folder / "xsr", plan.languages[0], plan.distractors)


def train_and_measure(plan: AblationPlan, folder: Path, key: str, seed: int) -> dict[str, float]:
    """Train a row, or resume its training, and measure it."""
    variant = plan.variants()[key]
    run = folder / "rows" / f"{key}-{seed}"
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
    ends = list[float]()  # of the steps in CPU seconds, which do not count what other processes took
    trained = load_checkpoint(trainer.train(on_step=lambda: ends.append(time.process_time())))
    costs = {"peak MiB": peak_memory()}
    if len(ends) > 1:  # fewer if it was interrupted after the last steps
        costs["s/1,000 steps"] = 1000 * (ends[-1] - ends[0]) / (len(ends) - 1)
    scores = every_score(CheckpointEncoder(trained), plan.tests, folder / "xsr", plan.languages)
    smaller = {
        "¼ of the dimensions": {"dim": plan.dim // 4},
        "1 layers": {"depth": 1},
        "0 layers": {"depth": 0},
    }
    for name, size in smaller.items() if variant.inside else ():
        found = tatoeba(CheckpointEncoder(trained, **size), plan.tests / "tatoeba", plan.languages)
        scores |= {f"{test} {name}": score for test, score in by_direction("Tatoeba", found).items()}
    validation = {VALIDATION[name]: fmean(values.values()) for name, values in trained.about["validation"].items()}
    if key != TABLE:
        remove_folder(run / "checkpoints")
    return {**scores, **validation, **costs}


def write_ablation(plan: AblationPlan, folder: Path, command: str) -> Path:
    """Write `ablation.md`, which is returned, from the rows that are finished."""
    found: dict[str, list[Figures]] = {}
    for file in sorted((folder / "rows").glob("*.json")):
        found.setdefault(file.stem.rpartition("-")[0], []).append(json.loads(file.read_bytes()))
    about = f"`{command}` on {processor_name()}, {plan.threads} thread{'s' * (plan.threads > 1)} a row."
    fields = {**vars(plan), "languages": ", ".join(plan.languages), "first": plan.languages[0]}
    method = Section("How it was measured", points=[text.format(**fields) for text in METHOD])
    shown = [group_section(group, found) for group in GROUPS if any(row.key in found for row in group.rows)]
    return write_pages("Ablation", about, [method, *shown], folder, "ablation")


def group_section(group: RowGroup, found: Mapping[str, Sequence[Figures]]) -> Section:
    """The table of a group, and the order of its rows by the papers' numbers and ours."""
    every = [figures for rows in found.values() for figures in rows]
    names = [name for name in every[0] if all(name in figures for figures in every) and name not in LAST]
    measured = {row.label: row.numbers(found.get(row.key, [])) for row in group.rows}
    headings = [*names, *LAST]
    papers = [*PAPERS.values()] if any(row.paper for row in group.rows) else []
    rows = []
    for row in group.rows:
        ours = [mean_cell(measured[row.label].get(name, []), DECIMALS.get(name, 1)) for name in headings]
        rows.append([row.label, *ours, *([f"{number:.1f}" for number in row.paper] or [NONE] * len(papers))])
    return Section(group.title, group.note, orders(group, measured), Table(["", *headings, *papers], rows))


def mean_cell(numbers: Sequence[float], decimals: int) -> str:
    """The mean, with the deviation of the sample if there are several numbers."""
    if not numbers:
        return NONE
    deviation = f" ± {stdev(numbers):.{decimals}f}" if len(numbers) > 1 else ""
    return f"{fmean(numbers):.{decimals}f}{deviation}"


def orders(group: RowGroup, measured: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """The order of the rows by the papers' numbers and by ours, where there are both."""
    found = []
    compared = [row for row in group.rows if row.paper]
    for column, (name, paper) in enumerate(PAPERS.items()):
        if len(compared) > 1 and all(name in measured[row.label] for row in compared):
            ours = descending({row.label: fmean(measured[row.label][name]) for row in compared})
            found.append(f"{name}, best first, ours: {ours}")
            found.append(f"{paper}, best first: {descending({row.label: row.paper[column] for row in compared})}")
    return found


def descending(numbers: Mapping[str, float]) -> str:
    """The labels from the largest number to the smallest, with = between equal ones."""
    labels = sorted(numbers, key=lambda label: -numbers[label])
    signs = ("=" if numbers[label] == numbers[before] else ">" for before, label in pairwise(labels))
    return labels[0] + "".join(f" {sign} {label}" for sign, label in zip(signs, labels[1:], strict=True))


@one_line_errors()
def main(folder: str, *row: str) -> None:
    """See the module."""
    place = Path(folder)
    raw = json.loads((place / "plan.json").read_text())
    plan = AblationPlan(**raw | {"languages": tuple(raw["languages"])})
    if not row:
        return prepare_rows(plan, place)
    figures = train_and_measure(plan, place, row[0], int(row[1]))
    with atomic_file(place / "rows" / f"{row[0]}-{row[1]}.json") as file:
        file.write(json.dumps(figures).encode())


if __name__ == "__main__":
    serve_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    main(*sys.argv[1:])
