"""The encoder in numpy against the graph that onnxruntime runs."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnxruntime
import pytest
from conftest import MakeEncoder
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from onnx import TensorProto, helper

from xsent import SentenceEncoder
from xsent.backends.numpy import NumpyBackend, gelu, quantize
from xsent.backends.onnx import OnnxBackend
from xsent.bundle import Bundle, compute_fingerprint, parse_manifest
from xsent.errors import BundleError
from xsent.similarity import cosine_similarity
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec, Precision
from xsent_train.model import Encoder

Edit = Callable[[dict[str, Any]], object]


def write_bundle(encoder: Encoder, form: BundleSpec, mini_bundle: Path, folder: Path) -> Bundle:
    """A bundle without a tokenizer: what a backend reads."""
    graph = EncoderGraph(encoder.first(form.num_layers), form)
    graph.write(folder)
    raw = json.loads((mini_bundle / "xsent.json").read_bytes())
    raw |= {"dim": form.dim, "num_layers": form.num_layers, "vocab_size": encoder.config.vocab_size}
    raw["golden"] = {"sentences": [], "vectors": [], "tolerance": {"other": 1.0}}
    raw["files"] = {file.name: {"sha256": "", "bytes": file.stat().st_size} for file in folder.iterdir()}
    raw["network"] = json.loads(json.dumps(graph.network))
    return Bundle(path=folder, layers=form.num_layers, **vars(parse_manifest(raw, folder)))


def pairs(bundle: Bundle) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """The vectors of sentences of several lengths, from onnxruntime and from numpy."""
    onnx, numpy = OnnxBackend(bundle), NumpyBackend(bundle)
    sentences = [np.arange(length) * 7 % bundle.vocab_size for length in (1, 2, 7, 20, 21, 64)]
    return [(onnx.embed(ids[None])[0], numpy.embed(ids[None])[0]) for ids in sentences]


SHAPES = (0, 128), (0, 64), (1, 128), (1, 64), (2, 128), (2, 96)
SPECS = [BundleSpec(*shape, precision) for shape in SHAPES for precision in get_args(Precision)]


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.num_layers}-{spec.dim}-{spec.precision}")
def test_numpy_computes_and_rounds_as_the_graph_does(
    spec: BundleSpec, activation: str, make_encoder: MakeEncoder, mini_bundle: Path, tmp_path: Path
) -> None:
    encoder = make_encoder(dim=128, activation=activation, norm_eps=1e-12)
    for onnx, numpy in pairs(write_bundle(encoder, spec, mini_bundle, tmp_path)):
        assert numpy.dtype == np.float32
        if spec.precision == "float32":
            np.testing.assert_allclose(numpy, onnx, rtol=1e-5, atol=1e-5)
        # Where a number lies between two steps, the last digit of a float decides: a step of one number in many.
        assert cosine_similarity(onnx, numpy)[0, 0] > (1 - 1e-4 if spec.num_layers else 1 - 1e-6)


@given(x=arrays.arrays(np.float32, (2, 30), elements=st.floats(-100, 100, width=32)))
def test_gelu_is_the_exact_one(x: NDArray[np.float32]) -> None:
    exact = [number * 0.5 * math.erfc(-number / math.sqrt(2)) for number in x.ravel().tolist()]
    np.testing.assert_allclose(gelu(x).ravel(), exact, rtol=3e-7, atol=5e-7)


def test_activations_are_rounded_by_hand(mini_bundle: Path) -> None:
    numbers, step = quantize(np.array([[-1, 0, 3]], np.float32))
    assert step == np.float32(4 / 255)
    # The zero point is 63.75, rounded 64; -1 and 3 are -63.75 and 191.25 steps from 0, and 191 is the last above it.
    np.testing.assert_array_equal(numbers, [[-64, 0, 191]])
    numbers, step = quantize(np.zeros((2, 2), np.float32))
    assert step == 1
    np.testing.assert_array_equal(numbers, np.zeros((2, 2)))
    table = NumpyBackend(Bundle.open(mini_bundle))._table._rows
    assert isinstance(table.base, np.memmap)


@pytest.fixture(scope="module")
def operator() -> onnxruntime.InferenceSession:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "step", "zero"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])
    types = {"y": TensorProto.UINT8, "step": TensorProto.FLOAT, "zero": TensorProto.UINT8}
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in types.items()]
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph([node], "g", [x], outputs), opset_imports=opset, ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@given(x=arrays.arrays(np.float32, st.integers(1, 40), elements=st.integers(-30_000, 30_000).map(lambda n: n / 1000)))
def test_rounding_is_that_of_onnxruntime(operator: onnxruntime.InferenceSession, x: NDArray[np.float32]) -> None:
    rounded, step, zero = operator.run(None, {"x": x})
    numbers, own_step = quantize(x)
    assert own_step == step
    np.testing.assert_array_equal(numbers, rounded.astype(np.int64) - int(zero))


def tensor(name: str, **fields: object) -> Edit:
    return lambda manifest: manifest["network"]["tensors"][name].update(fields)


UNREADABLE = "its network cannot be read .*; export the bundle again"


def test_a_network_that_cannot_be(mini_bundle: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    whole = (folder / "xsent.json").read_bytes()
    for edit, message in [
        (lambda manifest: manifest["network"].update(activation="relu"), UNREADABLE),
        (lambda manifest: manifest["network"].update(heads=5), UNREADABLE),
        (lambda manifest: manifest["network"].update(first=10**6), UNREADABLE),
        (lambda manifest: manifest["network"]["tensors"].pop("table_norm.bias"), UNREADABLE),
        (lambda manifest: manifest["network"]["tensors"].pop("layer1.qkv.weight"), UNREADABLE),
        (tensor("table", file="../secret"), UNREADABLE),
        (tensor("table", file="README.txt"), UNREADABLE),
        (tensor("table", dtype="object"), UNREADABLE),
        (tensor("table", offset=2**40), UNREADABLE),
        (tensor("table", shape=[3, 32]), UNREADABLE),
        (tensor("table", shape=[2**40, 2**40]), UNREADABLE),
        (tensor("positions", shape=[65, 32]), UNREADABLE),
        (tensor("layer0.ffn_in.weight", shape=[16, 64]), UNREADABLE),
        (tensor("layer1.ffn_out.bias", shape=[31]), UNREADABLE),
        (lambda manifest: manifest["network"].pop("heads"), "network: no 'heads'"),
        (lambda manifest: manifest["network"].update(norm_eps="0"), "network: 'norm_eps' is of type str"),
        (lambda manifest: manifest["network"].update(last=-1), "network: 'last' is -1"),
        (lambda manifest: manifest["network"]["tensors"]["table"].pop("offset"), "table: no 'offset'"),
        (tensor("table", shape=["3"]), "'shape' is of type str"),
        (tensor("table", shape=[-1, 32]), "'shape' is -1"),
        (tensor("table", offset=-1), "'offset' is -1"),
    ]:
        manifest = json.loads(whole)
        edit(manifest)
        manifest["fingerprint"] = compute_fingerprint(manifest)
        (folder / "xsent.json").write_text(json.dumps(manifest))
        with pytest.raises(BundleError, match=message) as caught:
            SentenceEncoder(folder, backend="numpy")
        assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
