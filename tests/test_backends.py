"""Running a bundle's graph, with every backend that needs nothing of its own in the bundle."""

import shutil
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from xsent import backends
from xsent.backends import default_backend, importing, open_backend
from xsent.bundle import Bundle
from xsent.errors import BundleError, MissingExtraError
from xsent.onnx_backend import OnnxBackend


def test_graph_that_cannot_be_loaded(mini_bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    bundle = Bundle.open(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    (bundle.path / "model.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(BundleError) as caught:
        OnnxBackend(bundle)
    assert str(bundle.path / "model.onnx") in str(caught.value) and "\n" not in str(caught.value)


def test_numpy_does_without_onnxruntime(builtin: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    assert default_backend() == "onnx"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert default_backend() == "numpy"
    assert np.isfinite(open_backend("numpy", builtin).embed(np.arange(5))).all()
    with pytest.raises(MissingExtraError, match=r"pip install onnxruntime, or use the numpy backend"):
        open_backend("onnx", builtin)


def test_a_failed_import_is_left_to_whoever_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    broken = ImportError("libgomp.so.1 is not there")
    with mock.patch.object(backends, "import_module", side_effect=broken) as asked, importing("onnx"):
        pass
    asked.assert_called_once_with("onnxruntime")


def test_they_agree_within_the_tolerance_at_every_length(builtin: Bundle) -> None:
    pytest.importorskip("onnxruntime")
    onnx, numpy = (open_backend(name, builtin) for name in ("onnx", "numpy"))
    generator = np.random.default_rng(5)
    allowed = builtin.golden.tolerance["avx512_vnni"]
    for length in (1, 2, 3, 8, 20, 21, 40, 100, builtin.max_length):
        ids = generator.integers(0, builtin.vocab_size, length)
        vectors = [onnx.embed(ids), numpy.embed(ids)]
        for vector in vectors:
            assert (vector.shape, vector.dtype) == ((builtin.dim,), np.float32) and np.isfinite(vector).all()
        left, right = (vector / np.linalg.norm(vector) for vector in vectors)
        assert np.abs(left - right).max() <= allowed
