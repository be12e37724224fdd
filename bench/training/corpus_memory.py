"""Memory of preparation and training by size of the corpus: it should not depend on it."""

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xsent.bench.machine import processor
from xsent.bench.markdown import markdown_table
from xsent.bench.processes import AnonymousPeak, end, end_with_parent, peak_memory, start_child
from xsent.bench.training.spec import Spec
from xsent.bench.training.speed import answer
from xsent.bench.training.work import measure, say
from xsent.failures import one_line_errors
from xsent.files import atomic_file
from xsent.train.data.preparation import prepare

logger = logging.getLogger(__name__)

MODULE = "xsent.bench.training.corpus_memory"
REPORT = "corpus-memory.md"
TASKS = ("write", "prepare", "train")
BAR = 1.10  # the largest corpus against the smallest


def run_corpus_memory(spec: Spec, sizes: Sequence[int], *, keep: bool, command: str) -> Path:
    """Write, prepare and train on made-up corpora of several sizes, each task in its own process.

    Args:
        spec: Sizes and steps; its folder gets a folder a corpus, and the report.
        sizes: Pairs of the corpora.
        keep: Leave the corpora on the disk.
        command: The command line, for the report.

    Returns:
        The report.

    Raises:
        XsentError: A task failed.
    """
    results: dict[int, dict[str, dict[str, Any]]] = {}
    for pairs in sizes:
        folder = Path(spec.folder) / f"corpus-{pairs}"
        folder.mkdir(parents=True, exist_ok=True)
        results[pairs] = {}
        for task in TASKS:
            logger.info("%d pairs: %s", pairs, task)
            results[pairs][task] = in_child(task, replace(spec, folder=str(folder), pairs=pairs))
        if not keep:
            shutil.rmtree(folder)
    path = Path(spec.folder) / REPORT
    with atomic_file(path) as file:
        file.write(report(spec, results, command).encode())
    return path


def in_child(task: str, spec: Spec) -> dict[str, Any]:
    """Run a task in a process of its own."""
    arguments = [task, spec.to_json()]
    pipe = subprocess.PIPE
    process = start_child(MODULE, arguments, threads=spec.threads, stdout=pipe, stderr=pipe)
    try:
        return answer(process)
    finally:
        end(process)


def report(spec: Spec, results: dict[int, dict[str, dict[str, Any]]], command: str) -> str:
    """The table, and whether the bar is met."""
    rows = [
        [f"{pairs:,}", task, f"{done[task]['anonymous']:,.0f}", f"{done[task]['peak']:,.0f}"]
        for pairs, done in results.items()
        for task in TASKS[1:]
    ]
    lines = []
    small, large = min(results), max(results)
    for task in TASKS[1:]:
        ratio = results[large][task]["anonymous"] / results[small][task]["anonymous"]
        lines.append(f"- {task}: {large:,} pairs take {ratio:.3f} times what {small:,} take (bar: {BAR:.2f})")
    return "\n\n".join(
        [
            "# Memory by size of the corpus",
            f"`{command}` on {processor()}, {spec.threads} thread{'s' * (spec.threads > 1)}. Training: "
            f"{spec.steps} steps of {spec.batch_size:,} pairs.",
            "Not backed by files: the peak of what the process alone holds (RssAnon, looked at every 50 ms). All: "
            "VmHWM, with the pages of the store that the system keeps in memory while there is room.",
            markdown_table(["pairs", "task", "not backed by files, MiB", "all, MiB"], rows),
            "\n".join(lines) + "\n",
        ]
    )


def prepared(spec: Spec) -> dict[str, float | str]:
    """Prepare a corpus and say what it took."""
    with AnonymousPeak() as anonymous:
        prepare(spec.recipe, [spec.corpus], spec.prepared, threads=spec.threads)
    return {"anonymous": anonymous.mib, "peak": peak_memory()}


def main() -> None:
    """Run the task that the command line names: write, prepare or train."""
    end_with_parent()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    task, text = sys.argv[1:]
    spec = Spec(**json.loads(text))
    with one_line_errors():
        if task == "write":
            say({"path": str(spec.corpus)})
        else:
            say(prepared(spec) if task == "prepare" else measure(spec))


if __name__ == "__main__":
    main()
