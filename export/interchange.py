"""Folders that other people's tools read: plain onnxruntime, sentence-transformers, transformers.js."""

import shutil
from collections.abc import Callable
from pathlib import Path

from xsent.bundle import TOKENIZER
from xsent.errors import BundleError, MissingExtraError
from xsent.export.batch_graph import write_batch_graph
from xsent.export.card import CARD, COMMAND, render_foreign_card
from xsent.export.folder import check_parent
from xsent.export.form import Form
from xsent.files import atomic_folder
from xsent.train.checkpoint import Checkpoint

INTERCHANGE = ("onnx", "sentence-transformers", "web")
ONNX_FILE = "model.onnx"


def write_onnx(checkpoint: Checkpoint, form: Form, folder: Path) -> None:
    """One ONNX file beside the tokenizer, for plain onnxruntime and SentencePiece."""
    write_batch_graph(checkpoint.encoder, form, folder / ONNX_FILE)
    shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)


def write_interchange(kind: str, checkpoint: Checkpoint, form: Form, out: Path, command: str = COMMAND) -> int:
    """Write a checkpoint for another tool.

    Args:
        kind: "onnx", "sentence-transformers" or "web".
        checkpoint: The trained encoder.
        form: What is made of it.
        out: Folder to make.
        command: What is asked for as a command, for the card.

    Returns:
        Bytes written.

    Raises:
        BundleError: `out` exists.
        DataError: The tool has no such encoder.
        MissingExtraError: What writes it is not installed.
    """
    if out.exists():
        raise BundleError(f"{out}: exists; name another folder")
    check_parent(out.resolve())
    writer = open_writer(kind)
    with atomic_folder(out.resolve()) as folder:
        writer(checkpoint, form, folder)
        (folder / CARD).write_text(render_foreign_card(kind, checkpoint, form, command), encoding="utf-8")
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file())


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
