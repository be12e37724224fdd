"""What is asked of an export, from checkpoint or bundle to the finished folder."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from types import MappingProxyType

from xsent.bundle import MANIFEST
from xsent.errors import DataError, ParityError
from xsent.export.bundle import Export, export_bundle, held_out_pairs
from xsent.export.card import COMMAND
from xsent.export.folder import check_place
from xsent.export.form import Form, Precision, choose_form
from xsent.export.golden import check_processor
from xsent.export.interchange import Written, write_interchange
from xsent.export.openvino_format import Kind
from xsent.export.parity import Budget, Gate, read_pairs
from xsent.export.pieces import PieceCounts, count_pieces, with_pieces_of
from xsent.export.quantization import Target
from xsent.export.sentence_transformers import MODULES
from xsent.export.size import Candidate, candidates, fitting, parse_size
from xsent.export.teacher import WrittenTeacher, export_teacher
from xsent.openvino_backend import import_openvino
from xsent.train.bundles import checkpoint_from_bundle
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """An export; see the options of `xsent-export`.

    Attributes:
        source: A checkpoint, or a bundle.
        out: The bundle to make.
        precision: None is int8, or what `max_size` asks for.
        target: Processors that the weights of the layers are made for.
        num_layers: Layers to keep.
        dim: Dimensions to keep.
        languages: Languages whose pieces to keep.
        sample: Text in them.
        max_size: Largest bundle, such as 16MB.
        gate_data: Pairs to measure with.
        tolerance: Points of P@1 that the worst language may lose.
        name: Name of the model.
        force: Whether a bundle at `out` is replaced.
        tatoeba: Test files, to score both encoders for the card.
        tests: Folder of tests, to score the bundle for the card.
        openvino: Whether files for that backend are added: in float32 to a float32 bundle, else quantised.
        weights_only: Whether OpenVINO calculates in float32 with the quantised weights.
    """

    source: Path
    out: Path
    precision: Precision | None = None
    target: Target = "portable"
    num_layers: int | None = None
    dim: int | None = None
    languages: Sequence[str] | None = None
    sample: Path | None = None
    max_size: str | None = None
    gate_data: Path | None = None
    tolerance: float | None = None
    name: str | None = None
    force: bool = False
    tatoeba: Path | None = None
    tests: Path | None = None
    openvino: bool = False
    weights_only: bool = False

    def __post_init__(self) -> None:
        if self.precision == "float32" and self.target != "portable":
            raise DataError(f"--target {self.target} is for quantised weights; leave it out with --fp32")
        if self.weights_only and not (self.openvino and self.precision != "float32"):
            raise DataError("--weights-only is for --format openvino with quantised weights")
        if bool(self.languages) != bool(self.sample):
            raise DataError("--languages and --sample belong together: pieces that are in none of the sample go")
        if self.max_size is not None:
            parse_size(self.max_size)  # before all the work

    def run(self) -> Export:
        """Make the bundle; of those that are small enough, the first that is within the budget.

        Raises:
            XsentError: It cannot be made; nothing was written.
        """
        check_place(self.out, replace=self.force)
        check_processor(self.target)
        if self.openvino:
            import_openvino("export")  # before all the work
        with TemporaryDirectory() as folder:
            whole = self._checkpoint(Path(folder))
            counts = self._counts(whole)
            *others, last = self._choices(whole, counts)
            for choice in others:
                try:
                    return self._export(whole, counts, choice, Path(folder))
                except ParityError as error:
                    logger.warning("%s; tried again with less", error)
            return self._export(whole, counts, last, Path(folder))

    def _export(self, whole: Checkpoint, counts: PieceCounts | None, choice: Candidate, folder: Path) -> Export:
        if self.max_size is not None:
            logger.info("for %s: %s", self.max_size, choice)
        return export_bundle(
            self._cut(whole, counts, choice, folder),
            self.out,
            form=choice.form,
            whole=whole if counts is not None else None,
            name=self.name,
            force=self.force,
            budget=self._budget(choice.form),
            gate_data=self.gate_data,
            tatoeba_folder=self.tatoeba,
            tests=self.tests,
            openvino=self._openvino(choice.form) if self.openvino else None,
            largest=parse_size(self.max_size) if self.max_size else None,
            command=self._command("openvino" if self.openvino else ""),
        )

    def interchange(self, kind: str) -> Written:
        """Write a folder for another tool.

        Args:
            kind: See `xsent.export.interchange.write_interchange`.

        Returns:
            What was written. It was measured if there are pairs to do that with: those held out from training, or
            `gate_data`.

        Raises:
            XsentError: It cannot be made; nothing was written.
        """
        self._refuse(kind)
        if kind == "sentence-transformers" and self.precision not in (None, "float32"):
            raise DataError("--format sentence-transformers is float32; leave --int8 and --int4-table out")
        with TemporaryDirectory() as folder:
            whole = self._checkpoint(Path(folder))
            counts = self._counts(whole)
            (choice,) = self._choices(whole, counts)
            checkpoint = self._cut(whole, counts, choice, Path(folder))
            checkpoint = replace(checkpoint, about={**checkpoint.about, "name": self.name or checkpoint.name})
            gate = self._gate(whole, checkpoint, choice.form)
            return write_interchange(kind, checkpoint, choice.form, self.out, self._command(kind), gate)

    def teacher(self) -> WrittenTeacher:
        """Write a teacher of sentence-transformers in few bits, for its vectors in training.

        Raises:
            XsentError: It cannot be made; nothing was written.
        """
        given = {"--layers": self.num_layers, "--dim": self.dim, "--languages": self.languages, "--name": self.name}
        self._refuse("teacher", given | {"--tolerance": self.tolerance})
        check_processor(self.target)
        pairs = read_pairs(self.gate_data) if self.gate_data else {}
        sentences = [english for language in pairs.values() for english, _ in language]
        return export_teacher(self.source, self.out, self.precision or "int8", self.target, sentences)

    def _refuse(self, kind: str, others: Mapping[str, object] = MappingProxyType({})) -> None:
        """Refuse what a format has no use for: options for bundles alone, and others."""
        given = {
            "--tatoeba": self.tatoeba,
            "--eval": self.tests,
            "--max-size": self.max_size,
            "--force": self.force or None,
            **others,
        }
        if unused := [name for name, value in given.items() if value is not None]:
            raise DataError(f"{', '.join(unused)}: not for --format {kind}; leave it out")

    def _gate(self, whole: Checkpoint, checkpoint: Checkpoint, form: Form) -> Gate | None:
        if self.gate_data is None and not checkpoint.validation.is_file():
            logger.warning("%s: has no held-out pairs, not measured; --gate-data names some", checkpoint.given)
            return None
        trained = CheckpointEncoder(whole, num_layers=form.num_layers, dim=form.dim)
        return Gate(trained, held_out_pairs(checkpoint, self.gate_data), self._budget(form))

    def _choices(self, whole: Checkpoint, counts: PieceCounts | None) -> list[Candidate]:
        """What may be made, the best first."""
        precision = self.precision or "int8"
        form = choose_form(whole, precision=precision, target=self.target, num_layers=self.num_layers, dim=self.dim)
        if self.max_size is None:
            return [Candidate(form)]
        free = candidates(whole, form, precision=self.precision, dim=self.dim, counted=counts is not None)
        return fitting(parse_size(self.max_size), free, whole, counts)

    def _cut(self, whole: Checkpoint, counts: PieceCounts | None, choice: Candidate, folder: Path) -> Checkpoint:
        """The checkpoint without the pieces that go."""
        if counts is None:
            return whole
        return with_pieces_of(whole, counts, Path(mkdtemp(dir=folder)) / "pieces", share=choice.share)

    def _command(self, kind: str) -> str:
        """The command that asks for this, without the names of files."""
        options: dict[str, object] = {
            "format": kind,
            (self.precision or "").replace("float32", "fp32"): True if self.precision else None,
            "weights-only": self.weights_only,
            "target": self.target if self.target != "portable" else "",
            "layers": self.num_layers,
            "dim": self.dim,
            "languages": ",".join(self.languages or ()),
            "sample": "TEXT" if self.sample else "",
            "max-size": self.max_size,
            "gate-data": "PAIRS" if self.gate_data else "",
            "tolerance": self.tolerance,
        }
        # Not `in (None, False)`: no layers, 0, is something that was asked for.
        given = ((n, v) for n, v in options.items() if v is not None and v is not False and v != "")
        return " ".join([COMMAND, *(f"--{name}" if value is True else f"--{name} {value}" for name, value in given)])

    def _openvino(self, form: Form) -> Kind:
        if form.precision == "float32":
            return "fp32"
        return "int8-weights" if self.weights_only else "int8"

    def _checkpoint(self, folder: Path) -> Checkpoint:
        if (self.source / MODULES).is_file():
            raise DataError(f"{self.source}: a model of sentence-transformers; --format teacher makes a teacher of it")
        if not (self.source / MANIFEST).is_file():
            return load_checkpoint(self.source)
        return replace(load_checkpoint(checkpoint_from_bundle(self.source, folder / "checkpoint")), source=self.source)

    def _counts(self, whole: Checkpoint) -> PieceCounts | None:
        if self.languages is None or self.sample is None:
            return None
        return count_pieces(whole, self.languages, self.sample)

    def _budget(self, form: Form) -> Budget:
        budget = Budget.of(form.precision)
        return budget if self.tolerance is None else Budget(budget.cosine_mean, self.tolerance)
