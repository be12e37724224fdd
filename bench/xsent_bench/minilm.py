"""multilingual-MiniLM-L12 with random weights: realistic cost, meaningless vectors; and any MiniLM in int8."""

import io
import shutil
import warnings
from contextlib import redirect_stderr, redirect_stdout
from itertools import count, islice
from pathlib import Path
from typing import Any

from xsent.bundle import TOKENIZER, file_digest
from xsent.files.atomic import atomic_folder
from xsent_bench.systems import MINILM
from xsent_export.graph import STATES
from xsent_export.tokenizer import write_tokenizer
from xsent_train.data.vocabulary import ModelProto, SentencePiece
from xsent_train.model import ModelConfig

SHAPE = (250_037, 384, 12)  # pieces (rows of the table), dimensions and layers
LONGEST = 512  # tokens
# Korean syllables: none of the texts has one, so the pieces made of them are never used.
FIRST_SYLLABLE = ord("가")
SYLLABLES = 11_172
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_minilm(tokenizer: Path, work: Path) -> Path:
    """The folder of the model in `work`; it is written if it is missing or has another tokenizer.

    The SentencePiece model `tokenizer` is padded to the true number of pieces: all systems then read the same tokens,
    and each loads a tokenizer of its true size.
    """
    folder = work / MINILM
    mark = folder / "made-of"
    digest = file_digest(tokenizer)
    if mark.is_file() and mark.read_text() == digest:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    pieces = SHAPE[0]
    with atomic_folder(folder) as partial:
        pad_vocabulary(tokenizer, pieces, partial / TOKENIZER)
        write_tokenizer(partial / TOKENIZER, partial, ModelConfig(pieces, num_layers=0, max_length=LONGEST))
        write_bert(*SHAPE, partial)
        (partial / mark.name).write_text(digest)
    return folder


def pad_vocabulary(model: Path, size: int, path: Path) -> None:
    """Write a SentencePiece model padded with pieces to a size, so that it loads as slowly as one of that size.

    Three syllables have as many bytes as the pieces of a large multilingual vocabulary.
    """
    proto = ModelProto.FromString(model.read_bytes())
    least = min(piece.score for piece in proto.pieces)
    have = {piece.piece for piece in proto.pieces}
    triples = ((number, 7919 * number, number // SYLLABLES) for number in count())  # all different
    texts = ("".join(chr(FIRST_SYLLABLE + place % SYLLABLES) for place in triple) for triple in triples)
    for text in islice((text for text in texts if text not in have), max(0, size - len(have))):
        proto.pieces.append(SentencePiece(piece=text, score=least))
    path.write_bytes(proto.SerializeToString(deterministic=True))


def write_bert(pieces: int, width: int, layers: int, folder: Path) -> None:
    """A BERT in float32 for transformers, and as `onnx/model.onnx` in int8 by ONNX Runtime's own tools."""
    import torch  # here, so that a missing package is reported only for this model
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    torch.manual_seed(0)
    config = BertConfig(vocab_size=pieces, num_attention_heads=12, max_position_embeddings=LONGEST, **shape)
    bert = BertModel(config, add_pooling_layer=False).eval()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        bert.save_pretrained(folder)
    _write_int8(bert, folder)


def write_int8(model: Path, work: Path) -> Path:
    """The folder in `work` of a model of sentence-transformers, a BERT, in int8; it is written if it is missing."""
    folder = work / f"{model.parent.name}-int8"
    if folder.is_dir():
        return folder
    from transformers import BertModel

    with atomic_folder(folder) as partial:
        shutil.copytree(model, partial, ignore=shutil.ignore_patterns("*.safetensors", "*.md"), dirs_exist_ok=True)
        _write_int8(BertModel.from_pretrained(model, add_pooling_layer=False).eval(), partial)
    return folder


def _write_int8(bert: Any, folder: Path) -> None:  # noqa: ANN401  a BertModel, whose package may be missing
    """Write `onnx/model.onnx` in a folder by ONNX Runtime's own tools."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    ids = torch.ones(2, 8, dtype=torch.long)

    class LastStates(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.bert(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state
            return states

    (folder / "onnx").mkdir(exist_ok=True)
    whole = folder / "onnx" / "whole.onnx"
    messages = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(messages), redirect_stderr(messages):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            LastStates().eval(),
            (ids, ids, torch.zeros_like(ids)),
            str(whole),
            input_names=[*INPUTS],
            output_names=[STATES],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in (*INPUTS, STATES)},
            dynamo=False,
        )
        quantize_dynamic(whole, folder / "onnx" / "model.onnx", weight_type=QuantType.QInt8)
    whole.unlink()
