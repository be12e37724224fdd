"""A run: its steps, and the report that it leaves however it ends."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle
from xsent.errors import DataError, MissingExtraError, XsentError, in_one_line
from xsent_bench import LENGTHS, OURS
from xsent_bench.bundles import Bundles, Depth, at_each_depth, open_given, size
from xsent_bench.machine import Watch, environment
from xsent_bench.minilm import write_int8, write_minilm
from xsent_bench.quality import check_tests, measure_kept, measure_stored
from xsent_bench.report import write_report
from xsent_bench.results import NONE, RANDOM, RESULTS, Axis, Measurement, Results, named, system_name
from xsent_bench.systems import SYSTEMS
from xsent_bench.turns import Say, Task, run_turn, take_turns
from xsent_export.options import Precision

logger = logging.getLogger(__name__)

CUT_SHORT = "The run ended early; this is what was measured until then."
WORDS = (8, 32, 128)  # of the sentences that are timed to compare systems

Step = tuple[str, Callable[[], Iterable[Measurement]]]  # a name, and the function that measures


@dataclass(frozen=True)
class Family:
    """Encoders that differ only in their layers."""

    precision: Precision
    backend: str
    deepest: bool = False  # only with all layers; with onnx, also all depths of a bundle that has this precision
    threads: int = 1  # sentences encoded at once
    turns: int = 2  # of each encoder, each in a fresh process

    def name(self, depth: Depth) -> str:
        """The name of one of its encoders."""
        whose = system_name({"system": depth[0], "layers": depth[1]})
        return f"{whose}, {self.precision}, {self.backend}, threads {self.threads}"

    def depths(self, bundles: Bundles) -> list[Depth]:
        """The depths that are measured."""
        last = dict(bundles.given.keys())  # by bundle: the fewest layers come first
        own = self.precision if self.backend == "onnx" else None
        return [
            (name, layers)
            for (name, layers), bundle in bundles.given.items()
            if not self.deepest or layers == last[name] or bundle.precision == own
        ]

    def measure(
        self, bundles: Mapping[Depth, Bundle], lengths: Sequence[int], seconds: float, fail: Say
    ) -> Iterator[Measurement]:
        """Measure the bundle of each depth, in turns; each length takes `seconds` per turn."""
        how: dict[str, str | int | None] = {"backend": self.backend, "threads": self.threads}
        depths = {self.name(depth): depth for depth in bundles}
        tasks = {
            name: Task(
                str(bundles[depth].path),
                settings={"layers": depth[1], **how},
                memory=self.threads == 1,
                tokens=lengths,
                seconds=seconds,
            )
            for name, depth in depths.items()
        }
        for name, turn in take_turns(tasks, self.turns, fail):
            system, layers = depths[name]
            axes: dict[str, Axis] = {
                "system": system,
                "layers": layers,
                "precision": self.precision,
                "backend": self.backend,
            }
            for tokens, figures in turn.by_tokens.items():
                yield Measurement("latency", {**axes, "threads": self.threads, "tokens": tokens}, figures)
            if self.threads == 1:
                yield Measurement("process", axes, turn.process)


@dataclass(frozen=True)
class RunPlan:
    """What is measured of the bundles and for how long."""

    families: Sequence[Family]  # the most important first, in case the run ends early
    lengths: Sequence[int] = LENGTHS  # tokens of the timed sentences, up to a bundle's longest
    seconds: float = 0.6  # per length and turn
    turns: int = 3  # of each compared system
    sentences: int = 1_000  # per such turn


def plan_of_run(quick: bool) -> RunPlan:
    """Everything in a report, or with `quick` what takes minutes."""
    if quick:
        families = [
            Family("int8", "onnx"),
            Family("float32", "onnx", deepest=True),
            Family("int4-table", "onnx", deepest=True),
            Family("int8", "numpy", deepest=True),
        ]
        return RunPlan(families, lengths=(8, 32, 128), turns=1, sentences=200)
    cpus = available_cpus()
    families = [
        Family("int8", "onnx", turns=3),
        *([Family("int8", "onnx", threads=cpus)] if cpus > 1 else []),
        Family("float32", "onnx"),
        Family("int4-table", "onnx"),
        Family("int8", "openvino"),
        Family("int8", "numpy"),
        Family("float32", "numpy", deepest=True),
    ]
    return RunPlan(families)


def measure_plan(plan: RunPlan, bundles: Bundles, fail: Say) -> Iterator[Measurement]:
    """Size, latency, start and memory of each family; failures are reported with `fail`."""
    sized = set[tuple[Depth, str]]()
    for family in plan.families:
        opened: dict[Depth, Bundle] = {}
        for depth in family.depths(bundles):
            logger.info("bundle: %s", family.name(depth))
            try:
                opened[depth] = bundles.open(*depth, family.precision, openvino=family.backend == "openvino")
            except MissingExtraError as error:
                fail(f"{family.precision}, {family.backend}: {error}")
                break
            except (XsentError, OSError) as error:
                fail(f"{family.name(depth)}: {error}")
        if family.backend != "openvino":
            new = (depth for depth in opened if (depth, family.precision) not in sized)
            yield from (size(opened[depth], depth[0]) for depth in new)
            sized |= {(depth, family.precision) for depth in opened}
        yield from family.measure(opened, plan.lengths, plan.seconds, fail)


@dataclass(frozen=True)
class Entrant:
    """A bundle at one of its depths, or another system."""

    axes: Mapping[str, Axis]  # system and layers
    model: str
    task: Task  # that opens it
    bytes: float  # of its files


@dataclass(frozen=True)
class Comparison:
    """Bundles at each of their depths and other systems, in turns, each in a fresh process."""

    bundles: Sequence[Path]  # see `named`
    work: Path  # folder of the model with random weights, which is reused
    others: Sequence[str] = tuple(SYSTEMS)
    turns: int = 3
    sentences: int = 1_000  # per turn
    tests: Path | None = None  # folder of test sets

    def __post_init__(self) -> None:
        if unknown := [name for name in self.others if name not in SYSTEMS]:
            raise DataError(f"no system {', '.join(unknown)}; there are {', '.join(SYSTEMS)}")
        if self.tests:
            check_tests(self.tests)

    def measure(self, fail: Say) -> Iterator[Measurement]:
        """Sizes, costs and scores; a system that cannot be opened or fails is reported and skipped."""
        entrants = {system_name(one.axes): one for one in (*self._depths(), *self._others(fail))}
        tasks = {name: replace(one.task, words=WORDS, sentences=self.sentences) for name, one in entrants.items()}
        for name, turn in take_turns(tasks, self.turns, fail):
            one = entrants[name]
            yield Measurement("systems", {**one.axes, "model": one.model}, {**turn.process, "bytes": one.bytes})
        for one in entrants.values() if self.tests else ():
            if RANDOM not in one.model:
                yield from self._scores(one, fail)

    def _depths(self) -> Iterator[Entrant]:
        """The bundles, the most layers first."""
        for name, path in named(self.bundles).items():
            for bundle in reversed(at_each_depth(path)):
                axes: dict[str, Axis] = {"system": name, "layers": bundle.layers}
                task = Task(str(bundle.path), settings={"layers": bundle.layers})
                yield Entrant(axes, f"{bundle.name}, {bundle.precision}", task, size(bundle).figures["bytes"])

    def _others(self, fail: Say) -> Iterator[Entrant]:
        """The other systems; the model with random weights is written."""
        tokenizer = Bundle.open(self.bundles[0]).tokenizer_path
        for name, system in ((name, SYSTEMS[name]) for name in self.others if name != OURS):
            try:
                place = system.find() or write_minilm(tokenizer, self.work)
                place = write_int8(place, self.work) if system.int8 else place
            except Exception as error:  # the packages that write a model raise many kinds
                text = in_one_line(error)
                fail(f"{name}: {text if isinstance(error, XsentError) else f'{type(error).__name__}: {text}'}")
                continue
            files = [place] if place.is_file() else place.glob(system.files)
            model = system.model if system.weights else f"{system.model}, {RANDOM}"
            count = sum(file.stat().st_size for file in files if file.is_file())
            yield Entrant({"system": name, "layers": NONE}, model, Task(str(place), name), count)

    def _scores(self, one: Entrant, fail: Say) -> Iterator[Measurement]:
        """Scores in the languages that all bundles share, or if there are fewer than two, in the bundle's own."""
        common = set.intersection(*(set(Bundle.open(path).languages) for path in self.bundles))
        folder = one.task.folder if one.task.system == OURS else self.bundles[0]
        spoken = SYSTEMS[one.task.system].languages or Bundle.open(folder).languages
        languages = [code for code in spoken if len(common) < 2 or code in common]
        every_cpu = {"threads": None} if one.task.system == OURS else {}
        task = replace(one.task, settings={**one.task.settings, **every_cpu}, memory=False, threads=available_cpus())
        name = f"quality of {system_name(one.axes)}"
        logger.info("%s", name)
        try:
            turn = run_turn(replace(task, tests=str(self.tests), languages=languages))
        except (DataError, OSError) as error:
            fail(f"{name}: {error}")
            return
        for text in turn.failed:
            fail(f"{name}: {text}")
        for code, figures in turn.by_language.items():
            yield Measurement("scores", {**one.axes, "language": code}, figures)


def steps_of_run(
    results: Results, work: Path, quick: bool, bundles: Sequence[Path], evaluate: Path | None
) -> list[Step]:
    """The steps of a whole run, the most important first; the results get the notes and failures.

    The test sets of `evaluate` score each bundle, and the stored vectors of the first. Bad bundles or test sets raise
    here, not after half an hour. The models that are made are kept in `work`, and used again.
    """
    plan = plan_of_run(quick)
    fail = results.failures.append
    made = Bundles(work, open_given(bundles, results.notes.append))
    names = {
        f"{system_name({'system': system, 'layers': layers})} {one.precision}": one.fingerprint_of()
        for (system, layers), one in made.given.items()
    }
    results.environment = {"bundles": names}
    others = [name for name, system in SYSTEMS.items() if system.weights or not quick]
    comparison = Comparison(bundles, work, others, plan.turns, plan.sentences, evaluate)
    steps: list[Step] = [("grid", lambda: measure_plan(plan, made, fail))]
    languages = Bundle.open(bundles[0]).languages
    if evaluate and (evaluate / "tatoeba").is_dir():
        steps.append(("stored", lambda: measure_stored(bundles[0], evaluate / "tatoeba", languages)))
    if evaluate and (evaluate / "passages").is_dir():
        steps.append(("kept", lambda: measure_kept(bundles[0], evaluate / "passages", languages)))
    steps.append(("systems", lambda: comparison.measure(fail)))
    work.mkdir(parents=True, exist_ok=True)
    return steps


def measure_steps(results: Results, steps: Sequence[Step], folder: Path) -> Path:
    """Run step after step, and add what they measure to the results; returns the report.

    The results are written after each measurement, and there is a report however the run ends. A failed step is a line
    of it. Raises DataError if nothing could be measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    machine = {**environment(), **results.environment}
    minutes = dict[str, float]()
    watch = Watch()
    try:
        for name, measure in steps:
            logger.info("%s", name)
            began = time.perf_counter()
            try:
                for measurement in measure():
                    logger.info("%s", measurement)
                    results.add(measurement)
                    results.environment = {**machine, "meanwhile": watch.figures()}
                    results.write(folder / RESULTS)
            except (XsentError, ImportError, OSError, ValueError) as error:
                results.failures.append(f"{name}: {error}")
            minutes[name] = (time.perf_counter() - began) / 60
    except BaseException as error:
        reason = f" {type(error).__name__}: {error}" if isinstance(error, Exception) else ""
        results.notes.append(CUT_SHORT + reason)
        raise
    finally:
        results.environment = {**machine, "meanwhile": watch.figures(), "minutes": minutes}
        results.notes += watch.warnings()
        results.write(folder / RESULTS)
        report = write_report(results, folder)
        logger.info("the report: %s", report)
    if not results.measurements:
        raise DataError(f"nothing could be measured; {'; '.join(results.failures) or 'there was nothing to do'}")
    return report
