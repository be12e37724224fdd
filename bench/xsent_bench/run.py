"""A run: what is measured, one step after the other, and the report that is left however the run ends."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle, builtin_path
from xsent.errors import DataError, MissingExtraError, XsentError
from xsent_bench import LENGTHS, OURS
from xsent_bench.bundles import Bundles, open_given, size
from xsent_bench.machine import Watch, environment
from xsent_bench.peers import measure_peers
from xsent_bench.quality import measure_quality, scores_in
from xsent_bench.report import write_report
from xsent_bench.results import Axis, Measurement, Results
from xsent_bench.roofline import measure_share
from xsent_bench.systems import BLOCK, Say, Task, Turn, run_turn, take_turns
from xsent_bench.training import BATCH, TrainingSpec, measure_training
from xsent_export.options import Precision

logger = logging.getLogger(__name__)

RESULTS = "results.json"
CUT_SHORT = "The run was ended early: this is what was measured by then."
PEERS_QUICK = ("onnxruntime", "fastembed one by one")
LONG = 100_000  # sentences over which the memory of some families is watched
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
STEADY = 50_000  # sentences; in a shorter stream memory grows because rows of the table are read for the first time

Step = tuple[str, Callable[[], Iterable[Measurement]]]  # a name, and what it measures when it is called


@dataclass(frozen=True)
class Family:
    """Encoders that differ in their layers alone."""

    precision: Precision
    backend: str
    deepest: bool = False  # measure all layers only; with onnx also the depths of --bundle
    threads: int = 1  # sentences encoded at once
    turns: int = 3  # of each encoder, a fresh process each
    stream: int = 1000  # sentences over which the memory is watched; 0 for not at all
    long: Sequence[int] = ()  # depths whose memory is watched over 100,000 instead, for its slope

    def name(self, layers: int) -> str:
        """The name of one of its encoders."""
        return f"{layers} layers, {self.precision}, {self.backend}, threads {self.threads}"

    def layers(self, bundles: Bundles) -> list[int]:
        """The depths that are measured."""
        if not self.deepest:
            return bundles.depths
        given = {layers for layers, precision in bundles.given if (precision, "onnx") == (self.precision, self.backend)}
        return sorted({bundles.depths[-1], *given})

    def measure(
        self, bundles: Mapping[int, Bundle], lengths: Sequence[int], seconds: float, fail: Say
    ) -> Iterator[Measurement]:
        """Measure the bundle of each depth for `seconds` a length and turn; one that fails is left out.

        Latency and start are yielded after all turns, or after those so far on Ctrl-C; then memory.
        """
        depths = {self.name(layers): layers for layers in bundles}
        tasks = {
            name: Task(
                str(bundles[layers].path),
                OURS,
                {"layers": layers, "backend": self.backend, "threads": self.threads},
                lengths,
                seconds,
            )
            for name, layers in depths.items()
        }
        warm = {name: replace(task, seconds=0) for name, task in tasks.items()}
        take_turns(warm, {name: [] for name in tasks}, fail)  # reads the files into the system's cache
        tasks = {name: tasks[name] for name in warm}
        found: dict[str, list[Turn]] = {name: [] for name in tasks}
        axes: dict[str, dict[str, Axis]] = {
            name: {"layers": depths[name], "precision": self.precision, "backend": self.backend} for name in tasks
        }
        try:
            for _ in range(self.turns):
                take_turns(tasks, found, fail)
        finally:
            for name, done in found.items():
                if done:
                    yield from latencies({**axes[name], "threads": self.threads}, done)
                    if self.threads == 1:
                        turns = [{"first_ms": turn.first_ms, "first_mib": turn.first_mib} for turn in done]
                        yield Measurement.of_turns("start", axes[name], turns)
        if self.stream:
            streams: dict[str, list[Turn]] = {name: [] for name in tasks}
            watched = {name: LONG if depths[name] in self.long else self.stream for name in tasks}
            tasks = {name: replace(task, lengths=(), stream=watched[name]) for name, task in tasks.items()}
            take_turns(tasks, streams, fail)
            yield from (memory_of(axes[name], streams[name][0]) for name in tasks)


@dataclass(frozen=True)
class RunPlan:
    """What is measured of the bundles."""

    families: Sequence[Family]  # the most important first, in case the run is ended early
    lengths: Sequence[int] = LENGTHS  # tokens of the sentences that are timed, where a bundle takes them
    seconds: float = 0.3  # for each length in a turn
    training: Sequence[int] = (1, 2, 4, 6)  # layers of the measured trainings


def quick_plan() -> RunPlan:
    """About two minutes on two cores; without training, whose vocabulary alone takes half a minute."""
    families = [
        Family("int8", "onnx", turns=2, stream=5_000),
        Family("float32", "onnx", deepest=True, turns=2),
        Family("int4-table", "onnx", deepest=True, turns=2),
        Family("int8", "numpy", deepest=True, turns=2),
    ]
    return RunPlan(families, lengths=(8, 32, 128), training=())


def full_plan() -> RunPlan:
    """About fifteen minutes on two cores, with training."""
    families = [Family("int8", "onnx", stream=5_000, long=(0, 2))]
    if (cpus := available_cpus()) > 1:
        families.append(Family("int8", "onnx", threads=cpus, turns=2, stream=0))
    families += [
        Family("float32", "onnx", turns=2),
        Family("int4-table", "onnx", turns=2),
        Family("int8", "openvino", turns=2),
        Family("int8", "numpy", turns=2),
        Family("float32", "numpy", deepest=True, turns=2),
    ]
    return RunPlan(families)


def measure_plan(plan: RunPlan, bundles: Bundles, fail: Say) -> Iterator[Measurement]:
    """Size, latency, start and memory of each family; failures are reported."""
    sized = set[tuple[int, str]]()
    for family in plan.families:
        opened: dict[int, Bundle] = {}
        for layers in family.layers(bundles):
            logger.info("bundle: %s", family.name(layers))
            try:
                opened[layers] = bundles.open(layers, family.precision, openvino=family.backend == "openvino")
            except MissingExtraError as error:
                fail(f"{family.precision}, {family.backend}: {error}")
                break
            except (XsentError, OSError) as error:
                fail(f"{family.name(layers)}: {error}")
        if family.backend != "openvino":
            yield from (size(bundle) for layers, bundle in opened.items() if (layers, family.precision) not in sized)
            sized |= {(layers, family.precision) for layers in opened}
        yield from family.measure(opened, plan.lengths, plan.seconds, fail)


def latencies(axes: Mapping[str, Axis], turns: Sequence[Turn]) -> Iterator[Measurement]:
    """The figures of each length: percentiles over the sentences of all turns, rates of the median turn.

    A percentile is left out where less than one sentence lies beyond it.
    """
    for tokens in turns[0].ms:
        by_turn_ms = [turn.ms[tokens] for turn in turns]
        all_ms = [ms for one in by_turn_ms for ms in one]
        shares = {name: share for name, share in PERCENTILES.items() if (100 - share) * len(all_ms) >= 100}
        rates = [turn.rates[tokens] for turn in turns]
        figures = {name: float(np.percentile(all_ms, share)) for name, share in shares.items()}
        figures |= {"sentences_per_second": median(rates), "tokens_per_second": tokens * median(rates)}
        by_turn = {name: [float(np.percentile(ms, share)) for ms in by_turn_ms] for name, share in shares.items()}
        by_turn |= {"sentences_per_second": rates, "tokens_per_second": [tokens * rate for rate in rates]}
        yield Measurement("latency", {**axes, "tokens": tokens}, figures, by_turn)


def memory_of(axes: Mapping[str, Axis], turn: Turn) -> Measurement:
    """The memory over a stream, plus growth per 10,000 sentences over the second half, if it is long enough."""
    most = max(turn.memory)
    figures = {"mib_1": turn.first_mib, **{f"mib_{n}": turn.memory[n] for n in turn.memory if n in (BLOCK, most)}}
    if most >= STEADY:
        half = min(number for number in turn.memory if number >= most / 2)
        figures["slope_mib"] = (turn.memory[most] - turn.memory[half]) / (most - half) * 10_000
    return Measurement("memory", axes, {**figures, "peak_mib": turn.peak_mib})


def steps_of_run(
    results: Results, work: Path, quick: bool, bundles: Sequence[Path], evaluate: Path | None, peers: bool
) -> list[Step]:
    """The steps of a whole run, the most important first; the results get the notes and failures.

    Given bundles are measured as well as the built-in one, with the test sets of `evaluate`. Bad ones of either raise
    here, not after half an hour. The models that are made are kept in `work`, and used again.
    """
    plan = quick_plan() if quick else full_plan()
    builtin = builtin_path()
    fail = results.failures.append
    made = Bundles(work, open_given(bundles, results.notes.append))
    names = {f"{layers} layers {precision}": one.fingerprint_of() for (layers, precision), one in made.given.items()}
    results.environment = {"bundles": names}
    depths = made.depths[-1 if quick else 0 :]
    shares = (measure_share([made.open(n, "int8"), made.open(n, "float32")]) for n in depths)
    steps: list[Step] = [("grid", lambda: measure_plan(plan, made, fail)), ("share of the peaks", lambda: shares)]
    if plan.training:
        spec = TrainingSpec(str(work / "training"), steps=8)
        steps.append(("training", lambda: measure_training(spec, plan.training, [BATCH], "cpu")))
    if evaluate:
        scores_in(evaluate)
        steps.append(("quality", lambda: measure_quality([builtin, *bundles], evaluate, fail)))
    if peers:
        only, turns, number = (PEERS_QUICK, 1, 200) if quick else ((), 3, 1_000)
        others = partial(measure_peers, builtin, work, only=only, turns=turns, number=number)
        steps.append(("peers", lambda: others(note=results.notes.append, fail=lambda text: fail(f"peers: {text}"))))
    work.mkdir(parents=True, exist_ok=True)
    return steps


def steps_of_peers(
    results: Results, bundle: Path, work: Path, only: Sequence[str], turns: int, number: int, stream: int
) -> list[Step]:
    """Other systems and a bundle, its memory over a stream, and its share of the machine's peaks."""
    note = results.notes.append
    fail = results.failures.append
    ours = Bundle.open(bundle)
    axes: dict[str, Axis] = {"layers": ours.num_layers, "precision": ours.precision, "backend": "onnx"}
    note(f"{turns} turns, {number:,} sentences.")
    return [
        ("peers", lambda: measure_peers(bundle, work, only=only, turns=turns, number=number, note=note, fail=fail)),
        ("memory", lambda: [memory_of(axes, run_turn(Task(str(bundle), stream=stream)))] if stream else []),
        ("share of the peaks", lambda: [measure_share([ours])]),
    ]


def measure_steps(results: Results, steps: Sequence[Step], folder: Path) -> Path:
    """Run step after step, and add what they measure to the results; returns the report.

    The results are written after each measurement, and there is a report however the run ends. A failed step is a line
    of it. Raises DataError if nothing could be measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    machine = {**environment(), **results.environment}
    minutes = dict[str, float]()
    with Watch() as watch:
        try:
            for name, measure in steps:
                logger.info("%s", name)
                began = time.perf_counter()
                try:
                    for measurement in measure():
                        logger.info("%s", measurement)
                        results.measurements.append(measurement)
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
