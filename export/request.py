"""What is asked of an export, from checkpoint or bundle to the finished folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from xsent.bundle import MANIFEST
from xsent.errors import DataError
from xsent.export.bundle import Export, export_bundle
from xsent.export.card import COMMAND
from xsent.export.folder import check_place
from xsent.export.form import Form, Precision, choose_form
from xsent.export.golden import check_processor
from xsent.export.interchange import write_interchange
from xsent.export.openvino_format import Kind
from xsent.export.parity import Budget
from xsent.export.pieces import PieceCounts, count_pieces, with_pieces_of
from xsent.export.quantization import Target
from xsent.export.size import Candidate, candidates, largest_within, parse_size
from xsent.openvino_backend import import_openvino
from xsent.train.bundles import checkpoint_from_bundle
from xsent.train.checkpoint import Checkpoint, load_checkpoint


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
    openvino: bool = False
    weights_only: bool = False

    def __post_init__(self) -> None:
        if self.precision == "float32" and self.target != "portable":
            raise DataError(f"--target {self.target} is for quantised weights; leave it out with --fp32")
        if self.weights_only and not (self.openvino and self.precision != "float32"):
            raise DataError("--weights-only is for --format openvino with quantised weights")
        if bool(self.languages) != bool(self.sample):
            raise DataError("--languages and --sample belong together: pieces that are in none of the sample go")

    def run(self) -> Export:
        """Make the bundle.

        Raises:
            XsentError: It cannot be made; nothing was written.
        """
        check_place(self.out, replace=self.force)
        check_processor(self.target)
        if self.openvino:
            import_openvino("export")  # before all the work
        with TemporaryDirectory() as folder:
            whole, checkpoint, form = self._chosen(Path(folder))
            return export_bundle(
                checkpoint,
                self.out,
                form=form,
                whole=whole if checkpoint is not whole else None,
                name=self.name,
                force=self.force,
                budget=self._budget(form),
                gate_data=self.gate_data,
                tatoeba_folder=self.tatoeba,
                openvino=self._openvino(form) if self.openvino else None,
                largest=parse_size(self.max_size) if self.max_size else None,
                command=self._command("openvino" if self.openvino else ""),
            )

    def interchange(self, kind: str) -> tuple[Path, int]:
        """Write a folder for another tool.

        Args:
            kind: See `xsent.export.interchange.write_interchange`.

        Returns:
            The folder, and its bytes.

        Raises:
            XsentError: It cannot be made; nothing was written.
        """
        given: dict[str, object] = {
            "--tolerance": self.tolerance,
            "--gate-data": self.gate_data,
            "--tatoeba": self.tatoeba,
        }
        given |= {"--max-size": self.max_size, "--force": self.force or None}
        if unused := [name for name, value in given.items() if value is not None]:
            raise DataError(f"{', '.join(unused)}: for bundles alone; --format {kind} is neither measured nor replaced")
        if kind == "sentence-transformers" and self.precision not in (None, "float32"):
            raise DataError("--format sentence-transformers is float32; leave --int8 and --int4-table out")
        with TemporaryDirectory() as folder:
            _, checkpoint, form = self._chosen(Path(folder))
            checkpoint = replace(checkpoint, about={**checkpoint.about, "name": self.name or checkpoint.name})
            return self.out, write_interchange(kind, checkpoint, form, self.out, self._command(kind))

    def _chosen(self, folder: Path) -> tuple[Checkpoint, Checkpoint, Form]:
        """The checkpoint, what is left of it without the pieces that go, and the form."""
        whole = self._checkpoint(folder)
        precision = self.precision or "int8"
        form = choose_form(whole, precision=precision, target=self.target, num_layers=self.num_layers, dim=self.dim)
        counts = self._counts(whole)
        chosen = Candidate(form, 1.0)
        if self.max_size is not None:
            limit = parse_size(self.max_size)
            free = candidates(whole, form, precision=self.precision, dim=self.dim, counted=counts is not None)
            chosen = largest_within(limit, free, whole, counts)
        if counts is None:
            return whole, whole, chosen.form
        return whole, with_pieces_of(whole, counts, folder / "pieces", share=chosen.share), chosen.form

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
        if not (self.source / MANIFEST).is_file():
            return load_checkpoint(self.source)
        return load_checkpoint(checkpoint_from_bundle(self.source, folder / "checkpoint"))

    def _counts(self, whole: Checkpoint) -> PieceCounts | None:
        if self.languages is None or self.sample is None:
            return None
        return count_pieces(whole, self.languages, self.sample)

    def _budget(self, form: Form) -> Budget:
        budget = Budget.of(form.precision)
        return budget if self.tolerance is None else Budget(budget.cosine_mean, self.tolerance)
