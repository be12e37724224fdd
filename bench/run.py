"""A whole run: everything that can be measured here, one part after the other, and its report."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xsent.bench.grid import LAYERS
from xsent.bench.grid.bundles import Bundles, trained
from xsent.bench.grid.fit import fits
from xsent.bench.grid.plan import full_plan, quick_plan
from xsent.bench.grid.plan import measure as measure_grid
from xsent.bench.machine import Watch, environment
from xsent.bench.modules import run_modules
from xsent.bench.peers.report import measure as measure_peers
from xsent.bench.report.files import write_report
from xsent.bench.report.quality import check_tests, measure_quality
from xsent.bench.report.sections import PEER
from xsent.bench.results import Measurement, Results
from xsent.bench.tracking import track
from xsent.bundle import builtin_path
from xsent.errors import DataError, XsentError

logger = logging.getLogger(__name__)

RESULTS = "results.json"
CUT_SHORT = "The run was ended early: this is what was measured by then."
PEERS_QUICK = ("onnxruntime", "fastembed one by one")
Part = Callable[[], Iterable[Measurement]]


@dataclass(frozen=True)
class Choices:
    """What a run measures.

    Attributes:
        quick: Minutes instead of half an hour: less of everything.
        bundles: Trained bundles beside the built-in one.
        evaluate: Folder of test sets; None leaves quality out.
        peers: Whether other systems run beside ours.
    """

    quick: bool = False
    bundles: Sequence[Path] = ()
    evaluate: Path | None = None
    peers: bool = True


def run(out: Path, work: Path, choices: Choices, *, force: bool, command: str) -> Path:
    """Measure everything, and write the report.

    Args:
        out: Folder of the report.
        work: Folder of the models that are made for it; kept, and used again.
        choices: What to measure.
        force: Whether results that lie in `out` are replaced.
        command: The command line, for the report.

    Returns:
        The Markdown file.

    Raises:
        DataError: There are results in `out`, no test sets where they should be, or two bundles are alike.
        BundleError: A bundle is missing or damaged.
    """
    if (out / RESULTS).exists() and not force:
        raise DataError(f"{out / RESULTS}: there is a report; name another --out, or replace it with --force")
    bundles = trained(choices.bundles, lambda _: None)  # what is wrong with them is said before half an hour has gone
    if choices.evaluate:
        check_tests(choices.evaluate)
    for folder in (out, work):
        folder.mkdir(parents=True, exist_ok=True)
    results = Results(command)
    results.environment = {
        "bundles": {f"{layers} layers {precision}": b.fingerprint for (layers, precision), b in bundles.items()}
    }
    return measure_parts(results, parts(results, work, choices), out)


def parts(results: Results, work: Path, choices: Choices) -> Sequence[tuple[str, Part]]:
    """What a run measures, the most telling first.

    Args:
        results: Gets the notes and failures.
        work: Folder of the models that are made.
        choices: What to measure.
    """
    note, fail, quick = results.notes.append, results.failures.append, choices.quick
    found: list[tuple[str, Part]] = []
    plan = quick_plan() if quick else full_plan()
    found.append(("grid", lambda: measure_grid(plan, work, choices.bundles, note=note, fail=fail)))
    if folder := choices.evaluate:
        found.append(("quality", lambda: measure_quality([builtin_path(), *choices.bundles], folder, fail)))
    if choices.peers:
        found.append(
            (
                "peers",
                lambda: measure_peers(
                    builtin_path(),
                    work,
                    only=PEERS_QUICK if quick else (),
                    turns=1 if quick else 3,
                    number=200 if quick else 1_000,
                    note=lambda text: note(PEER + text),
                    fail=lambda text: fail(f"peers: {text}"),
                ),
            )
        )
    found.append(("pytest-benchmark", lambda: measure_modules(work, choices)))
    found.append(("tracking", lambda: track(builtin_path(), command=results.command, by="time").measurements))
    return found


def measure_modules(work: Path, choices: Choices) -> Iterable[Measurement]:
    """The pytest-benchmark modules on the bundles in 8 bits that the grid measured."""
    bundles = Bundles(work, trained(choices.bundles, lambda _: None))
    layers, seconds = ((2,), 0.1) if choices.quick else (LAYERS, 0.25)
    return run_modules([bundles.path(number, "int8") for number in layers], seconds=seconds)


def measure_parts(results: Results, parts: Sequence[tuple[str, Part]], folder: Path) -> Path:
    """Measure part after part, and write what there is after each measurement; however it ends, there is a report.

    Args:
        results: What is filled; has the command line, and what the environment has beside the machine.
        parts: Their names, and what measures them; one that fails is a line of the report.
        folder: Gets `results.json`, `report.md`, `report.html` and `plots/`; it must exist.

    Returns:
        The Markdown file.

    Raises:
        DataError: Nothing at all could be measured.
    """
    machine, minutes = {**environment(), **results.environment}, dict[str, float]()
    with Watch() as watch:
        try:
            for name, part in parts:
                logger.info("%s", name)
                began = time.perf_counter()
                try:
                    for measurement in part():
                        logger.info("%s", measurement.name)
                        results.measurements.append(measurement)
                        results.environment = {**machine, "meanwhile": watch.figures()}
                        results.write(folder / RESULTS)
                except (XsentError, ImportError, OSError, ValueError) as error:
                    results.failures.append(f"{name}: {error}")
                minutes[name] = (time.perf_counter() - began) / 60
        except BaseException as error:
            results.notes.append(
                CUT_SHORT + (f" {type(error).__name__}: {error}" if isinstance(error, Exception) else "")
            )
            raise
        finally:
            results.environment = {**machine, "meanwhile": watch.figures(), "minutes": minutes}
            results.notes += watch.warnings()
            results.write(folder / RESULTS)
            report = write_report(results, folder)
            for line in fits(results.of("latency")):
                logger.info("latency by layers: %s", line)
            logger.info("the report: %s", report)
    if not results.measurements:
        raise DataError(f"nothing could be measured; {'; '.join(results.failures) or 'there was nothing to do'}")
    return report
