"""The encoder as ONNX graphs: token ids in, the sentence vector out.

`EncoderGraph` is the graph of a bundle: sentences of equal length, `input_ids` int64 [B, T] -> `sentence_embedding`
float32 [B, D], with weights in separate files, computed in 8 bits. A vector has the same bits whatever the other
sentences are, because nothing is measured over more than one token at run time, and no operator sums in an order that
depends on B. `xsent_export.batch_graph` has the graphs of other tools.

Shapes: B sentences, T tokens of the longest, D dimensions, H heads, V pieces.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from torch import Tensor, nn

from xsent.bundle import TABLE, WEIGHTS, Rounding, graph_name, matrix_file
from xsent_export.options import BundleSpec
from xsent_export.quantization import (
    MIDDLE,
    NOTHING,
    LayerStats,
    block_size,
    quantize_columns,
    quantize_nibbles,
    quantize_rows,
)
from xsent_train.model import Encoder, Layer, ModelConfig

OPSET, IR_VERSION = 17, 8  # the oldest with LayerNormalization, which every supported onnxruntime reads
CONTRIB = "com.microsoft"
PAGE = 4096

INPUT, MASK, OUTPUT, STATES = "input_ids", "attention_mask", "sentence_embedding", "last_hidden_state"
READOUT, WEIGHED, SCORED = "read_out", "weighed", "scores"  # a readout's products: matrix, mean, query


class ExternalFile:
    """A file of tensors that an ONNX graph refers to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._arrays: list[tuple[int, NDArray[np.generic]]] = []
        self._end = 0
        self.places: dict[str, dict[str, object]] = {}  # see `xsent.bundle.TensorEntry`

    def add(self, name: str, array: NDArray[np.generic]) -> TensorProto:
        """Place an array, without copying it, on the next free page; returns the graph's reference to it."""
        offset = -(-self._end // PAGE) * PAGE
        shape = list(array.shape)
        self._arrays.append((offset, array))
        self._end = offset + array.nbytes
        self.places[name] = {"file": self._name, "offset": offset, "dtype": array.dtype.name, "shape": shape}
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = TensorProto(name=name, dims=shape, data_type=kind, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._name), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    def write(self, folder: Path) -> None:
        """Write the file, little-endian with zeros in the gaps, into the graph's folder."""
        with (folder / self._name).open("wb") as file:
            for offset, array in self._arrays:
                file.write(b"\0" * (offset - file.tell()))
                file.write(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).data)


class EncoderGraph:
    """A graph for each depth of an encoder, and two files of weights. It has exactly the layers of `spec`.

    Raises ValueError if a matrix that is rounded to 4 or 8 bits is not finite; the parity gate finds the others.
    """

    SENTENCES: int | str = "sentences"  # that it takes at once, a number or a name

    def __init__(self, encoder: Encoder, spec: BundleSpec, calibration: LayerStats = NOTHING) -> None:
        self._nodes: list[NodeProto] = []  # in the order they run
        self._initializers: dict[str, TensorProto] = {}  # constants that the nodes read
        config = encoder.config
        self._config = config
        self._spec = spec
        self._calibration = calibration
        # The width of the tokens. With layers or a readout, vectors may be narrower.
        self._width = config.dim if config.num_layers or config.depths else spec.dim
        self._table = ExternalFile(TABLE)
        self._weights = ExternalFile(WEIGHTS)
        self._matrices = {name: ExternalFile(matrix_file(name)) for name in spec.added}  # spaces in files of their own
        self._rounding: dict[str, Rounding] = {}  # of the inputs of linear layers
        self._shallower: dict[int, ModelProto] = {}
        self._weighs = encoder.weighs(config.num_layers)
        self._encoder(encoder)

    @property
    def network(self) -> dict[str, object]:
        """The network for backends that do not read the graph, see `xsent.bundle.Network`."""
        config = self._config
        shape = {"heads": config.num_heads, "activation": config.activation, "norm_eps": config.norm_eps}
        files = (self._table, self._weights, *self._matrices.values())
        tensors = {name: place for file in files for name, place in file.places.items()}
        rounding = {name: grid._asdict() for name, grid in self._rounding.items()}
        return {**shape, "first": config.first, "last": config.last, "tensors": tensors, "rounding": rounding}

    def write(self, folder: Path) -> None:
        """Write the graphs and their files of weights, with the matrices into other models' spaces."""
        for name, matrix in self._spec.spaces.items():
            self._matrices.get(name, self._weights).add(f"space.{name}", matrix.numpy().astype(np.float16))
        for depth, model in {**self._shallower, self._spec.num_layers: self.model()}.items():
            graph = folder / graph_name(depth, self._spec.num_layers)
            graph.write_bytes(model.SerializeToString(deterministic=True))
        for file in (self._table, self._weights, *self._matrices.values()):
            file.write(folder)

    def model(self) -> ModelProto:
        """The graph, without the tensors in other files."""
        ids = helper.make_tensor_value_info(INPUT, TensorProto.INT64, [self.SENTENCES, "tokens"])
        vector = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [self.SENTENCES, self._spec.dim])
        return self._make_model([ids], vector)

    def _make_model(self, inputs: Sequence[ValueInfoProto], *outputs: ValueInfoProto) -> ModelProto:
        graph = helper.make_graph(self._nodes, "xsent", inputs, outputs, list(self._initializers.values()))
        domains = sorted({node.domain for node in self._nodes})
        opsets = [helper.make_opsetid(domain, 1 if domain else OPSET) for domain in domains]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="xsent")

    def _node(self, op: str, inputs: Sequence[str], name: str, domain: str = "", **kwargs: Any) -> str:  # noqa: ANN401
        """Add an operator with its ONNX attributes, and return the name of its output."""
        self._nodes.append(helper.make_node(op, inputs, [name], name=name, domain=domain, **kwargs))
        return name

    def _integers(self, name: str, values: Sequence[int]) -> str:
        # Inside the graph, because ONNX Runtime reads shapes before it maps any file.
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._initializers[name] = numpy_helper.from_array(value, name)
        return name

    def _encoder(self, encoder: Encoder) -> None:
        ids = INPUT if encoder.positions is None else self._frame(encoder.config)
        self._prepare(ids)
        x = self._look_up(encoder.table, ids)  # [B, T, D]
        if encoder.positions is not None and encoder.table_norm is not None:
            table = self._weight("positions", _array(encoder.positions))
            positions = self._node("Slice", [table, self._integers("zero", [0]), self._length], "first_positions")
            x = self._node("Add", [x, positions], "positioned")
            x = self._norm("table_norm", encoder.table_norm, x)
        for number, layer in enumerate(encoder.layers):
            assert isinstance(layer, Layer)
            if number in encoder.config.depths:
                self._branch(encoder, number, x)
            x = self._layer(f"layer{number}", layer, x if number else self._swap(x, "by_token"))
        self._read_out(encoder, len(encoder.layers), x)

    def _branch(self, encoder: Encoder, depth: int, x: str) -> None:
        """Build the graph that ends after the layers so far, without changing the deeper one."""
        nodes, initializers = list(self._nodes), dict(self._initializers)
        self._read_out(encoder, depth, x)
        self._shallower[depth] = EncoderGraph.model(self)
        self._nodes, self._initializers = nodes, initializers

    def _read_out(self, encoder: Encoder, depth: int, x: str) -> None:
        """Add the vector of the tokens: their mean, weighted and mapped by the readout of the depth, if any."""
        dim = self._spec.dim
        x = self._swap(x, f"by_sentence{depth}") if depth else x  # [B, T, D]
        if not encoder.readouts:
            if dim < self._width:
                ends = [self._integers(*end) for end in (("zero", [0]), ("dim", [dim]), ("last_axis", [-1]))]
                x = self._node("Slice", [x, *ends], f"{x}.cut")
            self._mean(x, OUTPUT)
            return
        name = f"readout{depth}"
        readout = encoder.readout(depth)
        if encoder.weighs(depth):
            query = self._weight(f"{name}.query", _array(readout.query))
            mean = self._weighted_mean(self._node("MatMul", [x, query], SCORED), x)
        else:
            mean = self._mean(x, "mean")
        weight = np.ascontiguousarray(_array(readout.weight).T[:, :dim])  # [inputs, outputs]
        if self._spec.precision == "float32":
            matrix = self._weight(f"{name}.weight", weight)
        else:  # ONNX Runtime casts it once, when it loads the graph
            half = self._weight(f"{name}.weight", weight.astype(np.float16))
            matrix = self._node("Cast", [half], f"{name}.matrix", to=TensorProto.FLOAT)
        product = self._node("MatMul", [mean, matrix], READOUT)
        self._node("Add", [product, self._weight(f"{name}.bias", _array(readout.bias)[:dim])], OUTPUT)

    def _swap(self, x: str, name: str) -> str:
        """Layers take the states as [T, B, D], because ONNX Runtime then multiplies heads without copying them."""
        return self._node("Transpose", [x], name, perm=[1, 0, 2])

    def _frame(self, config: ModelConfig) -> str:
        """Add the ids of the first and the last token around the ids."""
        ends = {"first": config.first, "last": config.last}
        first, last = (self._constant(f"{name}.id", np.array(id, np.int64)) for name, id in ends.items())
        ids = self._node("Pad", [INPUT, self._integers("before", [0, 1, 0, 0]), first], "after_first")
        return self._node("Pad", [ids, self._integers("after", [0, 0, 0, 1]), last], "framed")

    def _prepare(self, ids: str) -> None:
        self._length = self._node("Shape", [ids], "length", start=1, end=2)  # [1]

    def _layer(self, name: str, layer: Layer, x: str) -> str:
        """Add a layer: norm(x + attention(x)), then norm(x + feed-forward(x))."""
        # The scale of the attention scores, folded into the queries.
        gain = np.ones(3 * self._width, np.float32)
        gain[: self._width] = (self._width // layer.num_heads) ** -0.5
        mixed = self._product(f"{name}.qkv", x, _array(layer.qkv.weight).T * gain, _array(layer.qkv.bias) * gain)
        mixed = self._attend(f"{name}.heads", layer.num_heads, mixed)
        mixed = self._linear(f"{name}.attention_out", layer.attention_out, mixed)
        x = self._node("Add", [x, mixed], f"{name}.attended")
        x = self._norm(f"{name}.attention_norm", layer.attention_norm, x)
        hidden = self._activate(self._linear(f"{name}.ffn_in", layer.ffn_in, x), f"{name}.{self._config.activation}")
        x = self._node("Add", [x, self._linear(f"{name}.ffn_out", layer.ffn_out, hidden)], f"{name}.out")
        return self._norm(f"{name}.ffn_norm", layer.ffn_norm, x)

    def _look_up(self, table: nn.Embedding, ids: str) -> str:
        values = _array(table.weight)[:, : self._width]
        if self._spec.precision == "float32":
            return self._node("Gather", [self._weight("table", values, self._table), ids], "embedded")
        if self._spec.precision == "int4-table":
            return self._look_up_nibbles(values, ids)
        # Scaled after the look-up, so that only the rows of the sentence are ever read from disk.
        numbers, scales = quantize_rows(values)
        rows = self._node("Gather", [self._weight("table", numbers, self._table), ids], "rows")
        scale = self._node("Gather", [self._weight("table.scales", scales), ids], "row_scales")  # [B, T, 1]
        rows = self._node("Cast", [rows], "rows_float", to=TensorProto.FLOAT)
        return self._node("Mul", [rows, scale], "embedded")

    def _look_up_nibbles(self, values: NDArray[np.float32], ids: str) -> str:
        """Two numbers per byte, unpacked after the look-up with operators that every version has."""
        dim = values.shape[1]
        packed, scales = quantize_nibbles(values)
        rows = self._node("Gather", [self._weight("table", packed, self._table), ids], "rows")  # [B, T, D/2]
        high = self._node("BitShift", [rows, self._constant("four", np.array(4, np.uint8))], "high", direction="RIGHT")
        high = self._node("Cast", [high], "high_float", to=TensorProto.FLOAT)
        both = self._node("Cast", [rows], "both_float", to=TensorProto.FLOAT)
        sixteen = self._constant("float_16", np.array(16, np.float32))
        eight = self._constant("float_8", np.array(8, np.float32))
        low = self._node("Sub", [both, self._node("Mul", [high, sixteen], "high_part")], "low")
        numbers = self._node("Concat", [low, high], "unshifted", axis=-1)
        numbers = self._node("Sub", [numbers, eight], "numbers")  # [B, T, D]
        scale = self._node("Gather", [self._weight("table.scales", scales), ids], "row_scales")  # [B, T, blocks]
        scale = self._node("Cast", [scale], "row_scales_float", to=TensorProto.FLOAT)
        split = self._integers("split_blocks", [0, 0, dim // block_size(dim), block_size(dim)])
        column = self._integers("split_scales", [0, 0, dim // block_size(dim), 1])
        numbers = self._node("Reshape", [numbers, split], "blocks")
        numbers = self._node("Mul", [numbers, self._node("Reshape", [scale, column], "block_scales")], "scaled")
        return self._node("Reshape", [numbers, self._integers("join_blocks", [0, 0, dim])], "embedded")

    def _activate(self, x: str, name: str) -> str:
        if self._config.activation == "silu":
            return self._node("QuickGelu", [x], name, CONTRIB, alpha=1.0)  # x * sigmoid(x)
        return self._node("Gelu", [x], name, CONTRIB)

    def _attend(self, name: str, heads: int, qkv: str) -> str:
        """Attention in plain operators; the fused ones are not faster for one sentence."""
        split = self._integers("split_heads", [0, 0, 3, heads, self._width // heads])
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        hidden = self._node("Reshape", [qkv, split], f"{name}.split")  # [T, B, 3, H, D/H]
        self._nodes.append(helper.make_node("Split", [hidden], parts, name=f"{name}.parts", axis=2))
        orders = ([1, 2, 3, 0, 4], [1, 2, 3, 4, 0], [1, 2, 3, 0, 4])
        query, key, value = (
            self._node("Transpose", [part], f"{part}.turned", perm=order)
            for part, order in zip(parts, orders, strict=True)
        )
        scores = self._node("MatMul", [query, key], f"{name}.scores")  # [B, 1, H, T, T]
        shares = self._node("Softmax", [scores], f"{name}.shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{name}.mixed")  # [B, 1, H, T, D/H]
        mixed = self._node("Transpose", [mixed], f"{name}.turned", perm=[3, 0, 1, 2, 4])
        return self._node("Reshape", [mixed, self._integers("join_heads", [0, 0, self._width])], name)

    def _norm(self, name: str, norm: nn.LayerNorm, x: str) -> str:
        weights = [self._weight(f"{name}.{p}", _array(getattr(norm, p))) for p in ("weight", "bias")]
        return self._node("LayerNormalization", [x, *weights], name, axis=-1, epsilon=norm.eps)

    def _mean(self, x: str, name: str) -> str:
        # A product with shares of 1 / T: ReduceMean takes five times as long, and sums in an order that depends on B.
        count = self._node("Cast", [self._length], "count", to=TensorProto.FLOAT)
        shape = self._node("Concat", [self._integers("one", [1]), self._length], "shares_shape", axis=0)
        share = self._node("Reciprocal", [count], "share")
        shares = self._node("Expand", [share, shape], "shares")  # [1, T], each 1 / T
        mean = self._node("MatMul", [shares, x], f"{name}.row")  # [B, 1, D]
        return self._node("Squeeze", [mean, self._integers("one", [1])], name)

    def _weighted_mean(self, scores: str, x: str) -> str:
        """The mean [B, D] of tokens [B, T, D] by the softmax of their scores [B, T]."""
        shares = self._node("Softmax", [scores], "token_shares", axis=-1)
        one = self._integers("one", [1])
        mean = self._node("MatMul", [self._node("Unsqueeze", [shares, one], "token_shares.row"), x], WEIGHED)
        return self._node("Squeeze", [mean, one], "mean")

    def _linear(self, name: str, linear: nn.Linear, x: str) -> str:
        return self._product(name, x, _array(linear.weight).T, _array(linear.bias))

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """Add a linear layer with this weight [inputs, outputs]."""
        if self._spec.precision == "float32":
            return self._float_product(name, x, weight, bias)
        bias_name = self._weight(f"{name}.bias", bias)
        x, weight = self._smooth(name, x, weight)
        stats = self._calibration
        numbers, scales = quantize_columns(weight, stats.moments.get(name), stats.scales.get(name))
        columns = self._weight(f"{name}.weight", numbers), self._weight(f"{name}.scales", scales)
        rounding = self._rounding[name] = stats.rounding_of(name, self._config.activation)
        if rounding.by_token:
            return self._product_by_token(name, rounding, x, *columns, bias_name)
        step, zero = self._constant(f"{name}.step", np.array(rounding.step, np.float32)), self._zero(rounding)
        x = self._node("QuantizeLinear", [x, step, zero], f"{name}.rounded")
        return self._node("MatMulIntegerToFloat", [x, columns[0], step, columns[1], zero, "", bias_name], name, CONTRIB)

    def _product_by_token(self, name: str, rounding: Rounding, x: str, weight: str, scales: str, bias: str) -> str:
        """Add an 8-bit product whose inputs are rounded in steps of each token's own size."""
        least = self._constant(f"{name}.least", np.array(rounding.step * (255 - rounding.zero), np.float32))
        share = self._constant(f"share.{rounding.zero}", np.array(1 / (255 - rounding.zero), np.float32))
        zero = self._zero(rounding)
        # The smallest step covers all negative numbers, except where they are as large as the positive ones.
        sizes = self._node("Abs", [x], f"{name}.sizes") if rounding.zero == MIDDLE else x
        largest = self._node("ReduceMax", [sizes], f"{name}.own_largest", axes=[-1], keepdims=1)  # [T, B, 1]
        largest = self._node("Max", [largest, least], f"{name}.largest")
        x = self._node(
            "QuantizeLinear", [self._node("Div", [x, largest], f"{name}.shares"), share, zero], f"{name}.rounded"
        )
        product = self._node("MatMulIntegerToFloat", [x, weight, share, scales, zero], f"{name}.of_shares", CONTRIB)
        return self._node("Add", [self._node("Mul", [product, largest], f"{name}.product"), bias], name)

    def _zero(self, rounding: Rounding) -> str:
        return self._constant(f"zero.{rounding.zero}", np.array(rounding.zero, np.uint8))

    def _float_product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        bias_name = self._weight(f"{name}.bias", bias)
        product = self._node("MatMul", [x, self._weight(f"{name}.weight", weight)], f"{name}.product")
        return self._node("Add", [product, bias_name], name)

    def _smooth(self, name: str, x: str, weight: NDArray[np.float32]) -> tuple[str, NDArray[np.float32]]:
        """Move some of the spread of a linear layer's input into its weight."""
        if name not in self._calibration.smoothing:
            return x, weight
        factors = self._calibration.smoothing[name]
        x = self._node("Mul", [x, self._weight(f"{name}.smoothing", factors)], f"{name}.smoothed")
        return x, weight / factors[:, None]

    def _weight(self, name: str, values: NDArray[np.generic], file: ExternalFile | None = None) -> str:
        self._initializers[name] = (file or self._weights).add(name, values)
        return name


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.detach().float().cpu().numpy()
