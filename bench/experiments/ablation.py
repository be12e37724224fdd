"""The papers' ablations at small scale: every variant trained on as many of the same pairs; docs/results/ablation.md.

Each row of a table is trained in its own process and is finished when its figures are in OUT/rows:
python ablation.py --row OUT [VARIANT SEED]; without a variant it prepares the data of all rows.
"""

import json
import logging
import lzma
import shlex
import shutil
import sys
import time
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import typer

from translation import TranslatorConfig, compare
from xsent.bundle import builtin_path
from xsent.cli.options import split_names
from xsent.cli.terminal import log_to_stderr, markdown_table, one_line_errors
from xsent.cpu import processor_name
from xsent.errors import DataError, XsentError, counted
from xsent.evaluation.judgements import sts
from xsent.evaluation.result import Evaluation
from xsent.evaluation.topics import ENGLISH, transfer_from_english
from xsent.evaluation.translation import tatoeba, xsr
from xsent.files.atomic import atomic_file, read_json, remove_folder, to_json
from xsent.files.text import read_lines
from xsent.open_model import SupportsEncode
from xsent_bench.cli import numbers
from xsent_bench.processes import answers, peak_memory, serve_parent
from xsent_bench.report import Section, write_pages
from xsent_bench.results import NONE
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.data.corpus import Corpus, write_pairs
from xsent_train.data.preparation import prepare
from xsent_train.objectives import Align, Objectives
from xsent_train.recipe import CorpusConfig, Recipe, StageConfig, VocabularyConfig
from xsent_train.trainer import Trainer

logger = logging.getLogger(__name__)

ROW = "--row"  # first argument of a process that trains a row
TABLE = "table"  # the variant from which the warm ones start
CONTENTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("ablation.toml").read_text(encoding="utf-8"))
METHOD: list[str] = CONTENTS["method"]  # the first points of the report, with fields of the plan in braces

VALIDATION = {"p1": "held-out P@1", "loss": "held-out loss"}  # from names in a checkpoint to headings
NEEDED = 3  # seeds: by chance, all of one row are above all of another once in 20 times
LAST = (*VALIDATION.values(), "s/1,000 steps", "peak MiB")  # headings after those of the scores
DECIMALS = {"held-out loss": 3, "peak MiB": 0}  # 1 for other headings
PAPER = "paper "  # before the heading of a paper's numbers
PAPERS = ("paper XSR en→fr", "paper MLDoc en→fr")
OURS = {"paper MLDoc en→fr": "SIB en→fr"}  # other headings of ours: MLDoc's text is licensed

Figures = Mapping[str, float]  # of a row, by heading


@dataclass(frozen=True)
class Variant:
    """An encoder to train and measure."""

    stage: StageConfig
    dim: int
    warm: bool  # starts from the table that all warm variants share, else from nothing
    inside: bool  # also measure the encoders inside: a quarter of the dimensions, one layer, no layers
    translates: bool  # also train and measure translators that start from it, and from nothing


@dataclass(frozen=True)
class AblationPlan:
    """What all rows of an ablation share."""

    data: str  # folder with `train/pairs.tsv` (or compressed) and the test sets under `eval`
    teacher: str = ""  # folder of the model to distil from; empty: the built-in one
    pairs: int = 64_000  # seen by a row
    table_pairs: int = 1_024_000  # seen by the shared table
    languages: tuple[str, ...] = ("fr", "de")  # other than English
    characters: int = 120  # longest kept sentence on either side: many rows must be affordable
    vocabulary: int = 8_000
    dim: int = 128  # unless a row is about it
    max_tokens: int = 32  # per sentence in training
    batch_size: int = 128  # unless a row is about it
    clusters: int = 1024  # for batches of hard negatives
    validation_share: float = 0.005  # of English sentences, held out
    validation_pairs: int = 1000  # per language, held out
    distractors: int = 20_000  # further candidates of the retrieval test
    threads: int = 1  # per row

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

    def variant(self, key: str) -> Variant:
        """The variant of a key; tables may share variants."""
        raw = CONTENTS["variants"][key]
        named = {**CONTENTS["variants"].get(raw.get("like"), {}), **raw}
        start = named.pop("start", "nothing")
        settings = {"num_layers": 2, "max_tokens": self.max_tokens, **CONTENTS["start"][start], **named}
        settings.pop("like", None)
        inside, translates = settings.pop("inside", False), settings.pop("translates", False)
        dim = int(self.dim * settings.pop("dim", 1))
        size = int(self.batch_size * settings.pop("batch"))
        steps = max(1, (self.table_pairs if key == TABLE else self.pairs) // size)
        settings = {"warmup": max(1, steps // 10), **settings}
        if settings.get("order") == "cluster":
            settings["clusters"] = self.clusters
        if "prefixes" in settings:
            settings["prefixes"] = [int(share * dim) for share in settings["prefixes"]]
        stage = StageConfig(name=key, steps=steps, batch_size=size, validate_every=steps, **settings)
        return Variant(stage, dim, start == TABLE, inside, translates)


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    label: str  # the paper's name of it
    key: str  # of its variant
    paper: Sequence[float] = ()  # its numbers; empty if it has none
    inside: str = ""  # show the scores of this smaller encoder inside, or start of a translator, instead

    def numbers(self, found: Sequence[Figures]) -> dict[str, list[float]]:
        """Its numbers by heading, one for each seed in `found`; empty if there is none."""
        ending = f" {self.inside}" if self.inside else ""  # an encoder inside has no training of its own
        names = [name for name in found[0] if name.endswith(ending)] if found else []
        return {name.removesuffix(ending): [figures[name] for figures in found if name in figures] for name in names}


@dataclass(frozen=True)
class RowGroup:
    """A table."""

    name: str  # for `--only`, which also takes keys of rows
    title: str
    note: str
    rows: Sequence[Row]
    papers: Sequence[str] = PAPERS  # headings of the papers' numbers


ORDER = ("the paper's order", "score", "paper", "ours", "holds")  # headings
GROUPS = [RowGroup(**{**group, "rows": [Row(*row) for row in group["rows"]]}) for group in CONTENTS["groups"]]


def choose_rows(only: Collection[str]) -> list[str]:
    """The keys of the rows with these keys or in groups of these names, or of all. Raises DataError for other names."""
    groups = {group.name: [row.key for row in group.rows] for group in GROUPS}
    keys = list(dict.fromkeys(key for rows in groups.values() for key in rows))
    if unknown := sorted({*only} - {*groups, *keys}):
        raise DataError(f"no group or row {', '.join(unknown)}; there are {', '.join([*groups, *keys])}")
    chosen = {key for name in only for key in groups.get(name, [name])}
    return [key for key in keys if not only or key in chosen]


def run_ablation(plan: AblationPlan, folder: Path, command: str, seeds: Sequence[int], only: Collection[str]) -> Path:
    """Train and measure the unfinished rows, and write the report after each; returns its path.

    All chosen rows are trained with the first seed before any with the second, each in its own process,
    so that memory is per row. Ctrl-C saves the row in training, and the same command resumes.
    """
    chosen = choose_rows(only)
    if plan.source and not plan.tests.is_dir():
        raise DataError(f"{plan.data}: no folder eval in it; expected eval/tatoeba, xsr, sib200 and stsb")
    if plan.teacher and not Path(plan.teacher).is_dir():
        raise DataError(f"{plan.teacher}: no such folder; --teacher takes the folder of a model")
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    path, settings = folder / "plan.json", json.loads(json.dumps(asdict(plan)))
    if not path.exists():
        with atomic_file(path) as file:
            file.write(to_json(settings))
    before = read_json(path, "choose another --out")
    if was := ", ".join(f"{name} = {before.get(name)!r}" for name in settings if before.get(name) != settings[name]):
        raise DataError(f"{folder} holds an ablation with {was}; choose another --out, or the same settings")
    first = [(TABLE, 1)] if TABLE in chosen or any(plan.variant(key).warm for key in chosen) else []
    keys = first + [(key, seed) for seed in seeds for key in chosen if key != TABLE]
    rows = {f"{key}-{seed}": (key, str(seed)) for key, seed in keys}
    waiting = {name: row for name, row in rows.items() if not (folder / "rows" / f"{name}.json").exists()}
    if waiting:
        logger.info("%d of %d rows to train", len(waiting), len(rows))
        list(answers([__file__, ROW, str(folder)], threads=plan.threads))
    began = time.monotonic()
    for number, (name, row) in enumerate(waiting.items(), 1):
        log = folder / "rows" / f"{name}.log"
        with log.open("w+b") as messages:
            try:
                list(answers([__file__, ROW, str(folder), *row], threads=plan.threads, messages=messages))
            except DataError as error:
                raise XsentError(f"{name} failed: {error}; see {log}; the same command tries it again") from error
        left = len(waiting) - number
        minutes = (time.monotonic() - began) / 60 / number
        logger.info("%s: done, %d of %d rows, %.0f minutes left", name, len(rows) - left, len(rows), minutes * left)
        write_ablation(plan, folder, command)
    return write_ablation(plan, folder, command)


def prepare_rows(plan: AblationPlan, folder: Path) -> None:
    """Make what all rows read, where it is missing: corpus, vocabulary, held-out pairs and store; a small XSR."""
    corpus = folder / "corpus.tsv"
    if not corpus.exists():
        pairs = (pair for pair in Corpus([plan.source], frozenset(plan.languages)) if not pair.alone)
        write_pairs(corpus, (pair for pair in pairs if max(map(len, pair[2:])) <= plan.characters))
    recipe = plan.recipe(plan.variant(TABLE), 1)
    made = prepare(recipe, [corpus], folder / "prepared", threads=plan.threads)
    # Again for trainings that start from a checkpoint: their vocabulary is given, so that their key differs.
    prepare(recipe, [corpus], folder / "prepared-warm", threads=plan.threads, vocabulary=made.tokenizer)
    write_small_xsr(plan.tests / "xsr", folder / "xsr", plan.languages[0], plan.distractors)


def train_and_measure(plan: AblationPlan, folder: Path, key: str, seed: int) -> dict[str, float]:
    """Train a row, or resume its training, and measure it."""
    variant = plan.variant(key)
    run = folder / "rows" / f"{key}-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    teacher = Path(plan.teacher) if plan.teacher else builtin_path()
    trainer = Trainer(
        plan.recipe(variant, seed),
        folder,
        run,
        threads=plan.threads,
        prepared=folder / ("prepared-warm" if variant.warm else "prepared"),
        teacher=teacher if variant.stage.objectives.distils else None,
        start=next((folder / "rows" / f"{TABLE}-1" / "checkpoints").iterdir()) if variant.warm else None,
    )
    ends = list[float]()  # of the steps in CPU seconds, which exclude other processes
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
    if variant.translates:
        scores |= translators(plan, folder, key, seed, trained.path)
    validation = {VALIDATION[name]: fmean(values.values()) for name, values in trained.about["validation"].items()}
    if key != TABLE:
        remove_folder(run / "checkpoints")
    return {**scores, **validation, **costs}


def translators(plan: AblationPlan, folder: Path, key: str, seed: int, start: Path) -> dict[str, float]:
    """BLEU and chrF of translators into English, from nothing and from a row's encoder, by direction and start."""
    variant = plan.variant(key)
    taken = variant.stage.model_dump(include={"num_layers", "steps", "batch_size", "max_tokens", "warmup"})
    taken |= {"name": "translator", "order": "length", "learning_rate": 1e-3, "dropout": 0.1}
    stage = StageConfig(**taken, objectives=Objectives(align=Align()))
    recipe = plan.recipe(variant, seed).model_copy(update={"stages": (stage,)})
    run, tests = folder / "rows" / f"{key}-{seed}" / "translators", plan.tests / "tatoeba"
    table = compare(recipe, TranslatorConfig(decoder_layers=1), folder, run, tests, threads=plan.threads, start=start)
    return {f"{name} {row['direction']} {row['encoder']}": row[name] for row in table for name in ("BLEU", "chrF")}


def by_direction(name: str, measured: Evaluation) -> dict[str, float]:
    """P@1 in both directions of every language, with names for a table."""
    both = {"xx_en": "{}→en", "en_xx": "en→{}"}
    scores = measured.scores.items()
    return {f"{name} {text.format(code)}": found[way] for code, found in scores for way, text in both.items()}


def every_score(encoder: SupportsEncode, tests: Path, small_xsr: Path, languages: Sequence[str]) -> dict[str, float]:
    """The scores of the ablation by name, in per cent.

    `languages` excludes English; XSR and STS-B are measured for the first of them.
    """
    first = languages[0]
    found = by_direction("Tatoeba", tatoeba(encoder, tests / "tatoeba", languages))
    found |= by_direction("XSR", xsr(encoder, small_xsr, [first]))
    cells = transfer_from_english(encoder, tests / "sib200", [ENGLISH, *languages])
    accuracy = {cell.test: cell.accuracy for cell in cells}
    found |= {f"SIB en→{language}": share for language, share in accuracy.items()}
    similar = sts(encoder, tests / "stsb", [ENGLISH, first]).scores
    return found | {f"STS {language}": 100 * figures["spearman"] for language, figures in similar.items()}


def write_small_xsr(source: Path, folder: Path, language: str, distractors: int) -> None:
    """Copy the files of XSR in a language with fewer distractors: the 200,000 of the protocol take long."""
    pairs = f"en-{language}.tsv"
    candidates = f"distractors.{language}.txt.xz"
    for name in (pairs, candidates):
        if not (source / name).is_file():
            raise DataError(f"{source / name}: no such file; expected the test set of XSR")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / pairs, folder / pairs)
    lines = islice(read_lines(source / candidates), distractors)
    with atomic_file(folder / candidates) as file:
        file.write(lzma.compress("".join(f"{line}\n" for line in lines).encode()))


def write_ablation(plan: AblationPlan, folder: Path, command: str) -> Path:
    """Write `ablation.md` from the finished rows; returns its path."""
    found: dict[str, list[Figures]] = {}
    for file in sorted((folder / "rows").glob("*.json")):
        found.setdefault(file.stem.rpartition("-")[0], []).append(json.loads(file.read_bytes()))
    about = f"`{command}` on {processor_name()}, {counted(plan.threads, 'thread')} per row."
    fields = {**vars(plan), "languages": ", ".join(plan.languages), "first": plan.languages[0]}
    method = Section("How it was measured", points=[text.format(**fields) for text in METHOD])
    # A group of one row compares nothing.
    shown = [group for group in GROUPS if len({(row.key, row.inside) for row in group.rows if row.key in found}) > 1]
    orders = [order for group in shown for order in group_orders(group, found)]
    holds = Section("What holds", CONTENTS["holds"].format(needed=NEEDED), (), markdown_table(ORDER, orders))
    tables = [group_section(group, found) for group in shown]
    first = [holds, method] if orders else [method]
    return write_pages("Ablation", about, [*first, *tables], folder, "ablation")


def group_orders(group: RowGroup, found: Mapping[str, Sequence[Figures]]) -> list[list[str]]:
    """Whether the order of the rows in a paper is ours, for neighbours in it: rows of a table with headings `ORDER`."""
    orders = []
    for column, heading in enumerate(group.papers):
        ours = OURS.get(heading, heading.removeprefix(PAPER))
        known = [row for row in group.rows if row.paper and row.key in found]
        ranked = sorted(known, key=lambda row: row.paper[column], reverse=True)
        for better, worse in pairwise(ranked):
            first, second = (row.numbers(found[row.key]).get(ours, []) for row in (better, worse))
            if first and second and (paper := better.paper[column] - worse.paper[column]):
                order, here = f"{better.label} > {worse.label}", fmean(first) - fmean(second)
                orders.append([order, ours, f"{paper:+.1f}", f"{here:+.1f}", verdict(first, second)])
    return orders


def verdict(better: Sequence[float], worse: Sequence[float]) -> str:
    """Whether an order holds, by the scores of each seed."""
    if min(len(better), len(worse)) < NEEDED or max(min(better), min(worse)) <= min(max(better), max(worse)):
        return "open"
    return "yes" if min(better) > max(worse) else "no"


def group_section(group: RowGroup, found: Mapping[str, Sequence[Figures]]) -> Section:
    """The table of a group's measured rows, with the papers' numbers beside ours."""
    known = [row for row in group.rows if row.key in found]
    every = [figures for rows in found.values() for figures in rows]
    names = [name for name in every[0] if all(name in figures for figures in every) and name not in LAST]
    measured = {row.label: row.numbers(found.get(row.key, [])) for row in known}
    headings = [*names, *LAST]
    if all(row.inside for row in known):  # with scores of their own
        headings = list(dict.fromkeys(name for numbers in measured.values() for name in numbers))
    papers = group.papers if any(row.paper for row in known) else []
    rows = []
    for row in known:
        ours = [mean_cell(measured[row.label].get(name, []), DECIMALS.get(name, 1)) for name in headings]
        rows.append([row.label, *ours, *([f"{number:.1f}" for number in row.paper] or [NONE] * len(papers))])
    return Section(group.title, group.note, (), markdown_table(["", *headings, *papers], rows))


def mean_cell(numbers: Sequence[float], decimals: int) -> str:
    """The mean, with the sample deviation if there are several numbers."""
    if not numbers:
        return NONE
    deviation = f" ± {stdev(numbers):.{decimals}f}" if len(numbers) > 1 else ""
    return f"{fmean(numbers):.{decimals}f}{deviation}"


@one_line_errors()
def ablation(
    data: Annotated[
        Path, typer.Argument(help="Folder with train/pairs.tsv (may be compressed) and test sets in eval.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of all output; a second run resumes in it.")],
    pairs: Annotated[int, typer.Option(min=1, help="Pairs that each row learns from.")] = 64_000,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas; all rows of one before the next.")] = "1",
    only: Annotated[str, typer.Option(help="Names of groups or rows, separated by commas; default: all.")] = "",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads per row.")] = 1,
    teacher: Annotated[Path | None, typer.Option(help="Model to distil from; default: the built-in one.")] = None,
) -> None:
    """Reproduce the papers' ablations: every variant on as many of the same pairs, as Markdown.

    Groups: generative, contrastive, layers, sizes, hictl, translation, negatives, matryoshka, distillation. A
    finished row is never retrained; after Ctrl-C the same command resumes.
    """
    model = str(teacher.resolve()) if teacher else ""
    plan = AblationPlan(data=str(data.resolve()), teacher=model, pairs=pairs, threads=threads)
    folders = {data: "DATA", out: "OUT", teacher: "MODEL"}  # the page names no folders of this machine
    words = ["python", "bench/experiments/ablation.py", *(folders.get(Path(word), word) for word in sys.argv[1:])]
    typer.echo(run_ablation(plan, out, shlex.join(words), numbers(seeds), split_names(only)))


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
    log_to_stderr()
    if sys.argv[1:2] == [ROW]:
        serve_parent()
        main(*sys.argv[2:])
    else:
        typer.run(ablation)
