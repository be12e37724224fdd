"""From what lies on the disk, a checkpoint, a bundle or a teacher, to the finished folder."""

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xsent.backends.openvino import import_openvino
from xsent.bundle import FORMAT_VERSION, MANIFEST, TOKENIZER, Bundle, compute_fingerprint, file_digest
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, ParityError
from xsent.evaluation.translation import DIRECTIONS, languages_of, tatoeba
from xsent.verification import verify
from xsent_export.calibration import calibration_of
from xsent_export.card import CARD, refuse_empty_tests, render_card, scores
from xsent_export.check import (
    ADVICE,
    EXACT,
    MORE_PIECES,
    Pairs,
    Parity,
    check_processor,
    golden,
    held_out_pairs,
    measure_depths,
    measure_parity,
    tolerances,
)
from xsent_export.formats.interchange import WRITERS, export_interchange
from xsent_export.formats.openvino import Kind, write_openvino
from xsent_export.formats.teacher import export_teacher
from xsent_export.graph import EncoderGraph
from xsent_export.options import (
    BUNDLES,
    DEFAULTS,
    BundleSpec,
    ExportOptions,
    space_of,
    spaces_of,
    trained_dims,
    trained_layers,
)
from xsent_export.prune_vocabulary import count_pieces, kept_pieces
from xsent_export.quantization import steps_off
from xsent_export.result import ExportResult, check_place, new_folder
from xsent_export.to_static import without_layers
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder
from xsent_train.from_bundle import BundleWeights, open_checkpoint
from xsent_train.teacher.bert import MODULES

logger = logging.getLogger(__name__)

MOST_STEPS = 0.51  # that rounding moves a row of weights; the scales are rounded too


def export_bundle(
    checkpoint: Checkpoint, out: Path, options: ExportOptions = DEFAULTS, whole: Checkpoint | None = None
) -> ExportResult:
    """Write a bundle and measure it; one that differs too much from the trained encoder is not kept.

    `whole` is what the checkpoint was made of, if of another, with every other of its held-out pairs.

    A BundleError where `out` is no place for it, a DataError where it cannot be measured, a ParityError where it is
    beyond the budget. Like every failure, these leave nothing behind.
    """
    if options.tests is not None:
        refuse_empty_tests(options.tests)  # before all the work
    checkpoint = options.named(checkpoint)
    counts = count_pieces(checkpoint, options.languages, options.sample)
    with new_folder(out, replace=options.force) as folder, kept_pieces(checkpoint, counts) as kept:
        maker = _Maker(kept, options.form(checkpoint), folder, options, whole)
        maker.write()
        parity = maker.measure(checkpoint)
        maker.finish(parity)
        size = sum(entry["bytes"] for entry in maker.manifest["files"].values())
        return ExportResult(out, size, parity, fingerprint=maker.manifest["fingerprint"])


class _Maker:
    def __init__(
        self, checkpoint: Checkpoint, form: BundleSpec, folder: Path, options: ExportOptions, whole: Checkpoint | None
    ) -> None:
        self._checkpoint, self._form, self._folder, self._options = checkpoint, form, folder, options
        self._pairs, self._whole = held_out_pairs(checkpoint, options.gate_data), whole
        if whole is not None:  # what it was not fitted to
            self._pairs = {language: sides[::2] for language, sides in self._pairs.items()}
        self._openvino: Kind | None = None
        if options.format == "openvino":
            quantised: Kind = "int8-weights" if options.weights_only else "int8"
            self._openvino = "fp32" if form.precision == "float32" else quantised
        self.manifest = _manifest(checkpoint, form)

    def write(self) -> None:
        """Write the graphs and their weights, and OpenVINO's."""
        checkpoint, form, folder = self._checkpoint, self._form, self._folder
        # Of every other pair: OpenVINO's files are measured on those between.
        calibration = [text for sides in self._pairs.values() for pair in sides[1::2] for text in pair]
        shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)
        graph = EncoderGraph(checkpoint.load_encoder(), form, calibration_of(checkpoint, form, calibration))
        for name, matrix in spaces_of(checkpoint, form).items():
            graph.keep(f"space.{name}", matrix.numpy().astype("float16"))
        graph.write(folder)
        self.manifest["network"] = graph.network
        self._save()
        if kind := self._openvino:
            logger.info("OpenVINO, %s", kind)
            (folder / "openvino").mkdir()
            write_openvino(checkpoint, form, folder / "openvino", kind=kind, calibration=calibration)
            self._save()

    def measure(self, checkpoint: Checkpoint) -> Parity:
        """Compare the bundle with the checkpoint, which may have more pieces; a ParityError beyond the budget."""
        self._check_weights()
        form, options, whole = self._form, self._options, self._whole or checkpoint
        logger.info("measuring %s pairs", f"{sum(map(len, self._pairs.values())):,}")
        trained = CheckpointEncoder(checkpoint, num_layers=form.num_layers, dim=form.dim)
        fewer_pieces = self._checkpoint is not checkpoint
        part = fewer_pieces or (form.num_layers, form.dim) != (whole.config.num_layers, whole.config.dim)
        budget, encoder = options.budget(form.precision), SentenceEncoder(self._folder)
        parity = measure_parity(trained, encoder, self._pairs, budget, CheckpointEncoder(whole) if part else None)
        advice = MORE_PIECES if fewer_pieces else ADVICE.get(form.precision, EXACT)
        parity.check(advice=advice)
        shallower = {depth: SentenceEncoder(self._folder, layers=depth) for depth in encoder.bundle.depths[:-1]}
        for depth, shallow in shallower.items():
            trained_so = CheckpointEncoder(checkpoint, num_layers=depth, dim=form.dim)
            measure_parity(trained_so, shallow, self._pairs, budget).check(f" with layers={depth}", advice)
        parity = replace(parity, depths=measure_depths(encoder, shallower, self._pairs))
        if options.tatoeba is not None:
            parity = replace(parity, tatoeba=_tatoeba(trained, encoder, options.tatoeba))
        self.manifest["parity"] = parity.as_json()
        if kind := self._openvino:
            between: Pairs = {language: sides[::2] for language, sides in self._pairs.items()}
            theirs = measure_parity(trained, SentenceEncoder(self._folder, backend="openvino"), between, budget)
            theirs.check(" in OpenVINO")
            self.manifest["parity"]["openvino"] = {"kind": kind, **theirs.as_json()}
        return parity

    def _check_weights(self) -> None:
        """Refuse weights that are coarser than their form says: of a small encoder, cosines say little of layers."""
        form, weights = self._form, BundleWeights(Bundle.open(self._folder))
        for name, tensor in self._checkpoint.load_encoder().first(form.num_layers).state_dict().items():
            kept, factors = weights.read(name), weights.factors(name)
            trained = tensor.numpy()[tuple(map(slice, kept.shape))]
            off = steps_off(trained / factors, kept / factors, form.limit(name))
            if not off <= MOST_STEPS:  # so that NaN fails too
                raise ParityError(
                    f"the exported encoder differs too much from the trained one: {name} by {off:.2f} steps of "
                    f"rounding (at most {MOST_STEPS}); nothing was written; {EXACT}"
                )

    def finish(self, parity: Parity) -> None:
        """Add golden vectors and the card."""
        form, tests, encoder = self._form, self._options.tests, SentenceEncoder(self._folder)
        self.manifest["golden"] = golden(encoder, form, parity.cosine_mean)
        measured = [] if tests is None else list(scores(encoder, tests, self.manifest["trained"]["prefixes"]))
        card = render_card(self._checkpoint, self.manifest, parity, measured, self._options.command)
        (self._folder / CARD).write_text(card, encoding="utf-8")
        self._save()
        verify(self._folder)

    def _save(self) -> None:
        """Write the manifest, with the checksums of the files that lie there now."""
        manifest, folder = self.manifest, self._folder
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
        manifest["files"] = {
            file.relative_to(folder).as_posix(): {"sha256": file_digest(file), "bytes": file.stat().st_size}
            for file in files
        }
        manifest["fingerprint"] = compute_fingerprint(manifest)
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in manifest.items()]
        (folder / MANIFEST).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")  # a field a line


def _manifest(checkpoint: Checkpoint, form: BundleSpec) -> dict[str, Any]:
    config, depths, spaces = checkpoint.config, form.shape(checkpoint.config).depths, spaces_of(checkpoint, form)
    return {
        "format_version": FORMAT_VERSION,
        "name": checkpoint.name,
        "languages": checkpoint.languages,
        "licence": checkpoint.licence,
        "dim": form.dim,
        "num_layers": form.num_layers,
        "vocab_size": config.vocab_size,
        "max_length": config.max_length,
        "pooling": "mean",
        "normalisation": "nmt_nfkc_cf",
        "precision": form.precision,
        "target": form.target,
        "trained": {
            "prefixes": [dim for dim in trained_dims(checkpoint) if dim <= form.dim],
            "layers": [number for number in trained_layers(checkpoint) if number <= form.num_layers],
        },
        "space": space_of(checkpoint, form),
        **({"depths": list(depths)} if depths else {}),
        **({"spaces": list(spaces)} if spaces else {}),
        "golden": {"sentences": [], "vectors": [], "tolerance": tolerances(form, 1.0)},
        "parity": {},
    }


def _tatoeba(trained: CheckpointEncoder, encoder: SentenceEncoder, folder: Path) -> dict[str, dict[str, float]]:
    languages = languages_of(encoder, folder)
    measured = {when: tatoeba(e, folder, languages).scores for when, e in (("before", trained), ("after", encoder))}
    return {
        language: {f"{way}_{when}": scores[language][way] for way in DIRECTIONS for when, scores in measured.items()}
        for language in languages
    }


def export(source: Path, out: Path, options: ExportOptions = DEFAULTS) -> ExportResult:
    """Make a folder; an XsentError where it cannot be made, before all the work where that can be known."""
    foreign = options.format in WRITERS
    check_place(out, replace=options.force if options.format in BUNDLES else None)
    if not foreign:
        check_processor(options.target)
    if options.format == "openvino":
        import_openvino("export")
    if options.format == "teacher":
        return export_teacher(source, out, options)
    if (source / MODULES).is_file():
        raise DataError(f"{source}: a model of sentence-transformers; --format teacher makes a teacher of it")
    with TemporaryDirectory() as folder:  # for what a bundle becomes as a checkpoint
        checkpoint = open_checkpoint(source, Path(folder) / "checkpoint")
        part, whole = checkpoint, None
        if options.num_layers == 0 and 0 not in trained_layers(checkpoint):
            options.form(checkpoint)  # before all the work
            fitted = [sides[1::2] for sides in held_out_pairs(checkpoint, options.gate_data).values()]
            part = without_layers(checkpoint, [text for sides in fitted for pair in sides for text in pair])
            whole = checkpoint
        return export_interchange(part, out, options) if foreign else export_bundle(part, out, options, whole)
