"""Other systems' models by their shape, with random weights: what they say is nonsense, what they cost is not."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import count, islice
from pathlib import Path

import numpy as np

from xsent.bench.peers.systems import Form
from xsent.bundle import TOKENIZER, file_digest
from xsent.export.huggingface_tokenizer import write_tokenizer
from xsent.train.data.vocabulary import ModelProto, SentencePiece
from xsent.train.model import ModelConfig

LONGEST = 512  # tokens
# Korean syllables: none of our texts has one, so that no piece made of them is ever used.
FIRST, SYLLABLES = ord("가"), 11_172


@dataclass(frozen=True)
class Shape:
    """The size of a network."""

    vocabulary: int  # rows of its table, and pieces of its tokenizer
    row: int  # numbers of a row
    width: int = 0  # hidden size; of each direction where there are two
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
    """A model as other systems read it, in a folder of `work`; made if it is not there, or with another tokenizer.

    To our SentencePiece model pieces are added up to the shape's number: all systems then read as many tokens, and each
    loads a tokenizer of its true size. Nothing is left if it cannot be written.
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


def fill_vocabulary(model: Path, size: int, path: Path) -> None:
    """Write a SentencePiece model with pieces added up to a size: it loads and weighs as one of that size does."""
    proto = ModelProto.FromString(model.read_bytes())
    least = min(piece.score for piece in proto.pieces)
    have = {piece.piece for piece in proto.pieces}
    for text in islice((text for text in map(_piece, count()) if text not in have), max(0, size - len(have))):
        proto.pieces.append(SentencePiece(piece=text, score=least))
    path.write_bytes(proto.SerializeToString(deterministic=True))


def write_static(shape: Shape, folder: Path) -> None:
    """A table alone, as model2vec reads it."""
    from safetensors.numpy import save_file

    table = np.random.default_rng(0).standard_normal((shape.vocabulary, shape.row), np.float32)
    save_file({"embeddings": table}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"normalize": True}))


def _late(name: str) -> Callable[[Shape, Path], None]:
    """What loads what it needs only when it writes: a missing package is missed only there."""
    return lambda shape, folder: getattr(import_module("xsent.bench.peers.networks"), name)(shape, folder)


def _piece(number: int) -> str:
    """Three syllables, as long in bytes as the pieces of a large multilingual vocabulary; no two numbers share one."""
    return "".join(chr(FIRST + part % SYLLABLES) for part in (number, 7919 * number, number // SYLLABLES))


WRITERS: Mapping[Form, Callable[[Shape, Path], None]] = {
    "onnx": _late("write_onnx"),
    "torch": _late("write_torch"),
    "openvino": _late("write_openvino"),
    "lstm": _late("write_lstm"),
    "static": write_static,
}
