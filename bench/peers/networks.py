"""Networks of any size with random weights: a BERT, and an LSTM pooled by the largest, the shape of LASER2."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from xsent.bench.peers.shapes import LONGEST, Shape
from xsent.bench.processes import silent
from xsent.openvino_backend import import_openvino, without_telemetry

if TYPE_CHECKING:
    from transformers import BertConfig

FEW = 16  # rows of a table that is put in later
SAMPLES, TOKENS = 16, 24  # that OpenVINO's scales are found with; they have no bearing on its speed
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class LastStates(nn.Module):
    """A BERT that gives its last states alone."""

    def __init__(self, shape: Shape, vocabulary: int) -> None:
        super().__init__()
        from transformers import BertModel  # not above: an LSTM does not need it

        torch.manual_seed(0)
        self.bert = BertModel(_config(shape, vocabulary)).eval()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """The states [B, T, D]."""
        states: Tensor = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        return states


class LstmVectors(nn.Module):
    """An LSTM in both directions; what is masked moves nothing."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(shape.vocabulary, shape.row)
        self.layers = nn.LSTM(shape.row, shape.width, shape.layers, batch_first=True, bidirectional=True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors [B, 2 × width]: the largest of the states."""
        rnn, lengths = nn.utils.rnn, attention_mask.sum(1)
        rows = rnn.pack_padded_sequence(self.table(input_ids), lengths, batch_first=True, enforce_sorted=False)
        states, _ = rnn.pad_packed_sequence(self.layers(rows)[0], batch_first=True)
        hidden = attention_mask[:, : states.shape[1], None] == 0
        return states.masked_fill(hidden, float("-inf")).amax(dim=1)


def write_onnx(shape: Shape, folder: Path) -> None:
    """A BERT as `onnx/model.onnx` in int8 by ONNX Runtime's own tools.

    The table is put in when all else is done, in int8 at once: in float32 that of LaBSE would take 1.5 GB.
    """
    graph = _write_int8(LastStates(shape, FEW), INPUTS, folder)
    model = onnx.load(graph)
    (table,) = (tensor for tensor in model.graph.initializer if list(tensor.dims) == [FEW, shape.row])
    kind = numpy_helper.to_array(table).dtype
    rows = np.frombuffer(np.random.default_rng(0).bytes(shape.vocabulary * shape.row), kind)
    table.CopyFrom(numpy_helper.from_array(rows.reshape(shape.vocabulary, shape.row), table.name))
    onnx.save(model, graph)
    _write_about(shape, folder)


def write_lstm(shape: Shape, folder: Path) -> None:
    """`onnx/model.onnx` in int8 by ONNX Runtime's own tools."""
    _write_int8(LstmVectors(shape).eval(), INPUTS[:2], folder)


def write_torch(shape: Shape, folder: Path) -> None:
    """A BERT as `model.safetensors` in float32."""
    LastStates(shape, shape.vocabulary).bert.save_pretrained(folder)
    _write_about(shape, folder)


def write_openvino(shape: Shape, folder: Path) -> None:
    """A BERT as `openvino/openvino_model.xml` in int8, weights and activations, by OpenVINO's own tools."""
    openvino = import_openvino("peers")
    with without_telemetry():
        import nncf
    rng = np.random.default_rng(0)
    ids = [rng.integers(0, shape.vocabulary, (1, TOKENS)) for _ in range(SAMPLES)]
    samples = [dict(zip(INPUTS, (sample, np.ones_like(sample), np.zeros_like(sample)), strict=True)) for sample in ids]
    whole = folder / "whole.onnx"
    with silent():
        _export(LastStates(shape, shape.vocabulary), INPUTS, whole)
        model = nncf.quantize(
            openvino.Core().read_model(whole),
            nncf.Dataset(samples),
            subset_size=len(samples),
            model_type=nncf.ModelType.TRANSFORMER,
        )
    (folder / "openvino").mkdir()
    openvino.save_model(model, folder / "openvino" / "openvino_model.xml", compress_to_fp16=False)
    whole.unlink()
    _write_about(shape, folder)


def _write_int8(network: nn.Module, inputs: Sequence[str], folder: Path) -> Path:
    graph = folder / "onnx" / "model.onnx"
    graph.parent.mkdir()
    whole = graph.with_suffix(".fp32")
    with silent():
        _export(network, inputs, whole)
        quantize_dynamic(whole, graph, weight_type=QuantType.QInt8)
    whole.unlink()
    return graph


def _export(network: nn.Module, inputs: Sequence[str], path: Path) -> None:
    ids = torch.ones(2, 8, dtype=torch.long)
    torch.onnx.export(
        network,
        (ids, ids, torch.zeros_like(ids))[: len(inputs)],
        str(path),
        input_names=list(inputs),
        output_names=["output"],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in inputs} | {"output": {0: "batch"}},
        dynamo=False,
    )


def _config(shape: Shape, vocabulary: int) -> "BertConfig":
    from transformers import BertConfig

    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=LONGEST,
    )


def _write_about(shape: Shape, folder: Path) -> None:
    """What sentence-transformers reads beside the weights."""
    _config(shape, shape.vocabulary).save_pretrained(folder)
    kind = "sentence_transformers.models"
    files = {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": f"{kind}.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{kind}.Pooling"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": shape.width, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 256},
    }
    (folder / "1_Pooling").mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
