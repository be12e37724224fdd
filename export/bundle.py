"""A checkpoint becomes a bundle: written, measured, and only then put in its place."""

import json
import logging
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xsent.bundle import FORMAT_VERSION, MANIFEST, TOKENIZER, compute_fingerprint, file_digest
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation import shared_languages, tatoeba
from xsent.export.card import CARD, COMMAND, render_card
from xsent.export.folder import new_bundle_folder
from xsent.export.form import Form, space_of, trained_dims, trained_layers
from xsent.export.golden import golden, tolerances
from xsent.export.graph import EncoderGraph
from xsent.export.parity import EXACT, MORE_PIECES, Budget, Gate, Pairs, Parity, read_pairs
from xsent.export.scores import check_tests, scores
from xsent.export.smoothing import smoothing_of
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder
from xsent.verification import verify

if TYPE_CHECKING:  # openvino is optional
    from xsent.export.openvino_format import Kind

logger = logging.getLogger(__name__)


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
    tests: Path | None = None,
    openvino: "Kind | None" = None,
    largest: int | None = None,
    command: str = COMMAND,
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
        tests: Folder of tests, see `xsent.export.scores`, to score the bundle for the card.
        openvino: Adds files for that backend, of this kind; see `xsent.export.openvino_format.write_openvino`.
        largest: Bytes that the bundle may have.
        command: What is asked for as a command, for the card.

    Raises:
        BundleError: `out` exists, or is no place for a bundle.
        DataError: The bundle is too large; or the pairs to measure with cannot be read, or are in other languages.
        ParityError: The bundle is beyond the budget.
        MissingExtraError: openvino is asked for and not installed.
        OSError: It cannot be written; like every failure, this leaves nothing behind.
    """
    if tests is not None:
        check_tests(tests)  # before all the work
    with new_bundle_folder(out, replace=force) as folder:
        form = form or Form.whole(checkpoint.config)
        pairs, budget = held_out_pairs(checkpoint, gate_data), budget or Budget()
        trained = CheckpointEncoder(whole or checkpoint, num_layers=form.num_layers, dim=form.dim)
        config = checkpoint.config
        part = whole is not None or (form.num_layers, form.dim) != (config.num_layers, config.dim)
        gate = Gate(trained, pairs, budget, CheckpointEncoder(whole or checkpoint) if part else None)
        writer = BundleWriter(checkpoint, folder, name or checkpoint.name, form, pairs)

        logger.info("measuring %s pairs", f"{sum(map(len, pairs.values())):,}")
        writer.write(form)
        encoder = SentenceEncoder(folder)
        parity = gate.measure(encoder)
        parity.check(advice=EXACT if whole is None else MORE_PIECES)
        if tatoeba_folder is not None:
            parity = replace(parity, tatoeba=_tatoeba(trained, encoder, tatoeba_folder))
        writer.manifest["parity"] = parity.as_json()
        if openvino is not None:
            writer.write_openvino(form, openvino, trained, pairs, budget)
        writer.manifest["golden"] = golden(encoder, form, parity.cosine_mean)
        dims = [dim for dim in trained_dims(checkpoint) if dim <= form.dim]
        measured = [] if tests is None else list(scores(encoder, tests, dims))
        card = render_card(checkpoint, writer.manifest, parity, measured, command)
        (folder / CARD).write_text(card, encoding="utf-8")
        writer.save()
        if largest is not None and writer.bytes > largest:
            raise DataError(f"{out}: came to {writer.bytes:,} bytes, at most {largest:,} were asked for; ask for less")
        verify(folder)
    return Export(out, writer.manifest["fingerprint"], writer.bytes, parity)


class BundleWriter:
    """The files of a bundle in the making.

    Attributes:
        manifest: The content of its `xsent.json`.
    """

    def __init__(self, checkpoint: Checkpoint, folder: Path, name: str, form: Form, pairs: Pairs) -> None:
        self.manifest: dict[str, Any] = {}
        self._checkpoint, self._folder, self._name = checkpoint, folder, name
        self._encoder = checkpoint.encoder
        self._calibration = [text for sides in pairs.values() for pair in sides[1::2] for text in pair]
        self._smoothing = smoothing_of(checkpoint, form, self._calibration)
        shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)

    @property
    def bytes(self) -> int:
        """Size of all files that the manifest lists."""
        return sum(entry["bytes"] for entry in self.manifest["files"].values())

    def write(self, form: Form) -> None:
        """Write the graph and its weights, over those of an earlier form."""
        graph = EncoderGraph(self._encoder, form, self._smoothing)
        graph.write(self._folder)
        self.manifest.update(_manifest(self._checkpoint, form, self._name), network=graph.network)
        self.save()

    def write_openvino(
        self, form: Form, kind: "Kind", trained: CheckpointEncoder, pairs: Pairs, budget: Budget
    ) -> None:
        """Write OpenVINO's files: calibrated on every other pair, measured on those between.

        Raises:
            ParityError: They are beyond the budget.
            MissingExtraError: openvino is not installed.
        """
        from xsent.export.openvino_format import write_openvino  # optional

        logger.info("OpenVINO, %s", kind)
        (self._folder / "openvino").mkdir()
        write_openvino(self._checkpoint, form, self._folder / "openvino", kind=kind, calibration=self._calibration)
        self.save()
        between = {language: sides[::2] for language, sides in pairs.items()}
        parity = Gate(trained, between, budget).measure(SentenceEncoder(self._folder, backend="openvino"))
        parity.check(" in OpenVINO")
        self.manifest["parity"]["openvino"] = {"kind": kind, **parity.as_json()}

    def save(self) -> None:
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


def held_out_pairs(checkpoint: Checkpoint, gate_data: Path | None) -> Pairs:
    """The pairs to measure an export of a checkpoint with.

    Raises:
        DataError: There are none, or they are of other languages.
    """
    if gate_data is None and not checkpoint.validation.is_file():
        raise DataError(
            f"{checkpoint.given}: has no held-out pairs to measure with; name a file of pairs by --gate-data"
        )
    pairs = read_pairs(gate_data or checkpoint.validation)
    missing = [language for language in checkpoint.languages if language != "en" and language not in pairs]
    if missing:
        raise DataError(
            f"{gate_data or checkpoint.validation}: no pairs in {', '.join(missing)}, but in {', '.join(pairs)}; every "
            "language has to be measured"
        )
    kept = {language: pairs[language] for language in pairs if language in checkpoint.languages}
    if not kept:
        raise DataError(f"{gate_data or checkpoint.validation}: no pairs in {', '.join(checkpoint.languages)}")
    return kept


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
        "trained": {
            "prefixes": [dim for dim in trained_dims(checkpoint) if dim <= form.dim],
            "layers": [number for number in trained_layers(checkpoint) if number <= form.num_layers],
        },
        "space": space_of(checkpoint, form),
        "golden": {"sentences": [], "vectors": [], "tolerance": tolerances(form, 1.0)},
        "parity": {},
    }


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
