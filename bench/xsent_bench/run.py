"""A whole run: everything that can be measured here, one part after the other, and its report."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from xsent.bundle import Bundle, builtin_path
from xsent.errors import DataError, XsentError
from xsent_bench.bundles import Bundles, trained
from xsent_bench.grid import full_plan, measure_grid, memory_of, quick_plan, share
from xsent_bench.machine import Watch, environment
from xsent_bench.peers import beside_others
from xsent_bench.quality import measure_quality, tests_in
from xsent_bench.report import write_report
from xsent_bench.results import Axis, Measurement, Results
from xsent_bench.training import BATCH, TrainingSpec, measure_training
from xsent_bench.turn import Task, run_turn

logger = logging.getLogger(__name__)

RESULTS = "results.json"
CUT_SHORT = "The run was ended early: this is what was measured by then."
PEERS_QUICK = ("onnxruntime", "fastembed one by one")
Part = Callable[[], Iterable[Measurement]]


def parts(
    results: Results, work: Path, quick: bool, bundles: Sequence[Path], evaluate: Path | None, peers: bool
) -> list[tuple[str, Part]]:
    """What a whole run measures, the most telling first; results get the notes and failures.

    Trained bundles are measured beside the built-in one, with the test sets of `evaluate`. What is wrong with either is
    said now, not when half an hour has gone. The models that are made are kept in `work`, and used again.
    """
    plan, builtin, fail = quick_plan() if quick else full_plan(), builtin_path(), results.failures.append
    made = Bundles(work, trained(bundles, results.notes.append))
    named = {f"{layers} layers {precision}": one.fingerprint_of() for (layers, precision), one in made.given.items()}
    results.environment = {"bundles": named}
    depths = made.depths[-1 if quick else 0 :]
    shares = (share([made.open(n, "int8"), made.open(n, "float32")]) for n in depths)
    found: list[tuple[str, Part]] = [
        ("grid", lambda: measure_grid(plan, made, fail)),
        ("share of the peaks", lambda: shares),
    ]
    if plan.training:
        spec = TrainingSpec(str(work / "training"), steps=8)
        found.append(("training", lambda: measure_training(spec, plan.training, [BATCH], "cpu")))
    if evaluate:
        tests_in(evaluate)
        found.append(("quality", lambda: measure_quality([builtin, *bundles], evaluate, fail)))
    if peers:
        only, turns, number = (PEERS_QUICK, 1, 200) if quick else ((), 3, 1_000)
        others = partial(beside_others, builtin, work, only=only, turns=turns, number=number)
        found.append(("peers", lambda: others(note=results.notes.append, fail=lambda text: fail(f"peers: {text}"))))
    work.mkdir(parents=True, exist_ok=True)
    return found


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
        ("share of the peaks", lambda: [share([ours])]),
    ]


def measure_parts(results: Results, parts: Sequence[tuple[str, Part]], folder: Path) -> Path:
    """Measure part after part into results that have the command line and what the environment has beside the machine.

    What there is is written after each measurement; however it ends, there is a report. A part that fails is a line of
    it; that nothing at all could be measured is a DataError.
    """
    folder.mkdir(parents=True, exist_ok=True)
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
