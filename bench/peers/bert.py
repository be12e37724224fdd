"""A BERT of any size with random weights, for sentence-transformers, fastembed and plain onnxruntime."""

import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from xsent.bench.latency import quiet
from xsent.bench.peers.shapes import LONGEST, Shape
from xsent.openvino_backend import import_openvino, without_telemetry

_FEW = 16  # rows of a table that is put in later
_SAMPLES, _TOKENS = 16, 24  # that OpenVINO's scales are found with; they have no bearing on its speed
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "last_hidden_state"


class LastStates(nn.Module):
    """A BERT that gives its last states alone."""

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self._bert = bert

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """The states [B, T, D]."""
        states: Tensor = self._bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        return states


def write_onnx(shape: Shape, folder: Path) -> None:
    """`onnx/model.onnx` in int8 by ONNX Runtime's own tools.

    The table is put in when all else is done, in int8 at once: in float32 that of LaBSE would take 1.5 GB.
    """
    graph = folder / "onnx" / "model.onnx"
    graph.parent.mkdir()
    whole = graph.with_suffix(".fp32")
    with _silent():
        _export(_random_bert(shape, _FEW), whole)
        quantize_dynamic(whole, graph, weight_type=QuantType.QInt8)
    whole.unlink()
    model = onnx.load(graph)
    (table,) = (tensor for tensor in model.graph.initializer if list(tensor.dims) == [_FEW, shape.row])
    kind = numpy_helper.to_array(table).dtype
    rows = np.frombuffer(np.random.default_rng(0).bytes(shape.vocabulary * shape.row), kind)
    table.CopyFrom(numpy_helper.from_array(rows.reshape(shape.vocabulary, shape.row), table.name))
    onnx.save(model, graph)
    _write_about(shape, folder)


def write_torch(shape: Shape, folder: Path) -> None:
    """`model.safetensors` in float32."""
    _random_bert(shape, shape.vocabulary).save_pretrained(folder)
    _write_about(shape, folder)


def write_openvino(shape: Shape, folder: Path) -> None:
    """`openvino/openvino_model.xml` in int8, weights and activations, by OpenVINO's own tools."""
    openvino = import_openvino("peers")
    with without_telemetry():
        import nncf
    rng = np.random.default_rng(0)
    ids = [rng.integers(0, shape.vocabulary, (1, _TOKENS)) for _ in range(_SAMPLES)]
    samples = [dict(zip(INPUTS, (sample, np.ones_like(sample), np.zeros_like(sample)), strict=True)) for sample in ids]
    whole = folder / "whole.onnx"
    with _silent():
        _export(_random_bert(shape, shape.vocabulary), whole)
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


def _config(shape: Shape, vocabulary: int) -> BertConfig:
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=LONGEST,
    )


def _random_bert(shape: Shape, vocabulary: int) -> BertModel:
    torch.manual_seed(0)
    return BertModel(_config(shape, vocabulary)).eval()


def _export(bert: BertModel, path: Path) -> None:
    ids = torch.ones(2, 8, dtype=torch.long)
    torch.onnx.export(
        LastStates(bert),
        (ids, ids, torch.zeros_like(ids)),
        str(path),
        input_names=list(INPUTS),
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in (*INPUTS, OUTPUT)},
        dynamo=False,
    )


def _write_about(shape: Shape, folder: Path) -> None:
    """What sentence-transformers reads beside the weights."""
    _config(shape, shape.vocabulary).save_pretrained(folder)
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    pooling = {"word_embedding_dimension": shape.width, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))


@contextmanager
def _silent() -> Iterator[None]:
    """Keep advice, warnings and progress bars of other tools off the screen."""
    with quiet(), warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
