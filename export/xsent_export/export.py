"""Export a checkpoint or a bundle on disk to a folder."""

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from xsent.backends.openvino import FOLDER, import_openvino
from xsent.bundle import FORMAT_VERSION, MANIFEST, OTHER, TOKENIZER, write_manifest
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, DataError
from xsent.files.atomic import atomic_folder, recover
from xsent.open_model import SupportsEncode
from xsent.verification import verify
from xsent_export.card import refuse_empty_tests, render_card, render_foreign_card
from xsent_export.gguf import TYPES, write_gguf
from xsent_export.graph import EncoderGraph
from xsent_export.hub import write_onnx, write_sentence_transformers, write_web
from xsent_export.openvino import write_openvino
from xsent_export.options import BUNDLES, DEFAULTS, BundleSpec, ExportOptions, Format, pruned
from xsent_export.parity import (
    ADVICE,
    LARGER_SAMPLE,
    Parity,
    calibration_texts,
    check_bundle,
    golden_vectors,
    held_out_pairs,
    measure_parity,
)
from xsent_export.phone import write_text
from xsent_export.quantization import calibrate_checkpoint
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, last_finished
from xsent_train.derive import CARD, model_path, open_checkpoint
from xsent_train.model import Encoder
from xsent_train.teacher.bert import MODULES

logger = logging.getLogger(__name__)

# Each writes a folder and returns the encoder in it as the other tool runs it, or None if that is not installed.
Writer = Callable[[Checkpoint, BundleSpec, Path], SupportsEncode | None]
WRITERS: Mapping[str, Writer] = {  # of folders for other tools; that of text also needs sentences
    "onnx": write_onnx,
    "sentence-transformers": write_sentence_transformers,
    "web": write_web,
    "gguf": write_gguf,
}


@dataclass(frozen=True)
class Agreement:
    """The cosines between the vectors of an exported teacher and of the original over some sentences."""

    sentences: int
    cosine_mean: float
    cosine_min: float


@dataclass(frozen=True)
class ExportResult:
    """A folder that was written, and its measurements."""

    path: Path
    bytes: int  # of a bundle, without its manifest
    precision: str  # of its weights
    layers: int
    dim: int
    parity: Parity | None = None  # None without pairs to measure on, and for a teacher
    fingerprint: str = ""  # of its vector space, if the format has one
    agreement: Agreement | None = None  # of a teacher with the original


def export(source: Path | Checkpoint, out: Path, options: ExportOptions = DEFAULTS) -> ExportResult:
    """Export a checkpoint, the last one of a run, or a bundle; or the requested part of it.

    Raises BundleError if `out` exists, DataError if the part cannot be built or measured, and ParityError if it loses
    more than the budget. A failure leaves nothing behind.
    """
    check_place(out, replace=options.force if options.format in BUNDLES else None)
    if options.tests is not None:
        refuse_empty_tests(options.tests)
    if options.format == "openvino":
        import_openvino("openvino-export")
    checkpoint = _read(source) if isinstance(source, Path) else source
    checkpoint = replace(checkpoint, about={**checkpoint.about, "name": options.name or checkpoint.name})
    spec = options.spec(checkpoint)
    write = _write_bundle if options.format in BUNDLES else _write_foreign
    with pruned(checkpoint, options.languages, options.sample) as part:
        return write(checkpoint, part, spec, out, options)


def _read(source: Path) -> Checkpoint:
    source = model_path(source)
    if (source / MODULES).is_file():
        raise DataError(f"{source}: is a sentence-transformers model; export it as a teacher with --format teacher")
    if (source / "checkpoints").is_dir():
        source = last_finished(source)
        logger.info("exporting %s", source)
    return open_checkpoint(source)


def _write_bundle(
    checkpoint: Checkpoint, part: Checkpoint, spec: BundleSpec, out: Path, options: ExportOptions
) -> ExportResult:
    """Write a bundle with its card, and check it against the checkpoint; `part` has the pieces that it keeps."""
    with atomic_folder(out.resolve()) as folder:
        pairs = held_out_pairs(part, options.gate_data)
        calibration = calibration_texts(pairs)
        encoder = part.load_encoder(spec.num_layers)
        stats = calibrate_checkpoint(part, encoder, spec, calibration)
        shutil.copyfile(part.tokenizer, folder / TOKENIZER)
        graph = EncoderGraph(encoder, spec, stats)
        graph.write(folder)
        if options.format == "openvino":
            (folder / FOLDER).mkdir()
            write_openvino(part, encoder, spec, folder / FOLDER, calibration, stats)
        # Without measurements for now, because a bundle cannot be opened without a manifest.
        manifest = write_manifest(folder, _describe(part, encoder, spec, graph.network))

        logger.info("measuring %s pairs", f"{sum(map(len, pairs.values())):,}")
        exported, removed = SentenceEncoder(folder), part is not checkpoint
        parity = check_bundle(exported, spec, checkpoint, pruned=removed, pairs=pairs, options=options)
        manifest["golden"] = golden_vectors(exported, spec, parity.cosine_mean)
        manifest["parity"] = parity.as_json()
        (folder / CARD).write_text(render_card(part, manifest, parity, exported, options), encoding="utf-8")
        manifest = write_manifest(folder, manifest)
        verify(folder)
        size = sum(entry["bytes"] for entry in manifest["files"].values())
        return ExportResult(out, size, *_contents(spec), parity, fingerprint=manifest["fingerprint"])


def _describe(part: Checkpoint, encoder: Encoder, spec: BundleSpec, network: Mapping[str, object]) -> dict[str, Any]:
    """A manifest without measurements."""
    config = encoder.config
    weighs = any(map(encoder.weighs, config.depths))
    return {
        "format_version": FORMAT_VERSION,
        "name": part.name,
        "languages": part.languages,
        "licence": part.licence,
        "dim": spec.dim,
        "num_layers": spec.num_layers,
        "vocab_size": config.vocab_size,
        "max_length": config.max_length,
        "pooling": "attention" if weighs else "mean",
        "normalisation": "nmt_nfkc_cf",
        "precision": spec.precision,
        "target": "portable",  # all CPUs, because 8-bit sums cannot saturate on any
        "trained": spec.trained,
        "space": spec.space,
        **({"depths": list(config.depths)} if config.depths else {}),
        **({"spaces": list(spec.spaces)} if spec.spaces else {}),
        "golden": {"sentences": [], "vectors": [], "tolerance": {OTHER: 1.0}},
        "parity": {},
        "network": network,
    }


def _write_foreign(
    checkpoint: Checkpoint, part: Checkpoint, spec: BundleSpec, out: Path, options: ExportOptions
) -> ExportResult:
    """Write a folder for another tool, and check it if there are pairs; `part` has the pieces that it keeps."""
    with atomic_folder(out.resolve()) as folder:
        parity = None
        has_pairs = options.gate_data or part.validation.is_file()
        pairs = held_out_pairs(part, options.gate_data) if has_pairs else {}
        writers: Mapping[str, Writer] = {**WRITERS, "text": partial(write_text, sentences=calibration_texts(pairs))}
        encoder = writers[options.format](part, spec, folder)
        if encoder is None:
            logger.warning("not measured; to measure the export, pip install llama-cpp-python")
        elif pairs:
            trained = CheckpointEncoder(checkpoint, depth=spec.num_layers, dim=spec.dim)
            parity = measure_parity(trained, encoder, pairs, spec.budget)
            precision = "float32" if options.format == "sentence-transformers" else spec.precision
            parity.check(f" for {options.format}", ADVICE[precision] if part is checkpoint else LARGER_SAMPLE)
        else:
            logger.warning("%s: not measured, because it has no held-out pairs; name some with --gate-data", part.path)
        card = render_foreign_card(part, spec, parity, encoder, options)
        (folder / CARD).write_text(card, encoding="utf-8")
        return ExportResult(out, folder_size(folder), *_contents(spec, options.format), parity)


def _contents(spec: BundleSpec, format: Format = "bundle") -> tuple[str, int, int]:
    """The precision, layers and numbers of what was written; only some formats have it in their own precision."""
    own = {"sentence-transformers": "float32", "gguf": TYPES[spec.precision][0]}
    return own.get(format, spec.precision), spec.num_layers, spec.dim


def check_place(out: Path, *, replace: bool | None) -> None:
    """Raise BundleError if `out` exists or its parent is missing; `replace` is None for formats without --force."""
    out = out.resolve()
    recover(out)
    if not out.parent.is_dir():
        raise BundleError(f"{out.parent}: no such folder; create it first")
    if not out.exists():
        return
    if not replace:
        force = "" if replace is None else ", or replace it with --force"
        raise BundleError(f"{out}: exists; name another folder{force}")
    # A typo must not delete an unrelated folder.
    if not (out / MANIFEST).is_file():
        raise BundleError(f"{out}: is not a bundle and will not be replaced; name another folder")


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
