"""Folders that other people's tools read: plain onnxruntime, sentence-transformers, transformers.js."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from xsent.bundle import TOKENIZER
from xsent.errors import BundleError, MissingExtraError
from xsent.export.batch_graph import write_batch_graph
from xsent.export.card import CARD, COMMAND, render_foreign_card
from xsent.export.folder import check_parent
from xsent.export.form import Form
from xsent.export.graph_encoder import GraphEncoder
from xsent.export.parity import Gate, Parity
from xsent.files import atomic_folder
from xsent.retrieval import Encodes
from xsent.train.checkpoint import Checkpoint, CheckpointEncoder

INTERCHANGE = ("onnx", "sentence-transformers", "web")
ONNX_FILE = "model.onnx"


@dataclass(frozen=True)
class Written:
    """A folder for another tool.

    Attributes:
        path: The folder.
        bytes: Size of all its files.
        parity: What was measured, if anything.
    """

    path: Path
    bytes: int
    parity: Parity | None


def write_onnx(checkpoint: Checkpoint, form: Form, folder: Path) -> None:
    """One ONNX file beside the tokenizer, for plain onnxruntime and SentencePiece."""
    write_batch_graph(checkpoint.encoder, form, folder / ONNX_FILE)
    shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)


def write_interchange(
    kind: str, checkpoint: Checkpoint, form: Form, out: Path, command: str = COMMAND, gate: Gate | None = None
) -> Written:
    """Write a checkpoint for another tool.

    Args:
        kind: "onnx", "sentence-transformers" or "web".
        checkpoint: The trained encoder.
        form: What is made of it.
        out: Folder to make.
        command: What is asked for as a command, for the card.
        gate: Measures it; not measured unless given.

    Raises:
        BundleError: `out` exists.
        DataError: The tool has no such encoder.
        ParityError: It is beyond the gate's budget; nothing is left behind.
        MissingExtraError: What writes it is not installed.
    """
    if out.exists():
        raise BundleError(f"{out}: exists; name another folder")
    check_parent(out.resolve())
    writer = open_writer(kind)
    with atomic_folder(out.resolve()) as folder:
        writer(checkpoint, form, folder)
        parity = gate.measure(_reader(kind, checkpoint, form, folder)) if gate else None
        if parity:
            parity.check(f" for {kind}")
        (folder / CARD).write_text(render_foreign_card(kind, checkpoint, form, command, parity), encoding="utf-8")
    return Written(out, sum(file.stat().st_size for file in out.rglob("*") if file.is_file()), parity)


def _reader(kind: str, checkpoint: Checkpoint, form: Form, folder: Path) -> Encodes:
    """What encodes as the other tool will."""
    graph = next(folder.rglob("*.onnx"), None)
    if graph is None:  # sentence-transformers: float32 weights as they are; only pieces can be missing
        return CheckpointEncoder(checkpoint, num_layers=form.num_layers, dim=form.dim)
    return GraphEncoder(graph, checkpoint.tokenizer, replace(checkpoint.config, num_layers=form.num_layers))


def open_writer(kind: str) -> Callable[[Checkpoint, Form, Path], None]:
    """What writes a format; its packages are loaded only when it is asked for.

    Raises:
        MissingExtraError: They are not installed.
    """
    try:
        if kind == "sentence-transformers":
            from xsent.export.sentence_transformers import write_sentence_transformers

            return write_sentence_transformers
        if kind == "web":
            from xsent.export.web import write_web

            return write_web
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[export]'") from error
    return write_onnx
