"""The encoder as an ONNX graph: token ids in, the sentence vector out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from torch import Tensor, nn

from xsent.bundle import TABLE, WEIGHTS, graph_name
from xsent_export.calibration import NOTHING, ActivationStats
from xsent_export.options import BundleSpec
from xsent_export.quantization import block_size, quantize_columns, quantize_nibbles, quantize_rows
from xsent_train.model import Encoder, Layer, ModelConfig

OPSET, IR_VERSION = 17, 8  # the oldest that have LayerNormalization: every supported onnxruntime reads them
CONTRIB = "com.microsoft"
PAGE = 4096


class OnnxBuilder:
    """Operators in the order they run, and the constants they read."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}

    def _make_model(self, inputs: Sequence[ValueInfoProto], output: ValueInfoProto) -> ModelProto:
        graph = helper.make_graph(self._nodes, "xsent", inputs, [output], list(self._initializers.values()))
        domains = sorted({node.domain for node in self._nodes})
        opsets = [helper.make_opsetid(domain, 1 if domain else OPSET) for domain in domains]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="xsent")

    def _node(self, op: str, inputs: Sequence[str], name: str, domain: str = "", **kwargs: Any) -> str:  # noqa: ANN401
        """Add an operator, with ONNX's attributes of it, and return the name of what it gives."""
        self._nodes.append(helper.make_node(op, inputs, [name], name=name, domain=domain, **kwargs))
        return name

    def _integers(self, name: str, values: Sequence[int]) -> str:
        # Inside the graph: ONNX Runtime reads shapes before it maps any file.
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._initializers[name] = numpy_helper.from_array(value, name)
        return name


class ExternalFile:
    """A file of tensors that an ONNX graph refers to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._arrays: list[tuple[int, NDArray[np.generic]]] = []
        self._end = 0
        self.places: dict[str, dict[str, object]] = {}  # see `xsent.bundle.TensorEntry`

    def add(self, name: str, array: NDArray[np.generic]) -> TensorProto:
        """Give an array, which is not copied, the next free page; returns what refers to it in the graph."""
        offset, shape = -(-self._end // PAGE) * PAGE, list(array.shape)
        self._arrays.append((offset, array))
        self._end = offset + array.nbytes
        self.places[name] = {"file": self._name, "offset": offset, "dtype": array.dtype.name, "shape": shape}
        kind, outside = helper.np_dtype_to_tensor_dtype(array.dtype), TensorProto.EXTERNAL
        tensor = TensorProto(name=name, dims=shape, data_type=kind, data_location=outside)
        for key, value in (("location", self._name), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    def write(self, folder: Path) -> None:
        """Write the file into the graph's folder; little-endian, gaps are zeros."""
        with (folder / self._name).open("wb") as file:
            for offset, array in self._arrays:
                file.write(b"\0" * (offset - file.tell()))
                file.write(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).data)


INPUT, OUTPUT = "input_ids", "sentence_embedding"
READOUT = "read_out"  # the product with a readout's matrix


class EncoderGraph(OnnxBuilder):
    """An encoder as a graph for each depth, and two files of weights; a ValueError where one is not finite."""

    def __init__(self, encoder: Encoder, form: BundleSpec, calibration: ActivationStats = NOTHING) -> None:
        super().__init__()
        encoder = encoder.first(form.num_layers)
        self._form, self._calibration = form, calibration
        self._config = config = encoder.config
        # Of the tokens; under layers or a readout the vector's may be less.
        self._width = config.dim if config.num_layers or config.depths else form.dim
        self._table = ExternalFile(TABLE)
        self._weights = ExternalFile(WEIGHTS)
        self._shallower: dict[int, ModelProto] = {}
        self._encoder(encoder)

    @property
    def network(self) -> dict[str, object]:
        """What else can run the same weights, see `xsent.bundle.Network`."""
        config = self._config
        shape = {"heads": config.num_heads, "activation": config.activation, "norm_eps": config.norm_eps}
        tensors = self._table.places | self._weights.places
        return {**shape, "first": config.first, "last": config.last, "tensors": tensors}

    def keep(self, name: str, values: NDArray[np.generic]) -> None:
        """Add a weight that is in no graph."""
        self._weights.add(name, values)

    def write(self, folder: Path) -> None:
        """Write the graphs and their two files of weights."""
        for depth, model in {**self._shallower, self._form.num_layers: self.model()}.items():
            graph = folder / graph_name(depth, self._form.num_layers)
            graph.write_bytes(model.SerializeToString(deterministic=True))
        self._table.write(folder)
        self._weights.write(folder)

    def model(self) -> ModelProto:
        """The graph, without what lies in other files."""
        ids = helper.make_tensor_value_info(INPUT, TensorProto.INT64, [1, "tokens"])
        vector = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, self._form.dim])
        return self._make_model([ids], vector)

    def _encoder(self, encoder: Encoder) -> None:
        ids = INPUT if encoder.positions is None else self._frame(encoder.config)
        self._prepare(ids)
        x = self._look_up(encoder.table, ids)  # [1, T, D]
        if encoder.positions is not None and encoder.table_norm is not None:
            table = self._weight("positions", _array(encoder.positions))
            positions = self._node("Slice", [table, self._integers("zero", [0]), self._length], "first_positions")
            x = self._node("Add", [x, positions], "positioned")
            x = self._norm("table_norm", encoder.table_norm, x)
        for number, layer in enumerate(encoder.layers):
            assert isinstance(layer, Layer)
            if number in encoder.config.depths:
                self._branch(encoder, number, x)
            x = self._layer(f"layer{number}", layer, x)
        self._read_out(encoder, len(encoder.layers), x)

    def _branch(self, encoder: Encoder, depth: int, x: str) -> None:
        """Make the graph that ends after the layers so far, and go on as if it had not been."""
        nodes, initializers = list(self._nodes), dict(self._initializers)
        self._read_out(encoder, depth, x)
        self._shallower[depth] = EncoderGraph.model(self)
        self._nodes, self._initializers = nodes, initializers

    def _read_out(self, encoder: Encoder, depth: int, x: str) -> None:
        """The vector of tokens [1, T, D]: their mean, through the readout of their depth if there is one."""
        if not encoder.readouts:
            self._mean(self._cut(x), OUTPUT)
            return
        name, readout, dim = f"readout{depth}", encoder.readouts[str(depth)], self._form.dim
        assert isinstance(readout, nn.Linear)
        weight = np.ascontiguousarray(_array(readout.weight).T[:, :dim])  # [inputs, outputs]
        half = self._form.precision != "float32"
        matrix = self._weight(f"{name}.weight", weight.astype(np.float16) if half else weight)
        if half:  # ONNX Runtime does that once, when it opens the graph
            matrix = self._node("Cast", [matrix], f"{name}.matrix", to=TensorProto.FLOAT)
        product = self._node("MatMul", [self._mean(x, "mean"), matrix], READOUT)
        self._node("Add", [product, self._weight(f"{name}.bias", _array(readout.bias)[:dim])], OUTPUT)

    def _frame(self, config: ModelConfig) -> str:
        """The ids between those of the first and the last token."""
        first, last = (self._constant(n, np.array([[getattr(config, n)]], np.int64)) for n in ("first", "last"))
        return self._node("Concat", [first, INPUT, last], "framed", axis=1)

    def _prepare(self, ids: str) -> None:
        self._length = self._node("Shape", [ids], "length", start=1, end=2)  # [1]
        share = self._node("Reciprocal", [self._node("Cast", [self._length], "count", to=TensorProto.FLOAT)], "share")
        shape = self._node("Concat", [self._integers("one", [1]), self._length], "shares_shape", axis=0)
        self._shares = self._node("Expand", [share, shape], "shares")  # [1, T], each 1 / T

    def _layer(self, name: str, layer: Layer, x: str) -> str:
        """A layer: norm(x + attention(x)), then norm(x + feed-forward(x))."""
        x = self._node("Add", [x, self._mix(name, layer, x)], f"{name}.attended")
        x = self._norm(f"{name}.attention_norm", layer.attention_norm, x)
        hidden = self._activate(self._linear(f"{name}.ffn_in", layer.ffn_in, x), f"{name}.{self._config.activation}")
        x = self._node("Add", [x, self._linear(f"{name}.ffn_out", layer.ffn_out, hidden)], f"{name}.out")
        return self._norm(f"{name}.ffn_norm", layer.ffn_norm, x)

    def _look_up(self, table: nn.Embedding, ids: str) -> str:
        values = _array(table.weight)[:, : self._width]
        if self._form.precision == "float32":
            return self._node("Gather", [self._weight("table", values, self._table), ids], "embedded")
        if self._form.precision == "int4-table":
            return self._look_up_nibbles(values, ids)
        # Scaled after the look-up, so that only the rows of the sentence are ever read from the disk.
        numbers, scales = quantize_rows(values)
        rows = self._node("Gather", [self._weight("table", numbers, self._table), ids], "rows")
        scale = self._node("Gather", [self._weight("table.scales", scales), ids], "row_scales")  # [1, T, 1]
        rows = self._node("Cast", [rows], "rows_float", to=TensorProto.FLOAT)
        return self._node("Mul", [rows, scale], "embedded")

    def _look_up_nibbles(self, values: NDArray[np.float32], ids: str) -> str:
        """Two numbers a byte, taken apart after the look-up with operators that every version has."""
        dim = values.shape[1]
        packed, scales = quantize_nibbles(values)
        rows = self._node("Gather", [self._weight("table", packed, self._table), ids], "rows")  # [1, T, D/2]
        high = self._node("BitShift", [rows, self._constant("four", np.array(4, np.uint8))], "high", direction="RIGHT")
        high, both = (
            self._node("Cast", [part], f"{name}_float", to=TensorProto.FLOAT)
            for part, name in ((high, "high"), (rows, "both"))
        )
        sixteen, eight = (self._constant(f"float_{n}", np.array(n, np.float32)) for n in (16, 8))
        low = self._node("Sub", [both, self._node("Mul", [high, sixteen], "high_part")], "low")
        numbers = self._node("Concat", [low, high], "unshifted", axis=-1)
        numbers = self._node("Sub", [numbers, eight], "numbers")  # [1, T, D]
        scale = self._node("Gather", [self._weight("table.scales", scales), ids], "row_scales")  # [1, T, blocks]
        scale = self._node("Cast", [scale], "row_scales_float", to=TensorProto.FLOAT)
        split = self._integers("split_blocks", [0, 0, dim // block_size(dim), block_size(dim)])
        column = self._integers("split_scales", [0, 0, dim // block_size(dim), 1])
        numbers = self._node("Reshape", [numbers, split], "blocks")
        numbers = self._node("Mul", [numbers, self._node("Reshape", [scale, column], "block_scales")], "scaled")
        return self._node("Reshape", [numbers, self._integers("join_blocks", [0, 0, dim])], "embedded")

    def _cut(self, x: str) -> str:
        """The numbers of the tokens, or of a vector, that the vector keeps."""
        if self._form.dim == self._width:
            return x
        ends = [self._integers("zero", [0]), self._integers("dim", [self._form.dim]), self._integers("last_axis", [-1])]
        return self._node("Slice", [x, *ends], f"{x}.cut")

    def _mix(self, name: str, layer: Layer, hidden: str) -> str:
        # The scale of the attention scores, folded into the queries.
        gain = np.ones(3 * self._width, np.float32)
        gain[: self._width] = (self._width // layer.num_heads) ** -0.5
        hidden = self._linear(f"{name}.qkv", layer.qkv, hidden, gain)
        hidden = self._attend(f"{name}.heads", layer.num_heads, hidden)
        return self._linear(f"{name}.attention_out", layer.attention_out, hidden)

    def _activate(self, x: str, name: str) -> str:
        if self._config.activation == "silu":
            return self._node("QuickGelu", [x], name, CONTRIB, alpha=1.0)  # x * sigmoid(x)
        return self._node("Gelu", [x], name, CONTRIB)

    def _attend(self, name: str, heads: int, qkv: str) -> str:
        """Mix the values of all tokens; plain operators, as the fused ones are no faster for one sentence."""
        split = self._integers("split_heads", [-1, 3, heads, self._width // heads])
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        hidden = self._node("Reshape", [qkv, split], f"{name}.split")  # [T, 3, H, D/H]
        self._nodes.append(helper.make_node("Split", [hidden], parts, name=f"{name}.parts", axis=1))
        turned = zip(parts, ([1, 2, 0, 3], [1, 2, 3, 0], [1, 2, 0, 3]), strict=True)
        query, key, value = (self._node("Transpose", [p], f"{p}.turned", perm=perm) for p, perm in turned)
        scores = self._node("MatMul", [query, key], f"{name}.scores")  # [1, H, T, T]
        shares = self._node("Softmax", [scores], f"{name}.shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{name}.mixed")  # [1, H, T, D/H]
        mixed = self._node("Transpose", [mixed], f"{name}.turned", perm=[0, 2, 1, 3])
        return self._node("Reshape", [mixed, self._integers("join_heads", [1, -1, self._width])], name)

    def _norm(self, name: str, norm: nn.LayerNorm, x: str) -> str:
        weights = [self._weight(f"{name}.{p}", _array(getattr(norm, p))) for p in ("weight", "bias")]
        return self._node("LayerNormalization", [x, *weights], name, axis=-1, epsilon=norm.eps)

    def _mean(self, x: str, name: str) -> str:
        # A product with shares of 1 / T: ReduceMean takes five times as long.
        mean = self._node("MatMul", [self._shares, x], f"{name}.row")  # [1, 1, D]
        return self._node("Squeeze", [mean, self._integers("one", [1])], name)

    def _linear(self, name: str, linear: nn.Linear, x: str, gain: NDArray[np.float32] | None = None) -> str:
        """Add a linear layer; `gain` [outputs] multiplies what comes out."""
        weight, bias = _array(linear.weight).T, _array(linear.bias)  # [inputs, outputs], [outputs]
        if gain is not None:
            weight, bias = weight * gain, bias * gain
        return self._product(name, x, weight, bias)

    def _is_quantized(self) -> bool:
        return self._form.precision != "float32"

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        bias_name = self._weight(f"{name}.bias", bias)
        if not self._is_quantized():
            product = self._node("MatMul", [x, self._weight(f"{name}.weight", weight)], f"{name}.product")
            return self._node("Add", [product, bias_name], name)
        x, weight = self._smooth(name, x, weight)
        # Activations get one scale a sentence, found anew each time.
        numbers, scales = quantize_columns(weight, self._form.target, self._calibration.moments.get(name))
        columns = [self._weight(f"{name}.weight", numbers), self._weight(f"{name}.scales", scales)]
        return self._node("DynamicQuantizeMatMul", [x, *columns, "", bias_name], name, CONTRIB)

    def _smooth(self, name: str, x: str, weight: NDArray[np.float32]) -> tuple[str, NDArray[np.float32]]:
        """Move some of what is large in a linear layer's input into its weight."""
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
