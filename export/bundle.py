"""A checkpoint becomes a bundle: written, measured, and only then put in its place."""

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xsent.bundle import FORMAT_VERSION, MANIFEST, TOKENIZER, compute_fingerprint, file_digest
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation import shared_languages, tatoeba
from xsent.export.card import render_card
from xsent.export.fallback import within_budget
from xsent.export.folder import new_bundle_folder
from xsent.export.form import Form
from xsent.export.golden import golden, tolerances
from xsent.export.graph import EncoderGraph
from xsent.export.parity import Budget, Gate, Pairs, Parity, read_pairs
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder
from xsent.verification import verify

logger = logging.getLogger(__name__)

# Given checkpoint, form, folder and held-out sentences.
Extra = Callable[[Checkpoint, Form, Path, Sequence[str]], None]

CARD = "README.md"


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
    form: Form | None = None,
    whole: Checkpoint | None = None,
    name: str | None = None,
    force: bool = False,
    budget: Budget | None = None,
    gate_data: Path | None = None,
    tatoeba_folder: Path | None = None,
    extra: Extra | None = None,
) -> Export:
    """Write a bundle and measure it; a bundle that differs too much is not kept.

    Args:
        checkpoint: The trained encoder.
        out: The bundle's folder.
        form: What is made of it; all of it in int8 unless given.
        whole: The checkpoint before pieces were taken from it, to compare with; itself unless given.
        name: Name of the model; the checkpoint's unless given.
        force: Replace a bundle at `out`.
        budget: What quantisation may cost.
        gate_data: Pairs to measure with, in the layout of a corpus; the checkpoint's held-out pairs unless given.
        tatoeba_folder: Test files of `xsent.evaluation.tatoeba`, to score both encoders for the card.
        extra: Writes further files into the folder, say for another backend.

    Raises:
        BundleError: `out` exists, or is no place for a bundle.
        DataError: The pairs to measure with cannot be read, or there are none in the checkpoint's languages.
        ParityError: The bundle is beyond the budget.
        OSError: It cannot be written; like every failure, this leaves nothing behind.
    """
    with new_bundle_folder(out, replace=force) as folder:
        form = form or Form.whole(checkpoint.config)
        pairs = held_out_pairs(checkpoint, gate_data)
        trained = CheckpointEncoder(whole or checkpoint, num_layers=form.num_layers, dim=form.dim)
        config = checkpoint.config
        part = whole is not None or (form.num_layers, form.dim) != (config.num_layers, config.dim)
        gate = Gate(trained, pairs, budget or Budget(), CheckpointEncoder(whole or checkpoint) if part else None)
        shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)
        manifest: dict[str, Any] = {}

        def measure(form: Form, limit: int | None) -> Parity:
            EncoderGraph(checkpoint.encoder, form).write(folder)
            manifest.update(_manifest(checkpoint, form, name or checkpoint.name))
            _save(folder, manifest)
            return gate.measure(SentenceEncoder(folder), limit)

        if extra is not None:
            extra(checkpoint, form, folder, [text for sides in pairs.values() for pair in sides for text in pair])
        logger.info("measuring %s pairs", f"{sum(map(len, pairs.values())):,}")
        form, parity = within_budget(form, measure)
        encoder = SentenceEncoder(folder)
        if tatoeba_folder is not None:
            parity = replace(parity, tatoeba=_tatoeba(trained, encoder, tatoeba_folder))
        manifest["parity"] = parity.as_json()
        manifest["golden"] |= golden(encoder)
        (folder / CARD).write_text(render_card(checkpoint, manifest, parity), encoding="utf-8")
        _save(folder, manifest)
        verify(folder)
    size = sum(entry["bytes"] for entry in manifest["files"].values())
    return Export(out, manifest["fingerprint"], size, parity)


def held_out_pairs(checkpoint: Checkpoint, gate_data: Path | None) -> Pairs:
    """The pairs to measure an export of a checkpoint with.

    Raises:
        DataError: There are none, or they are of other languages.
    """
    if gate_data is None and not checkpoint.validation.is_file():
        raise DataError(
            f"{checkpoint.path}: has no held-out pairs to measure with; name a file of pairs by --gate-data"
        )
    pairs = read_pairs(gate_data or checkpoint.validation)
    missing = [language for language in checkpoint.languages if language != "en" and language not in pairs]
    if missing:
        raise DataError(
            f"{gate_data or checkpoint.validation}: no pairs in {', '.join(missing)}, but in {', '.join(pairs)}; every "
            "language has to be measured"
        )
    return {language: pairs[language] for language in pairs if language in checkpoint.languages}


def _manifest(checkpoint: Checkpoint, form: Form, name: str) -> dict[str, Any]:
    config = checkpoint.config
    return {
        "format_version": FORMAT_VERSION,
        "name": name,
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
        **({"floats": sorted(form.floats)} if form.floats else {}),
        "golden": {"sentences": [], "vectors": [], "tolerance": tolerances(form)},
        "parity": {},
    }


def _save(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, with the checksums of the files that lie there now."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    manifest["files"] = {
        file.relative_to(folder).as_posix(): {"sha256": file_digest(file), "bytes": file.stat().st_size}
        for file in files
    }
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
