"""The encoder as one self-contained ONNX file for other people's tools: a padded batch in, vectors out.

`input_ids`, `attention_mask` int64 [B, T] -> `sentence_embedding` float32 [B, D], not normalised. With layers or a
readout, each sentence stands between the first and the last token, which the ids name. Standard operators alone. In
int8 the weights are stored in 8 bits and the arithmetic stays float32, so that neither padding nor company moves a
vector; our own bundles, which run each sentence alone, calculate in 8 bits too.

Shapes: B sentences, T tokens of the longest, D dimensions, H heads.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece as spm
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from xsent.backends.threads import available_cpus
from xsent.errors import DataError
from xsent.files.atomic import atomic_file
from xsent.similarity import unit_rows
from xsent_export.graph import INPUT, OUTPUT, EncoderGraph, ExternalFile
from xsent_export.options import BundleSpec
from xsent_export.quantization import quantize_columns
from xsent_train.model import Encoder, ModelConfig

MASK = "attention_mask"
LARGEST = 2**31 - 1  # bytes of a protobuf message
RUN_TOGETHER = 64  # sentences


class BatchGraph(EncoderGraph):
    """An encoder as a graph of padded batches, its weights inside."""

    def serialized(self, name: Path, place: str) -> bytes:
        """The bytes of the whole; a DataError where they are too many for their place."""
        model = self.model()
        if (size := model.ByteSize()) > LARGEST:
            raise DataError(f"{name}: {size / 1e9:.1f} GB do not fit into {place}")
        return bytes(model.SerializeToString(deterministic=True))

    def model(self) -> ModelProto:
        """The graph with its weights."""
        shape = ["batch", "tokens"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in (INPUT, MASK)]
        output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", self._form.dim])
        return self._make_model(inputs, output)

    def _branch(self, encoder: Encoder, depth: int, x: str) -> None:
        pass  # one graph, of all its layers

    def _frame(self, config: ModelConfig) -> str:
        return INPUT  # the tokenizer has put the first and the last token there

    def _is_real(self, ids: str) -> str:
        """Which positions hold a token [B, T]."""
        return self._node("Cast", [MASK], "is_real", to=TensorProto.BOOL)

    def _prepare(self, ids: str) -> None:
        self._length = self._node("Shape", [ids], "length", start=1, end=2)  # [1]
        real = self._is_real(ids)
        # Chosen, not calculated: OpenVINO takes (mask - 1) * 1e9 for scaled 8-bit numbers and loses the attention.
        one, zero, below = (self._constant(n, np.array(v, np.float32)) for n, v in (("1", 1), ("0", 0), ("-1e9", -1e9)))
        mask = self._node("Where", [real, one, zero], "mask")  # [B, T]
        self._real = self._node("Unsqueeze", [mask, self._integers("last_axis", [-1])], "real")  # [B, T, 1]
        count = self._node("ReduceSum", [mask, self._integers("one", [1])], "count", keepdims=1)  # [B, 1]
        # A sentence of nothing is the zero vector.
        self._count = self._node("Max", [count, one], "real_count")
        if self._form.num_layers:
            hidden = self._node("Where", [real, zero, below], "hidden")
            self._below = self._node("Unsqueeze", [hidden, self._integers("heads_and_queries", [1, 2])], "score_mask")

    def _mean(self, x: str, name: str) -> str:
        total = self._node("Mul", [x, self._real], f"{name}.real")
        total = self._node("ReduceSum", [total, self._integers("one", [1])], f"{name}.total", keepdims=0)
        return self._node("Div", [total, self._count], name)

    def _attend(self, name: str, heads: int, qkv: str) -> str:
        size = self._width // heads
        hidden = self._node("Reshape", [qkv, self._integers("split_heads", [0, 0, 3, heads, size])], f"{name}.split")
        # [3, B, H, T, D/H]
        hidden = self._node("Transpose", [hidden], f"{name}.turned", perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self._node("Gather", [hidden, self._constant(part, np.array(i, np.int64))], f"{name}.{part}", axis=0)
            for i, part in enumerate(("query", "key", "value"))
        )
        key = self._node("Transpose", [key], f"{name}.key.turned", perm=[0, 1, 3, 2])
        products = self._node("MatMul", [query, key], f"{name}.products")
        scores = self._node("Add", [products, self._below], f"{name}.scores")
        shares = self._node("Softmax", [scores], f"{name}.shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{name}.mixed")
        mixed = self._node("Transpose", [mixed], f"{name}.joined", perm=[0, 2, 1, 3])
        return self._node("Reshape", [mixed, self._integers("join_heads", [0, 0, self._width])], name)

    def _activate(self, x: str, name: str) -> str:
        if self._config.activation == "silu":
            return self._node("Mul", [x, self._node("Sigmoid", [x], f"{name}.gate")], name)
        # x * (1 + erf(x / sqrt(2))) / 2, in the words that readers of ONNX know as one operator.
        root, one, half = (self._constant(f"gelu.{v:.1f}", np.array(v, np.float32)) for v in (2**0.5, 1, 0.5))
        gate = self._node("Erf", [self._node("Div", [x, root], f"{name}.scaled")], f"{name}.erf")
        gate = self._node("Mul", [x, self._node("Add", [gate, one], f"{name}.gate")], f"{name}.double")
        return self._node("Mul", [gate, half], name)

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        if not self._is_quantized():
            return super()._product(name, x, weight, bias)
        numbers, scales = quantize_columns(weight, "vnni")  # all 8 bits: the sums are floats
        # Not DequantizeLinear: ONNX Runtime joins that with the product and calculates in 8 bits after all.
        matrix = self._node("Cast", [self._weight(f"{name}.weight", numbers)], f"{name}.numbers", to=TensorProto.FLOAT)
        matrix = self._node("Mul", [matrix, self._weight(f"{name}.scales", scales)], f"{name}.matrix")
        product = self._node("MatMul", [x, matrix], f"{name}.product")
        return self._node("Add", [product, self._weight(f"{name}.bias", bias)], name)

    def _weight(self, name: str, values: NDArray[np.generic], file: ExternalFile | None = None) -> str:
        return self._constant(name, np.ascontiguousarray(values))


def write_batch_graph(encoder: Encoder, form: BundleSpec, path: Path) -> None:
    """Write an encoder as one ONNX file; a DataError where it does not fit into one."""
    model = BatchGraph(encoder, form).serialized(path, "one ONNX file of at most 2.1; export to int8")
    with atomic_file(path) as file:
        file.write(model)


class GraphEncoder:
    """Runs such a file as plain onnxruntime does for other tools; `config` is that of the encoder in it."""

    def __init__(self, graph: Path, tokenizer: Path, config: ModelConfig) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = available_cpus()
        options.log_severity_level = 3  # errors only
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._processor = spm.SentencePieceProcessor(model_file=str(tokenizer))
        self._config = config

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, D]."""
        pieces = [ids[: self._config.max_length] for ids in self._processor.encode(list(sentences))]
        if self._config.num_layers or self._config.depths:
            pieces = [[self._config.first, *ids, self._config.last] for ids in pieces]
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))  # little padding; it changes no vector
        batches = (order[start : start + RUN_TOGETHER] for start in range(0, len(order), RUN_TOGETHER))
        parts = [self._run([pieces[i] for i in batch]) for batch in batches]
        return unit_rows(np.concatenate(parts)[np.argsort(order)])

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        lengths = np.array([len(ids) for ids in batch])
        mask = np.arange(max(1, lengths.max())) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = [i for sentence in batch for i in sentence]
        (vectors,) = self._session.run([OUTPUT], {INPUT: ids, MASK: mask.astype(np.int64)})
        return np.asarray(vectors, np.float32)
