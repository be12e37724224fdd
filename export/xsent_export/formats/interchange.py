"""Folders that other people's tools read: plain onnxruntime, sentence-transformers, transformers.js."""

import logging
import shutil
from pathlib import Path

from xsent.bundle import TOKENIZER
from xsent.files.atomic import to_json
from xsent.open_model import SupportsEncode
from xsent_export.card import CARD, render_foreign_card
from xsent_export.check import ADVICE, EXACT, Parity, held_out_pairs, measure_parity
from xsent_export.formats.batch_graph import GraphEncoder, write_batch_graph
from xsent_export.formats.sentence_transformers import bert_config, write_sentence_transformers
from xsent_export.formats.tokenizer import write_tokenizer
from xsent_export.options import BundleSpec, ExportOptions
from xsent_export.prune_vocabulary import count_pieces, kept_pieces
from xsent_export.result import ExportResult, folder_size, new_folder
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder
from xsent_train.teacher.bert import CONFIG

logger = logging.getLogger(__name__)

WEB_GRAPH = "onnx/model.onnx"


def export_interchange(checkpoint: Checkpoint, out: Path, options: ExportOptions) -> ExportResult:
    """Write a checkpoint for another tool, measured if there are pairs; a DataError or ParityError leaves nothing."""
    checkpoint = options.named(checkpoint)
    form, counts = options.form(checkpoint), count_pieces(checkpoint, options.languages, options.sample)
    with new_folder(out) as folder, kept_pieces(checkpoint, counts) as kept:
        WRITERS[options.format](kept, form, folder)
        parity = _measure(checkpoint, kept, form, folder, options)
        card = render_foreign_card(kept, form, parity, options.format, options.command)
        (folder / CARD).write_text(card, encoding="utf-8")
        return ExportResult(out, folder_size(folder), parity)


def _measure(
    whole: Checkpoint, kept: Checkpoint, form: BundleSpec, folder: Path, options: ExportOptions
) -> Parity | None:
    if options.gate_data is None and not kept.validation.is_file():
        logger.warning("%s: has no held-out pairs, not measured; --gate-data names some", kept.given)
        return None
    pairs = held_out_pairs(kept, options.gate_data)
    trained = CheckpointEncoder(whole, num_layers=form.num_layers, dim=form.dim)
    parity = measure_parity(trained, _reader(kept, form, folder), pairs, options.budget(form.precision))
    parity.check(f" for {options.format}", ADVICE.get(form.precision, EXACT))
    return parity


def _reader(checkpoint: Checkpoint, form: BundleSpec, folder: Path) -> SupportsEncode:
    """What encodes as the other tool will."""
    graph = next(folder.rglob("*.onnx"), None)
    if graph is None:  # sentence-transformers: float32 weights as they are; only pieces can be missing
        return CheckpointEncoder(checkpoint, num_layers=form.num_layers, dim=form.dim)
    return GraphEncoder(graph, checkpoint.tokenizer, form.shape(checkpoint.config))


def write_plain_onnx(checkpoint: Checkpoint, form: BundleSpec, folder: Path) -> None:
    """One ONNX file beside the tokenizer, for plain onnxruntime and SentencePiece."""
    write_batch_graph(checkpoint.load_encoder(), form, folder / "model.onnx")
    shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)


def write_web(checkpoint: Checkpoint, form: BundleSpec, folder: Path) -> None:
    """Write a model that transformers.js opens; it gives `sentence_embedding` [B, D], not normalised."""
    (folder / WEB_GRAPH).parent.mkdir()
    write_batch_graph(checkpoint.load_encoder(), form, folder / WEB_GRAPH)
    # Its map of characters would be read as NFKC, with exceptions that are not ours.
    kept = form.shape(checkpoint.config)
    write_tokenizer(checkpoint.tokenizer, folder, kept, charsmap=False)
    config = {
        **bert_config(kept),
        "hidden_size": form.dim,
        "transformers.js_config": {"dtype": "fp32"},  # of the file's name: there is no other, whatever is inside
    }
    (folder / CONFIG).write_bytes(to_json(config))


WRITERS = {"onnx": write_plain_onnx, "sentence-transformers": write_sentence_transformers, "web": write_web}
