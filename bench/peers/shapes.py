"""Other systems' models by their shape, with random weights: what they say is nonsense, what they cost is not."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xsent.bench.peers.entries import Form
from xsent.bench.peers.vocabulary import fill_vocabulary
from xsent.bundle import TOKENIZER, file_digest
from xsent.export.huggingface_tokenizer import write_tokenizer
from xsent.train.model import ModelConfig

LONGEST = 512  # tokens


@dataclass(frozen=True)
class Shape:
    """The size of a network.

    Attributes:
        vocabulary: Rows of its table, and pieces of its tokenizer.
        row: Numbers of a row.
        width: Hidden size; of each direction where there are two.
        layers: Layers.
        heads: Attention heads.
    """

    vocabulary: int
    row: int
    width: int = 0
    layers: int = 0
    heads: int = 0


SHAPES = {
    "multilingual-MiniLM-L12": Shape(250_037, 384, 384, 12, 12),
    "all-MiniLM-L6": Shape(48_000, 384, 384, 6, 12),  # its own table has 30,522 rows; the tokenizer here is ours
    "LaBSE": Shape(501_153, 768, 768, 12, 12),
    "LASER2": Shape(50_004, 320, 512, 5),
    "potion-multilingual-128M": Shape(500_353, 256),
}


def write_shape(name: str, form: Form, tokenizer: Path, work: Path) -> Path:
    """A model as other systems read it; made if it is not there, or with another tokenizer.

    Args:
        name: One of `SHAPES`.
        form: One of `WRITERS`.
        tokenizer: Our SentencePiece model, to which pieces are added up to the shape's number: all systems then read
            as many tokens, and each loads a tokenizer of its true size.
        work: Where its folder is.

    Returns:
        Its folder; nothing is left if it cannot be written.
    """
    folder, shape = work / f"{name}-{form}", SHAPES[name]
    mark, made = folder / "made-of", file_digest(tokenizer)
    if mark.is_file() and mark.read_text() == made:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    partial = work / f"{name}-{form}.part"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        fill_vocabulary(tokenizer, shape.vocabulary, partial / TOKENIZER)
        write_tokenizer(partial / TOKENIZER, partial, ModelConfig(shape.vocabulary, num_layers=0, max_length=LONGEST))
        WRITERS[form](shape, partial)
        (partial / mark.name).write_text(made)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def write_static(shape: Shape, folder: Path) -> None:
    """A table alone, as model2vec reads it."""
    from safetensors.numpy import save_file

    table = np.random.default_rng(0).standard_normal((shape.vocabulary, shape.row), np.float32)
    save_file({"embeddings": table}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"normalize": True}))


def _onnx(shape: Shape, folder: Path) -> None:
    from xsent.bench.peers.bert import write_onnx

    write_onnx(shape, folder)


def _torch(shape: Shape, folder: Path) -> None:
    from xsent.bench.peers.bert import write_torch

    write_torch(shape, folder)


def _openvino(shape: Shape, folder: Path) -> None:
    from xsent.bench.peers.bert import write_openvino

    write_openvino(shape, folder)


def _lstm(shape: Shape, folder: Path) -> None:
    from xsent.bench.peers.lstm import write_lstm

    write_lstm(shape, folder)


# Each loads what it needs itself: transformers is missed only where a BERT is written.
WRITERS: Mapping[Form, Callable[[Shape, Path], None]] = {
    "onnx": _onnx,
    "torch": _torch,
    "openvino": _openvino,
    "lstm": _lstm,
    "static": write_static,
}
