"""Other systems' models by their shape, with random weights: what they say is nonsense, what they cost is not."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from xsent.bench.latency import quiet
from xsent.bench.peers.vocabulary import fill_vocabulary
from xsent.bundle import TOKENIZER
from xsent.export.huggingface_tokenizer import write_tokenizer


@dataclass(frozen=True)
class Shape:
    """The size of a BERT.

    Attributes:
        vocabulary: Rows of its table, and pieces of its tokenizer.
        width: Hidden size.
        layers: Layers.
        heads: Attention heads.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int


SHAPES = {
    "multilingual-MiniLM-L12": Shape(250_037, 384, 12, 12),
    "all-MiniLM-L6": Shape(48_000, 384, 6, 12),  # its own table has 30,522 rows; the tokenizer here is ours
}


class LastStates(nn.Module):
    """A BERT that gives its last states alone.

    Args:
        bert: The whole.
    """

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self._bert = bert

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """The states [B, T, D]."""
        states: Tensor = self._bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        return states


def write_shape(name: str, tokenizer: Path, folder: Path) -> Path:
    """Write a model in int8 as sentence-transformers, fastembed and plain onnxruntime read it.

    Args:
        name: One of `SHAPES`.
        tokenizer: Our SentencePiece model, to which pieces are added up to the shape's number: all systems then read
            as many tokens, and each loads a tokenizer of its true size.
        folder: A new folder.

    Returns:
        The folder.
    """
    shape = SHAPES[name]
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
    )
    bert = BertModel(config).eval()
    _write_graph(bert, folder / "onnx" / "model.onnx")
    fill_vocabulary(tokenizer, shape.vocabulary, folder / TOKENIZER)
    write_tokenizer(folder / TOKENIZER, folder, config.max_position_embeddings)
    config.save_pretrained(folder)
    _write_modules(folder, shape.width)
    return folder


def _write_graph(bert: BertModel, path: Path) -> None:
    ids = torch.ones(2, 8, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    dynamic = {name: {0: "batch", 1: "tokens"} for name in [*names, "last_hidden_state"]}
    whole = path.with_suffix(".fp32")
    with quiet():
        torch.onnx.export(
            LastStates(bert),
            (ids, ids, torch.zeros_like(ids)),
            str(whole),
            input_names=names,
            output_names=["last_hidden_state"],
            dynamic_axes=dynamic,
            dynamo=False,
        )
        quantize_dynamic(whole, path, weight_type=QuantType.QInt8)
    whole.unlink()


def _write_modules(folder: Path, width: int) -> None:
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    pooling = {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))
