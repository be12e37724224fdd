"""The ablation: every row in a process of its own, some at once, a report after each; finished rows are kept."""

import logging
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from xsent.bench.ablation.groups import Group, chosen
from xsent.bench.ablation.place import Place
from xsent.bench.ablation.plan import Plan
from xsent.bench.ablation.report import write_report
from xsent.bench.ablation.variants import TABLE, variants
from xsent.bench.processes import end, start_child, wait_for_one
from xsent.errors import XsentError
from xsent.files import sweep

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A row to train, once others are finished.

    Attributes:
        place: The row.
        needs: The rows that must be finished before.
    """

    place: Place
    needs: frozenset[Place] = frozenset()


def run_ablation(
    plan: Plan, folder: Path, *, seeds: Sequence[int], only: Sequence[str], processes: int, command: str
) -> None:
    """Train and measure what is not finished, and write the report after every row.

    Args:
        plan: The scale.
        folder: Folder of everything that is written.
        seeds: Seeds; all rows are trained with the first one before any with the second.
        only: Names of groups; empty is all.
        processes: Rows at once.
        command: The command line, for the report.

    Raises:
        DataError: The folder holds an ablation of another plan, or the data cannot be used.
        XsentError: Rows failed; the others are finished and reported.
        KeyboardInterrupt: Ctrl-C; the rows in training are lost, the finished ones are not.
    """
    wanted = chosen(plan, only)
    plan.check()
    plan.open(folder)
    (folder / "rows").mkdir(exist_ok=True)
    sweep(folder / "rows")
    jobs = [job for job in all_jobs(plan, folder, wanted, seeds) if job.place.result is None]
    logger.info("%d rows to train, %d at once", len(jobs), processes)
    if jobs:
        prepare_in_child(plan, folder)
    failed = Schedule(plan, folder, command, jobs).run(processes)
    write_report(plan, folder, command)
    if failed:
        names = ", ".join(f"{place.log}" for place in failed)
        raise XsentError(f"{len(failed)} rows failed, see {names}; the same command tries them again")


def prepare_in_child(plan: Plan, folder: Path) -> None:
    """Make what all rows read, if it is not there.

    Raises:
        XsentError: It could not be made; the reason stands on standard error.
    """
    process = start_child("xsent.bench.ablation.preparation", [str(folder)], threads=plan.threads)
    try:
        if process.wait():
            raise XsentError(f"{folder}: the data could not be prepared, see above")
    finally:
        end(process)


def all_jobs(plan: Plan, folder: Path, wanted: Sequence[Group], seeds: Sequence[int]) -> list[Job]:
    """The rows of some groups, each once, in the order in which they are best trained."""
    known = variants(plan)
    table = Place(folder, TABLE, 1)
    jobs = {table: Job(table)}  # it prepares the data, so that all others need it
    for seed in seeds:
        teacher: set[Place] = set()  # the first that distils keeps the teacher's vectors for those that follow
        for group in wanted:
            for key in (row.key for row in group.rows):
                place = Place(folder, key, seed)
                if key != TABLE and place not in jobs:
                    jobs[place] = Job(place, frozenset({table} | teacher))
                if known[key].distils and not teacher:
                    teacher = {place}
    return list(jobs.values())


class Schedule:
    """Runs jobs, some at once."""

    def __init__(self, plan: Plan, folder: Path, command: str, jobs: Sequence[Job]) -> None:
        self._plan, self._folder, self._command = plan, folder, command
        self._waiting = list(jobs)
        self._running: dict[subprocess.Popen[bytes], Job] = {}
        self._failed: list[Place] = []

    def run(self, processes: int) -> list[Place]:
        """Run all jobs, so many at once.

        Returns:
            The rows that failed.
        """
        try:
            while self._waiting or self._running:
                while len(self._running) < processes and (job := self._next()):
                    self._running[self._start(job.place)] = job
                for process in wait_for_one(list(self._running)):
                    end(process)
                    self._finish(process, self._running.pop(process))
            return self._failed
        finally:
            for process, job in self._running.items():
                end(process)
                with suppress(OSError):
                    shutil.rmtree(job.place.run)

    def _next(self) -> Job | None:
        pending = {job.place for job in [*self._waiting, *self._running.values()]}
        for job in self._waiting:
            if not job.needs & pending:
                self._waiting.remove(job)
                return job
        return None

    def _start(self, place: Place) -> "subprocess.Popen[bytes]":
        module, arguments = "xsent.bench.ablation.row", [str(place.folder), place.key, str(place.seed)]
        with place.log.open("wb") as log:
            return start_child(module, arguments, threads=self._plan.threads, stdout=log, stderr=log)

    def _finish(self, process: "subprocess.Popen[bytes]", job: Job) -> None:
        place, left = job.place, len(self._waiting) + len(self._running)
        if process.returncode == 0 and place.result is not None:
            logger.info("%s, seed %d: done, %d rows left", place.key, place.seed, left)
            write_report(self._plan, self._folder, self._command)
            return
        lines = place.log.read_text(errors="replace").splitlines()
        logger.error("%s, seed %d: failed: %s", place.key, place.seed, lines[-1] if lines else process.returncode)
        self._failed.append(place)
        blocked = [other for other in self._waiting if place in other.needs]
        self._failed += [other.place for other in blocked]
        self._waiting = [other for other in self._waiting if place not in other.needs]
