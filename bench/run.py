"""A whole run: everything that can be measured here, one part after the other, and its report."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xsent.bench.bundles import Bundles, trained
from xsent.bench.grid import full_plan, measure_grid, memory_of, quick_plan, share
from xsent.bench.machine import Watch, environment
from xsent.bench.peers import beside_others
from xsent.bench.quality import measure_quality, tests_in
from xsent.bench.report import write_report
from xsent.bench.results import Axis, Measurement, Results
from xsent.bench.training import BATCH, TrainingSpec, measure_training
from xsent.bench.turn import Task, run_turn
from xsent.bundle import Bundle, builtin_path
from xsent.errors import DataError, XsentError

logger = logging.getLogger(__name__)

RESULTS = "results.json"
CUT_SHORT = "The run was ended early: this is what was measured by then."
PEERS_QUICK = ("onnxruntime", "fastembed one by one")
Part = Callable[[], Iterable[Measurement]]


@dataclass(frozen=True)
class Choices:
    """What a run measures."""

    quick: bool = False  # minutes instead of half an hour: less of everything
    bundles: Sequence[Path] = ()  # trained ones beside the built-in one
    evaluate: Path | None = None  # folder of test sets; None leaves quality out
    peers: bool = True  # whether other systems run beside ours


def run(out: Path, work: Path, choices: Choices, *, force: bool, command: str) -> Path:
    """Measure everything and write the report into `out`; the models that are made for it are kept, and used again."""
    if (out / RESULTS).exists() and not force:
        raise DataError(f"{out / RESULTS}: there is a report; name another --out, or replace it with --force")
    bundles = trained(choices.bundles)  # what is wrong with them is said before half an hour has gone
    if choices.evaluate:
        tests_in(choices.evaluate)
    for folder in (out, work):
        folder.mkdir(parents=True, exist_ok=True)
    named = {f"{layers} layers {precision}": bundle.fingerprint for (layers, precision), bundle in bundles.items()}
    results = Results(command, {"bundles": named})
    return measure_parts(results, parts(results, work, choices), out)


def parts(results: Results, work: Path, choices: Choices) -> list[tuple[str, Part]]:
    """What a run measures, the most telling first; results get the notes and failures."""
    note, fail, quick, builtin = results.notes.append, results.failures.append, choices.quick, builtin_path()
    plan, made = quick_plan() if quick else full_plan(), Bundles(work, trained(choices.bundles))
    spec = TrainingSpec(str(work / "training"), steps=8)
    only, turns, number = (PEERS_QUICK, 1, 200) if quick else ((), 3, 1_000)

    def not_measured(text: str) -> None:
        fail(f"peers: {text}")

    others = partial(beside_others, builtin, work, only=only, turns=turns, number=number, note=note, fail=not_measured)
    training, tests = partial(measure_training, spec, plan.training, [BATCH], "cpu"), choices.evaluate
    return [
        ("grid", lambda: measure_grid(plan, work, choices.bundles, note=note, fail=fail)),
        (
            "share of the peaks",
            lambda: (share(n, [made.path(n, "int8"), made.path(n, "float32")]) for n in plan.shares),
        ),
        *([("training", training)] if plan.training else []),
        *([("quality", partial(measure_quality, [builtin, *choices.bundles], tests, fail))] if tests else []),
        *([("peers", others)] if choices.peers else []),
    ]


def peers_parts(
    results: Results, bundle: Path, work: Path, only: Sequence[str], turns: int, number: int, stream: int
) -> list[tuple[str, Part]]:
    """A bundle beside other systems, its memory over a stream, and how near it comes to the machine's peaks."""
    note, fail, ours = results.notes.append, results.failures.append, Bundle.open(bundle)
    axes: dict[str, Axis] = {"layers": ours.num_layers, "precision": ours.precision, "backend": "onnx"}
    note(f"{turns} turns, {number:,} sentences.")
    return [
        ("peers", lambda: beside_others(bundle, work, only=only, turns=turns, number=number, note=note, fail=fail)),
        ("memory", lambda: [memory_of(axes, run_turn(Task(str(bundle), stream=stream)))] if stream else []),
        ("share of the peaks", lambda: [share(ours.num_layers, [bundle])]),
    ]


def measure_parts(results: Results, parts: Sequence[tuple[str, Part]], folder: Path) -> Path:
    """Measure part after part into results that have the command line and what the environment has beside the machine.

    What there is is written after each measurement; however it ends, there is a report. A part that fails is a line of
    it; that nothing at all could be measured is a DataError.
    """
    machine, minutes = {**environment(), **results.environment}, dict[str, float]()
    with Watch() as watch:
        try:
            for name, part in parts:
                logger.info("%s", name)
                began = time.perf_counter()
                try:
                    for measurement in part():
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
