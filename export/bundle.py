"""A checkpoint becomes a bundle: written, measured, and only then put in its place."""

import json
import logging
import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xsent.bundle import FORMAT_VERSION, MANIFEST, TOKENIZER, compute_fingerprint, file_digest
from xsent.encoder import SentenceEncoder
from xsent.evaluation import shared_languages, tatoeba
from xsent.export.card import render_card
from xsent.export.folder import new_bundle_folder
from xsent.export.graph import EncoderGraph, Precision
from xsent.export.parity import Budget, Parity, measure_parity, read_pairs
from xsent.tokenizer import Tokenizer
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder
from xsent.verification import verify

logger = logging.getLogger(__name__)

CARD = "README.md"
# Some of everything that can go wrong elsewhere: scripts, signs, case, bytes outside the vocabulary, length.
GOLDEN = (
    "The cat sleeps.",
    "Le chat dort près de la fenêtre.",
    "Wir haben gestern 3,5 Kilometer zurückgelegt.",
    "¿Dónde está la estación de tren más cercana?",
    "PERCHÉ NO?",
    "ﬁne ½ ☃ 猫が眠る 🙂",
    "If it rains tomorrow, we shall meet in the large room on the second floor, and not in the garden.",
)
# Largest difference of a number of a golden vector, as a share of their typical size, 1 / sqrt(dim). Processors
# round activations otherwise in places; a wrong tokenizer or saturated sums move numbers by their own size.
GOLDEN_TOLERANCE: dict[Precision, float] = {"int8": 0.2, "float32": 0.001}


@dataclass(frozen=True)
class Export:
    """A bundle that was written.

    Attributes:
        path: Its folder.
        fingerprint: Identity of its vector space.
        bytes: Size of all its files.
        parity: What was measured.
    """

    path: Path
    fingerprint: str
    bytes: int
    parity: Parity


def export_bundle(
    checkpoint: Checkpoint,
    out: Path,
    *,
    precision: Precision = "int8",
    name: str | None = None,
    force: bool = False,
    budget: Budget | None = None,
    tatoeba_folder: Path | None = None,
) -> Export:
    """Write a bundle and measure it; a bundle that differs too much is not kept.

    Args:
        checkpoint: The trained encoder.
        out: The bundle's folder.
        precision: "int8" or "float32".
        name: Name of the model; the checkpoint's unless given.
        force: Replace a bundle at `out`.
        budget: What quantisation may cost.
        tatoeba_folder: Test files of `xsent.evaluation.tatoeba`, to score both encoders for the card.

    Raises:
        BundleError: `out` exists, or is no place for a bundle.
        DataError: The checkpoint's validation pairs cannot be read.
        ParityError: The bundle is beyond the budget.
        OSError: It cannot be written; like every failure, this leaves nothing behind.
    """
    with new_bundle_folder(out, replace=force) as folder:
        pairs = read_pairs(checkpoint.validation)
        EncoderGraph(checkpoint.encoder, precision).write(folder)
        shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)
        manifest = _manifest(checkpoint, precision, name or checkpoint.name)
        _save(folder, manifest)
        logger.info("measuring %s pairs", f"{sum(map(len, pairs.values())):,}")
        encoder = SentenceEncoder(folder)
        trained = CheckpointEncoder(checkpoint)
        parity = measure_parity(trained, encoder, pairs, budget or Budget())
        parity.check()
        if tatoeba_folder is not None:
            parity = replace(parity, tatoeba=_tatoeba(trained, encoder, tatoeba_folder))
        manifest["parity"] = parity.as_json()
        manifest["golden"] |= _golden(encoder)
        (folder / CARD).write_text(render_card(checkpoint, manifest, parity), encoding="utf-8")
        _save(folder, manifest)
        verify(folder)
    size = sum(entry["bytes"] for entry in manifest["files"].values())
    return Export(out, manifest["fingerprint"], size, parity)


def _manifest(checkpoint: Checkpoint, precision: Precision, name: str) -> dict[str, Any]:
    config = checkpoint.config
    tolerance = round(GOLDEN_TOLERANCE[precision] / math.sqrt(config.dim), 6)
    return {
        "format_version": FORMAT_VERSION,
        "name": name,
        "languages": checkpoint.languages,
        "licence": checkpoint.licence,
        "dim": config.dim,
        "num_layers": config.num_layers,
        "vocab_size": config.vocab_size,
        "max_length": config.max_length,
        "pooling": "mean",
        "normalisation": "nmt_nfkc_cf",
        "precision": precision,
        "golden": {"sentences": [], "vectors": [], "tolerance": tolerance},
        "parity": {},
    }


def _save(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, with the checksums of the files that lie there now."""
    files = sorted(file for file in folder.iterdir() if file.name != MANIFEST)
    manifest["files"] = {file.name: {"sha256": file_digest(file), "bytes": file.stat().st_size} for file in files}
    manifest["fingerprint"] = compute_fingerprint(manifest)
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in manifest.items()]
    (folder / MANIFEST).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")  # a field a line


def _tatoeba(trained: CheckpointEncoder, encoder: SentenceEncoder, folder: Path) -> dict[str, dict[str, float]]:
    languages = shared_languages(encoder, folder)
    before, after = (tatoeba(either, folder, languages) for either in (trained, encoder))
    return {
        old.language: {
            "xx_en_before": old.xx_en.p_at_1,
            "xx_en_after": new.xx_en.p_at_1,
            "en_xx_before": old.en_xx.p_at_1,
            "en_xx_after": new.en_xx.p_at_1,
        }
        for old, new in zip(before.languages, after.languages, strict=True)
    }


def _golden(encoder: SentenceEncoder) -> dict[str, object]:
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    sentences = [text for text in GOLDEN if len(tokenizer.encode(text)) <= encoder.max_length]
    vectors = [[round(float(number), 6) for number in vector] for vector in encoder.encode(sentences)]
    return {"sentences": sentences, "vectors": vectors}
