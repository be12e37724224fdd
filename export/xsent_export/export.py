"""From a checkpoint or a bundle on disk to the exported folder."""

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xsent.backends.openvino import FOLDER, import_openvino
from xsent.bundle import FORMAT_VERSION, MANIFEST, OTHER, TOKENIZER, Bundle, compute_fingerprint, file_digest
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, DataError
from xsent.files.atomic import atomic_folder, recover
from xsent.verification import verify
from xsent_export.card import CARD, refuse_empty_tests, render_card, render_foreign_card, scores
from xsent_export.formats import WRITERS, open_foreign, write_openvino
from xsent_export.graph import EncoderGraph
from xsent_export.options import (
    BUNDLES,
    DEFAULTS,
    BundleSpec,
    ExportOptions,
    pruned,
    trained_depths,
    trained_dims,
)
from xsent_export.parity import (
    ADVICE,
    EXACT,
    Agreement,
    Parity,
    calibration_texts,
    check_bundle,
    check_weights,
    golden_vectors,
    held_out_pairs,
    measure_parity,
)
from xsent_export.quantization import ActivationStats, calibrate_checkpoint
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, last_finished, open_checkpoint
from xsent_train.model import Encoder, ModelConfig
from xsent_train.teacher.bert import MODULES

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExportResult:
    """A folder that was written, and its measurements."""

    path: Path
    bytes: int  # of a bundle, without its manifest
    parity: Parity | None = None  # None without pairs to measure on, and for a teacher
    fingerprint: str = ""  # of its vector space, if the format has one
    agreement: Agreement | None = None  # of a teacher with the original


def export(source: Path, out: Path, options: ExportOptions = DEFAULTS) -> ExportResult:
    """Export a checkpoint or a bundle; raises XsentError if it cannot be done, before all the work if possible."""
    _check_before(out, options)
    if options.format == "openvino":
        import_openvino("export")
    if (source / MODULES).is_file():
        raise DataError(f"{source}: a model of sentence-transformers; --format teacher makes a teacher of it")
    if (source / "checkpoints").is_dir():
        source = last_finished(source)
        logger.info("exporting %s", source)
    with TemporaryDirectory() as folder:  # for the checkpoint that a bundle becomes
        checkpoint = open_checkpoint(source, Path(folder) / "checkpoint")
        return _export(checkpoint, out, options)


def export_checkpoint(checkpoint: Checkpoint, out: Path, options: ExportOptions = DEFAULTS) -> ExportResult:
    """Export the part of a checkpoint that was asked for.

    Raises BundleError if `out` is taken, DataError if the part cannot be made or measured, and ParityError if it lost
    more than the budget. A failure leaves nothing behind.
    """
    _check_before(out, options)
    return _export(checkpoint, out, options)


def _check_before(out: Path, options: ExportOptions) -> None:
    """Raises BundleError or DataError, before all the work, if `out` is taken or there are no tests."""
    check_place(out, replace=options.force if options.format in BUNDLES else None)
    if options.tests is not None:
        refuse_empty_tests(options.tests)


def _export(checkpoint: Checkpoint, out: Path, options: ExportOptions) -> ExportResult:
    checkpoint = options.named(checkpoint)
    spec = options.spec(checkpoint)
    with pruned(checkpoint, options.languages, options.sample) as part:
        if options.format in BUNDLES:
            return _write_bundle(checkpoint, part, spec, out, options)
        return _write_foreign(checkpoint, part, spec, out, options)


def _write_bundle(
    checkpoint: Checkpoint, part: Checkpoint, spec: BundleSpec, out: Path, options: ExportOptions
) -> ExportResult:
    """Write a bundle, check it against the checkpoint, and describe it; `part` has the pieces that it keeps."""
    with atomic_folder(out.resolve()) as folder:
        pairs = held_out_pairs(part, options.gate_data)
        calibration = calibration_texts(pairs)
        encoder = part.load_encoder(spec.num_layers)
        stats = calibrate_checkpoint(part, encoder, spec, calibration)
        network = _write_graph(part, encoder, spec, stats, folder)
        if options.format == "openvino":
            (folder / FOLDER).mkdir()
            write_openvino(part, encoder, spec, folder / FOLDER, calibration, stats)
        # Without measurements: a bundle cannot be opened without a manifest.
        manifest = _write_manifest(folder, _describe(part, encoder.config, spec, network))

        logger.info("measuring %s pairs", f"{sum(map(len, pairs.values())):,}")
        check_weights(encoder, spec, Bundle.open(folder))
        pruned = part is not checkpoint
        parity = check_bundle(folder, spec, checkpoint, pruned=pruned, pairs=pairs, options=options)

        exported = SentenceEncoder(folder)
        manifest["golden"] = golden_vectors(exported, spec, parity.cosine_mean)
        manifest["parity"] = parity.as_json()
        dims = manifest["trained"]["prefixes"]
        tests = list(scores(exported, options.tests, part.languages, dims)) if options.tests else []
        card = render_card(part, manifest, parity, tests, options.command)
        (folder / CARD).write_text(card, encoding="utf-8")
        manifest = _write_manifest(folder, manifest)
        verify(folder)
        size = sum(entry["bytes"] for entry in manifest["files"].values())
        return ExportResult(out, size, parity, fingerprint=manifest["fingerprint"])


def _write_graph(
    part: Checkpoint, encoder: Encoder, spec: BundleSpec, stats: ActivationStats, folder: Path
) -> dict[str, object]:
    """Write the tokenizer, the graphs and their weights; returns the network for the manifest."""
    shutil.copyfile(part.tokenizer, folder / TOKENIZER)
    graph = EncoderGraph(encoder, spec, stats)
    for name, matrix in spec.spaces.items():
        graph.keep(f"space.{name}", matrix.numpy().astype("float16"))
    graph.write(folder)
    return graph.network


def _describe(part: Checkpoint, config: ModelConfig, spec: BundleSpec, network: Mapping[str, object]) -> dict[str, Any]:
    """A manifest without measurements."""
    return {
        "format_version": FORMAT_VERSION,
        "name": part.name,
        "languages": part.languages,
        "licence": part.licence,
        "dim": spec.dim,
        "num_layers": spec.num_layers,
        "vocab_size": config.vocab_size,
        "max_length": config.max_length,
        "pooling": "mean",
        "normalisation": "nmt_nfkc_cf",
        "precision": spec.precision,
        "target": "portable",  # the CPUs on which 8-bit sums cannot saturate: all
        "trained": {
            "prefixes": [dim for dim in trained_dims(part) if dim <= spec.dim],
            "layers": [depth for depth in trained_depths(part) if depth <= spec.num_layers],
        },
        "space": spec.space,
        **({"depths": list(config.depths)} if config.depths else {}),
        **({"spaces": list(spec.spaces)} if spec.spaces else {}),
        "golden": {"sentences": [], "vectors": [], "tolerance": {OTHER: 1.0}},
        "parity": {},
        "network": network,
    }


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Write a manifest with the checksums of the files in the folder and the fingerprint; returns it."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    entries = {
        file.relative_to(folder).as_posix(): {"sha256": file_digest(file), "bytes": file.stat().st_size}
        for file in files
    }
    manifest = {**manifest, "files": entries}
    manifest["fingerprint"] = compute_fingerprint(manifest)
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in manifest.items()]
    (folder / MANIFEST).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")  # a field a line
    return manifest


def _write_foreign(
    checkpoint: Checkpoint, part: Checkpoint, spec: BundleSpec, out: Path, options: ExportOptions
) -> ExportResult:
    """Write a folder for another tool, and check it if there are pairs; `part` has the pieces that it keeps."""
    with atomic_folder(out.resolve()) as folder:
        WRITERS[options.format](part, spec, folder)
        parity = None
        encoder = open_foreign(part, spec, folder)
        if encoder is None:
            logger.warning("not measured; pip install llama-cpp-python, and the export is measured with it")
        elif options.gate_data or part.validation.is_file():
            pairs = held_out_pairs(part, options.gate_data)
            trained = CheckpointEncoder(checkpoint, depth=spec.num_layers, dim=spec.dim)
            parity = measure_parity(trained, encoder, pairs, spec.budget)
            parity.check(f" for {options.format}", ADVICE.get(spec.precision, EXACT))
        else:
            logger.warning("%s: has no held-out pairs, not measured; --gate-data names some", part.given)
        tests = list(scores(encoder, options.tests, part.languages)) if options.tests and encoder else []
        card = render_foreign_card(part, spec, parity, tests, options.format, options.command)
        (folder / CARD).write_text(card, encoding="utf-8")
        return ExportResult(out, folder_size(folder), parity)


def check_place(out: Path, *, replace: bool | None) -> None:
    """Raise BundleError if `out` is taken or its parent is missing; `replace` is None for formats without --force."""
    out = out.resolve()
    recover(out)
    if not out.parent.is_dir():
        raise BundleError(f"{out.parent}: no such folder; create it first")
    if not out.exists():
        return
    if not replace:
        force = "" if replace is None else ", or replace it with --force"
        raise BundleError(f"{out}: exists; name another folder{force}")
    # A slip of the hand must not delete a folder of something else.
    if not (out / MANIFEST).is_file():
        raise BundleError(f"{out}: is not a bundle and will not be replaced; name another folder")


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
