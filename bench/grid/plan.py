"""What a run of the grid measures, short and long."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from xsent.bench.grid import LAYERS, LENGTHS
from xsent.bench.grid.bundles import Bundles, Kind, trained
from xsent.bench.grid.family import Family
from xsent.bench.processes import answers
from xsent.bench.results import Measurement
from xsent.bench.training.spec import Spec
from xsent.bench.training.speed import run as run_training
from xsent.bundle import MANIFEST, Bundle
from xsent.errors import MissingExtraError, XsentError
from xsent.openvino_backend import FOLDER
from xsent.threads import available_cpus

logger = logging.getLogger(__name__)

SHARE = "xsent.bench.grid.share"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        families: Encoders that take turns; the most telling first, for whoever ends a run early.
        lengths: Tokens of the sentences that are timed; those that a bundle does not take are left out.
        seconds: Seconds for each length in a turn.
        shares: Numbers of layers whose distance to the machine's peaks is measured.
        training: Numbers of layers that are trained with.
        steps: Steps of each training.
    """

    families: Sequence[Family]
    lengths: Sequence[int] = LENGTHS
    seconds: float = 0.3
    shares: Sequence[int] = (0, 2, 6)
    training: Sequence[int] = (1, 2, 4, 6)
    steps: int = 8

    def covering(self, kinds: Collection[Kind]) -> "Plan":
        """The same plan, in which every bundle of these layers and precisions runs at least in onnx on one thread."""
        families = []
        for family in self.families:
            if (family.backend, family.threads) == ("onnx", 1):
                more = (layers for layers, precision in kinds if precision == family.precision)
                family = replace(family, layers=sorted({*family.layers, *more}))
            families.append(family)
        return replace(self, families=families)


def quick_plan() -> Plan:
    """About a minute and a half on two cores; no training, whose vocabulary alone takes half as long."""
    families = [
        Family("int8", "onnx", (0, 1, 2, 4, 6), turns=2, stream=5_000),
        Family("float32", "onnx", (2,), turns=2),
        Family("int4-table", "onnx", (2,), turns=2),
        Family("int8", "numpy", (2,), turns=2),
    ]
    return Plan(families, lengths=(8, 32, 128), shares=(2,), training=())


def full_plan() -> Plan:
    """Some fifteen minutes on two cores, the training included."""
    families = [Family("int8", "onnx", LAYERS, stream=5_000, long=(0, 2))]
    if (cpus := available_cpus()) > 1:
        families.append(Family("int8", "onnx", LAYERS, threads=cpus, turns=2, stream=0))
    families += [
        Family("float32", "onnx", LAYERS, turns=2),
        Family("int4-table", "onnx", LAYERS, turns=2),
        Family("int8", "openvino", LAYERS, turns=2),
        Family("int8", "numpy", LAYERS, turns=2),
        Family("float32", "numpy", (0, 2, 6), turns=2),
    ]
    return Plan(families)


def measure(plan: Plan, work: Path, given: Sequence[Path], *, note: Say, fail: Say) -> Iterator[Measurement]:
    """Measure a plan; whatever fails is told, and the rest goes on.

    Args:
        plan: What to measure.
        work: Folder for the bundles and the corpus that are made; kept, and used again.
        given: Trained bundles; each takes the place of the made one of its layers and precision.
        note: Is told which bundles are trained.
        fail: Is told what failed, and why.

    Returns:
        Size, latency, start and memory of each family, then shares, then training.

    Raises:
        XsentError: A given bundle cannot be opened, or two are alike; before anything is measured.
    """
    bundles = Bundles(work, trained(given, note))
    work.mkdir(parents=True, exist_ok=True)
    return Grid(plan.covering(bundles.given), bundles, fail).measurements()


@dataclass
class Grid:
    """A plan under way.

    Attributes:
        plan: What is measured.
        bundles: Where the bundles come from.
        fail: Is told what failed, and why.
    """

    plan: Plan
    bundles: Bundles
    fail: Say
    _sized: set[Path] = field(default_factory=set)

    def measurements(self) -> Iterator[Measurement]:
        """All that the plan asks for."""
        for family in self.plan.families:
            yield from self.family(family)
        yield from self.shares()
        yield from self.training()

    def family(self, family: Family) -> Iterator[Measurement]:
        """The sizes of the bundles of a family as they are made, then what they cost in turns."""
        folders: dict[int, Path] = {}
        for layers in family.layers:
            try:
                logger.info("bundle: %s", family.name(layers))
                path = self.bundles.path(layers, family.precision, openvino=family.backend == "openvino")
            except MissingExtraError as error:
                self.fail(f"{family.precision}, {family.backend}: {error}")
                return
            except (XsentError, OSError) as error:
                self.fail(f"{family.name(layers)}: {error}")
                continue
            folders[layers] = path
            if path not in self._sized and family.backend != "openvino":
                self._sized.add(path)
                yield size(Bundle.open(path))
        yield from family.measure(folders, lengths=self.plan.lengths, seconds=self.plan.seconds, fail=self.fail)

    def shares(self) -> Iterator[Measurement]:
        """Where the time of a sentence goes, by layers."""
        for layers in self.plan.shares:
            logger.info("share of the peaks, %d layers", layers)
            try:
                folders = [str(self.bundles.path(layers, precision)) for precision in ("int8", "float32")]
                (figures,) = answers(SHARE, folders)
            except (XsentError, OSError) as error:
                self.fail(f"share of the peaks, {layers} layers: {error}")
                continue
            yield Measurement("share", {"layers": layers}, figures)

    def training(self) -> Iterator[Measurement]:
        """The cost of a training step on one thread of the processor, by layers."""
        folder = self.bundles.work / "training"
        folder.mkdir(exist_ok=True)
        for layers in self.plan.training:
            logger.info("training, %d layers", layers)
            spec = Spec(str(folder), num_layers=layers, steps=self.plan.steps)
            try:
                result = run_training(spec, {"CUDA_VISIBLE_DEVICES": ""})
            except (XsentError, OSError) as error:
                self.fail(f"training, {layers} layers: {error}")
                continue
            figures = {"step_seconds": result["step"], "peak_mib": result["peak"]}
            yield Measurement("training", {"layers": layers}, figures)


def size(bundle: Bundle) -> Measurement:
    """The bytes of a bundle and of each of its files; without those for OpenVINO, which a bundle need not have."""
    names = [MANIFEST, *(name for name in bundle.files if not name.startswith(f"{FOLDER}/"))]
    files = {name: (bundle.path / name).stat().st_size for name in names}
    figures = {"bytes": sum(files.values()), **{f"{name}_bytes": count for name, count in files.items()}}
    return Measurement("size", {"layers": bundle.num_layers, "precision": bundle.precision}, figures)
