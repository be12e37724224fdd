"""Latency, memory, size and start by layers, precision, backend and threads, and where time goes."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from xsent.backends.openvino import FOLDER
from xsent.backends.threads import available_cpus
from xsent.bundle import GRAPH, MANIFEST, WEIGHTS, Bundle, graph_name
from xsent.errors import DataError, MissingExtraError, XsentError
from xsent_bench import LENGTHS
from xsent_bench.bundles import Bundles
from xsent_bench.processes import answers
from xsent_bench.results import Axis, Measurement
from xsent_bench.turn import BLOCK, Task, Turn, run_turn
from xsent_export.graph import PAGE
from xsent_export.options import Precision

logger = logging.getLogger(__name__)

LONG = 100_000  # sentences
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
STEADY = 50_000  # sentences of a stream, below which its growth is rows of the table that are read for the first time

Say = Callable[[str], None]


@dataclass(frozen=True)
class Family:
    """Encoders that differ in their layers alone."""

    precision: Precision
    backend: str
    deepest: bool = False  # for the deepest alone, and in onnx those that are given, not every depth that there is
    threads: int = 1  # sentences encoded at once
    turns: int = 3  # of each, a fresh process each
    stream: int = 1000  # sentences over which the memory is watched; 0 for not
    long: Sequence[int] = ()  # numbers of layers whose memory is watched over 100,000 instead, for its slope

    def name(self, layers: int) -> str:
        """One of them in words."""
        return f"{layers} layers, {self.precision}, {self.backend}, threads {self.threads}"

    def layers(self, bundles: Bundles) -> list[int]:
        """The numbers of layers that are measured."""
        given = {layers for layers, precision in bundles.given if (precision, "onnx") == (self.precision, self.backend)}
        return sorted({bundles.depths[-1], *given}) if self.deepest else bundles.depths

    def measure(
        self, bundles: Mapping[int, Bundle], lengths: Sequence[int], seconds: float, fail: Say
    ) -> Iterator[Measurement]:
        """Measure the bundle of each number of layers, so many seconds a length and turn; one that fails is left out.

        Latency and start come once all turns are over, or on Ctrl-C those of the turns so far; then memory.
        """
        settings: Mapping[str, str | int] = {"backend": self.backend, "threads": self.threads}
        numbers = {self.name(layers): layers for layers in bundles}
        tasks = {
            name: Task(str(bundles[n].path), "xsent", {"layers": n, **settings}, lengths, seconds)
            for name, n in numbers.items()
        }
        unseen, found, streams = ({name: list[Turn]() for name in tasks} for _ in range(3))
        first = {name: replace(task, seconds=0) for name, task in tasks.items()}
        take_turns(first, unseen, fail)  # has the system read the files
        tasks = {name: tasks[name] for name in first}
        alike: dict[str, Axis] = {"precision": self.precision, "backend": self.backend}
        axes = {name: {"layers": layers, **alike} for name, layers in numbers.items()}
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
            watched = {name: LONG if numbers[name] in self.long else self.stream for name in tasks}
            tasks = {name: replace(task, lengths=(), stream=watched[name]) for name, task in tasks.items()}
            take_turns(tasks, streams, fail)
            yield from (memory_of(axes[name], streams[name][0]) for name in tasks)


@dataclass(frozen=True)
class GridPlan:
    """What is measured."""

    families: Sequence[Family]  # the most telling first, for whoever ends a run early
    lengths: Sequence[int] = LENGTHS  # tokens of the sentences that are timed; those that a bundle takes
    seconds: float = 0.3  # for each length in a turn
    training: Sequence[int] = (1, 2, 4, 6)  # layers that are trained with


def quick_plan() -> GridPlan:
    """About two minutes on two cores; no training, whose vocabulary alone takes half a minute."""
    families = [
        Family("int8", "onnx", turns=2, stream=5_000),
        Family("float32", "onnx", deepest=True, turns=2),
        Family("int4-table", "onnx", deepest=True, turns=2),
        Family("int8", "numpy", deepest=True, turns=2),
    ]
    return GridPlan(families, lengths=(8, 32, 128), training=())


def full_plan() -> GridPlan:
    """Some fifteen minutes on two cores, the training included."""
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
    return GridPlan(families)


def measure_grid(plan: GridPlan, bundles: Bundles, fail: Say) -> Iterator[Measurement]:
    """Size, latency, start and memory of each family; what fails is told."""
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
            yield from (size(bundle) for n, bundle in opened.items() if (n, family.precision) not in sized)
            sized |= {(n, family.precision) for n in opened}
        yield from family.measure(opened, plan.lengths, plan.seconds, fail)


def size(bundle: Bundle) -> Measurement:
    """The bytes of a bundle without what is for more layers than it was opened for, and of each of its files.

    Without those for OpenVINO, which a bundle need not have.
    """
    graphs = {graph_name(depth, bundle.num_layers): depth for depth in bundle.depths}
    files = {GRAPH: 0, MANIFEST: (bundle.path / MANIFEST).stat().st_size}
    for name, entry in bundle.files.items():
        if not name.startswith(f"{FOLDER}/") and graphs.get(name, 0) <= bundle.layers:
            place = GRAPH if name in graphs else name
            files[place] = files.get(place, 0) + entry.bytes
    beyond = {f"layer{number}" for number in range(bundle.layers, bundle.num_layers)}
    beyond |= {f"readout{depth}" for depth in bundle.depths if depth > bundle.layers}
    tensors = (tensor for name, tensor in bundle.network.tensors.items() if name.partition(".")[0] in beyond)
    pages = (math.ceil(math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize / PAGE) for tensor in tensors)
    files[WEIGHTS] -= PAGE * sum(pages)
    figures = {"bytes": sum(files.values()), **{f"{name}_bytes": count for name, count in files.items()}}
    return Measurement("size", {"layers": bundle.layers, "precision": bundle.precision}, figures)


def share(bundles: Sequence[Bundle]) -> Measurement:
    """Where the time of a sentence goes, and how near it comes to the machine's peaks; see `experiments.roofline`."""
    layers = bundles[0].layers
    (figures,) = answers("xsent_bench.experiments.roofline", [str(layers), *(str(bundle.path) for bundle in bundles)])
    return Measurement("share", {"layers": layers}, figures)


def take_turns(tasks: dict[str, Task], found: Mapping[str, list[Turn]], fail: Say) -> None:
    """A turn of each, by name; one that fails is told and has no more tasks."""
    for name in list(tasks):
        logger.info("%s", name)
        try:
            found[name].append(run_turn(tasks[name]))
        except (DataError, OSError) as error:
            fail(f"{name}: {error}")
            del tasks[name]


def latencies(axes: Mapping[str, Axis], turns: Sequence[Turn]) -> Iterator[Measurement]:
    """The figures of each length: percentiles over all sentences of all turns, rates as the median turn's.

    A percentile beyond which there would be no whole sentence is left out.
    """
    for tokens in turns[0].ms:
        every = [one.ms[tokens] for one in turns]
        together = [ms for one in every for ms in one]
        shares = {name: share for name, share in PERCENTILES.items() if (100 - share) * len(together) >= 100}
        figures = {name: float(np.percentile(together, share)) for name, share in shares.items()}
        by_turn = {name: [float(np.percentile(ms, share)) for ms in every] for name, share in shares.items()}
        rates = [one.rates[tokens] for one in turns]
        figures |= {"sentences_per_second": median(rates), "tokens_per_second": tokens * median(rates)}
        by_turn |= {"sentences_per_second": rates, "tokens_per_second": [tokens * rate for rate in rates]}
        yield Measurement("latency", {**axes, "tokens": tokens}, figures, by_turn)


def memory_of(axes: Mapping[str, Axis], turn: Turn) -> Measurement:
    """The memory over a stream; if it is long enough to be steady by then, with what its second half adds by 10,000."""
    most = max(turn.memory)
    figures = {"mib_1": turn.first_mib, **{f"mib_{n}": turn.memory[n] for n in turn.memory if n in (BLOCK, most)}}
    if most >= STEADY:
        half = min(number for number in turn.memory if number >= most / 2)
        figures["slope_mib"] = (turn.memory[most] - turn.memory[half]) / (most - half) * 10_000
    return Measurement("memory", axes, {**figures, "peak_mib": turn.peak_mib})
