"""What a training step costs: against the plain system, by layers, by batch size, and how much of it is data."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from xsent.bench.markdown import markdown_table
from xsent.bench.papers import TABLE_5
from xsent.bench.processes import end, start_child
from xsent.bench.training.spec import Spec
from xsent.errors import XsentError

WORK = "xsent.bench.training.work"


@dataclass(frozen=True)
class Turn:
    """What a step cost in one turn of a system.

    Attributes:
        step: Seconds on the wall, the median.
        processor: Seconds of processor time, the median.
    """

    step: float
    processor: float


@dataclass(frozen=True)
class Race:
    """Two systems that took turns.

    Attributes:
        ours: Our turns.
        plain: Those of the plain system.
        batch_size: Pairs in a step.
    """

    ours: Sequence[Turn]
    plain: Sequence[Turn]
    batch_size: int

    @property
    def ratios(self) -> list[float]:
        """How many times faster ours is, in each turn."""
        return [plain.step / ours.step for ours, plain in zip(self.ours, self.plain, strict=True)]

    @property
    def ratio(self) -> float:
        """The median over the turns."""
        return median(self.ratios)

    def markdown(self) -> str:
        """The result as text."""
        rows = []
        for name, turns in (("ours", self.ours), ("plain", self.plain)):
            step, busy = (median(getattr(turn, kind) for turn in turns) for kind in ("step", "processor"))
            rows.append([name, f"{step:.3f}", f"{self.batch_size / step:.1f}", f"{busy:.3f}"])
        table = markdown_table(["system", "s/step, median", "pairs/s", "processor s/step"], rows)
        ratios = ", ".join(f"{ratio:.2f}" for ratio in self.ratios)
        return f"{table}\n\nOurs is **{self.ratio:.2f} times** faster (turns: {ratios}; bar: 4)."


def race(spec: Spec, environment: dict[str, str], *, turns: int) -> Race:
    """Let ours and the plain system train in turns, each in its own process; the first turn does not count."""
    specs = [replace(spec, system=name, round=spec.steps // (turns + 1)) for name in ("ours", "plain")]
    children = [child(one, environment) for one in specs]
    found: list[list[Turn]] = [[], []]
    try:
        for process in children:
            answer(process)  # ready
        for _ in range(turns):
            for number, process in enumerate(children):
                assert process.stdin is not None
                process.stdin.write(b"\n")
                process.stdin.flush()
                told = answer(process)
                found[number].append(Turn(median(told["steps"]), median(told["processor"])))
    finally:
        for process in children:
            end(process)
    return Race(found[0][1:], found[1][1:], spec.batch_size)


def run(spec: Spec, environment: dict[str, str]) -> dict[str, Any]:
    """Run one training to its end in a process of its own."""
    process = child(spec, environment)
    try:
        return answer(process)
    finally:
        end(process)


def child(spec: Spec, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """A process that runs a training."""
    return start_child(
        WORK,
        [spec.to_json()],
        threads=spec.threads,
        environment=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answer(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The next line of a child.

    Raises:
        XsentError: It ended instead; the text is its last message.
    """
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    if not line:
        messages = process.stderr.read().decode(errors="replace").splitlines()
        raise XsentError(f"a measured training failed: {messages[-1] if messages else 'it was killed'}")
    result: dict[str, Any] = json.loads(line)
    return result


def layers_table(results: dict[int, dict[str, Any]], batch_size: int) -> str:
    """Time and memory by number of layers beside mao2021's table 5, each also as a multiple of one layer's.

    On a processor, time is processor time: the wall's also counts what other processes took.
    """
    kind, first, rows = "processor" if results[1]["device"] == "cpu" else "step", results[1], []
    for layers, result in results.items():
        paper = TABLE_5[layers]
        rows.append(
            [
                str(layers),
                f"{result[kind] * 10_000 / 60:.1f}",
                f"{result[kind] / first[kind]:.2f}",
                f"{paper.minutes:.0f}",
                f"{paper.minutes / TABLE_5[1].minutes:.2f}",
                f"{result['peak']:,.0f}",
                f"{result['peak'] / first['peak']:.2f}",
                f"{paper.memory:,.0f}",
                f"{paper.memory / TABLE_5[1].memory:.2f}",
            ]
        )
    minutes = "processor min/10,000 steps" if kind == "processor" else "min/10,000 steps"
    names = [minutes, "× N = 1", "paper, V100", "× N = 1", "peak MiB", "× N = 1", "paper MB", "× N = 1"]
    return f"Batch {batch_size}.\n\n" + markdown_table(["N", *names], rows)


def throughput_table(results: dict[str, tuple[Spec, dict[str, Any]]]) -> str:
    """Pairs a second, share of the time that was spent waiting for data, and peak memory."""
    rows = []
    for name, (spec, result) in results.items():
        speed = spec.batch_size / result["step"]
        cells = [f"{speed:,.0f}", f"{100 * result['waiting']:.2f}", f"{result['peak']:,.0f}"]
        rows.append([name, f"{spec.batch_size:,}", *cells])
    return markdown_table(["training", "batch", "pairs/s", "waiting for data, %", "peak MiB"], rows)
