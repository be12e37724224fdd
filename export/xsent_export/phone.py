"""A graph that reads text, so that a phone needs no tokenizer: `text` string [1] -> `vector` float32 [1, D].

The tokenizer is the SentencePiece operator of the package onnxruntime-extensions, which has builds for Android and iOS.
The folder also has the graph in ONNX Runtime's own form, `.ort`, and the list of operators that a reduced build needs.
"""

import contextlib
import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper

from xsent.clean import FORMAT
from xsent.errors import require_extra
from xsent.similarity import Floats
from xsent_export.batch_graph import OneFileGraph
from xsent_export.graph import INPUT, OUTPUT
from xsent_export.options import BundleSpec
from xsent_export.quantization import LayerStats, calibrate_checkpoint
from xsent_train.checkpoint import Checkpoint
from xsent_train.model import Encoder

GRAPH, OPERATORS = "text.onnx", "text.required_operators.config"
TEXT, VECTOR = "text", "vector"
EXTENSIONS = "ai.onnx.contrib"  # the domain of onnxruntime-extensions


def write_text(checkpoint: Checkpoint, spec: BundleSpec, folder: Path, sentences: Sequence[str]) -> "TextEncoder":
    """Write `text.onnx`, `text.ort` and `text.required_operators.config` into an empty folder.

    In 8 bits, the activations are calibrated on the sentences.
    """
    with require_extra("phone"):
        from onnxruntime.tools.convert_onnx_models_to_ort import OptimizationStyle, convert_onnx_models_to_ort
        from onnxruntime_extensions import get_library_path
    logging.getLogger("ort_format_model.utils").setLevel(logging.WARNING)
    encoder = checkpoint.load_encoder(spec.num_layers)
    stats = calibrate_checkpoint(checkpoint, encoder, spec, sentences)
    graph = TextGraph(encoder, spec, checkpoint.tokenizer, stats)
    graph.write_file(folder / GRAPH)
    with contextlib.redirect_stdout(io.StringIO()):  # standard output is for results
        convert_onnx_models_to_ort(
            folder / GRAPH,
            optimization_styles=[OptimizationStyle.Fixed],
            custom_op_library_path=Path(get_library_path()),
            target_platform="arm",
        )
    operators = folder / OPERATORS
    lines = operators.read_text().splitlines(keepends=True)
    # Without comments, which name files of this machine.
    operators.write_text("".join(line for line in lines if not line.startswith("#")))
    return TextEncoder(folder / GRAPH)


class TextGraph(OneFileGraph):
    """The graph of a bundle with its weights inside, between a tokenizer and a normalisation."""

    def __init__(self, encoder: Encoder, spec: BundleSpec, tokenizer: Path, stats: LayerStats) -> None:
        self._tokenizer = tokenizer
        super().__init__(encoder, spec, stats)

    def model(self) -> ModelProto:
        """The graph with its weights."""
        text = helper.make_tensor_value_info(TEXT, TensorProto.STRING, [1])
        vector = helper.make_tensor_value_info(VECTOR, TensorProto.FLOAT, [1, self._spec.dim])
        return self._make_model([text], vector)

    def _encoder(self, encoder: Encoder) -> None:
        ids = self._tokens(encoder.config.max_length)
        super()._encoder(encoder)
        length = self._node("ReduceL2", [OUTPUT], "length_of_vector", axes=[-1], keepdims=1)
        least = self._constant("least_length", np.array(1e-12, np.float32))
        unit = self._node("Div", [OUTPUT, self._node("Max", [length, least], "divisor")], "unit")
        count = self._node("Cast", [self._node("Size", [ids], "tokens")], "tokens_float", to=TensorProto.FLOAT)
        there = self._node("Min", [count, self._constant("one_text", np.array(1, np.float32))], "there")
        self._node("Mul", [unit, there], VECTOR)  # zero for an empty text

    def _tokens(self, limit: int) -> str:
        """Add the first `limit` ids of the text as the input of the encoder's graph [1, T]; returns their name [T]."""
        pattern, nothing = (self._constant(n, np.array([v])) for n, v in (("format", FORMAT), ("nothing", "")))
        read = self._node("StringRegexReplace", [TEXT, pattern, nothing], "read", EXTENSIONS, global_replace=1)
        settings: list[tuple[str, Any]] = [("samples", np.int64(0)), ("alpha", np.float32(0))]
        settings += [(name, np.bool_(False)) for name in ("add_first", "add_last", "reversed")]
        inputs = [read, *(self._constant(name, np.array([value])) for name, value in settings)]
        outputs = ["ids_32", "texts_of_ids"]
        model = self._tokenizer.read_bytes()
        self._nodes.append(
            helper.make_node("SentencepieceTokenizer", inputs, outputs, domain=EXTENSIONS, name="ids", model=model)
        )
        ids = self._node("Cast", [outputs[0]], "ids_64", to=TensorProto.INT64)
        kept = self._node("Slice", [ids, self._integers("zero", [0]), self._integers("most", [limit])], "kept")
        self._node("Unsqueeze", [kept, self._integers("zero", [0])], INPUT)
        return kept


class TextEncoder:
    """Runs a text graph with onnxruntime and onnxruntime-extensions, as a phone does."""

    def __init__(self, graph: Path) -> None:
        with require_extra("phone"):
            from onnxruntime_extensions import get_library_path
        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(get_library_path())
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Unit vectors of sentences [n, D]."""
        vectors: Floats = np.concatenate([self._session.run([VECTOR], {TEXT: np.array([s])})[0] for s in sentences])
        return vectors
