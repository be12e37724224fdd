"""Running a bundle's graph."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from xsent.backends import OnnxBackend, open_backend
from xsent.bundle import Bundle
from xsent.errors import BackendError, BundleError


@pytest.mark.parametrize("length", [1, 2, 17, 64])
def test_any_length_gives_one_vector(mini_bundle: Path, length: int) -> None:
    bundle = Bundle.open(mini_bundle)
    vector = open_backend("onnx", bundle).embed(np.arange(length, dtype=np.int64))
    assert vector.shape == (bundle.dim,)
    assert vector.dtype == np.float32
    assert np.isfinite(vector).all()


def test_unknown_backend_names_the_known(mini_bundle: Path) -> None:
    with pytest.raises(BackendError, match="'cuda' is not available; available: onnx"):
        open_backend("cuda", Bundle.open(mini_bundle))


def test_graph_that_cannot_be_loaded(mini_bundle: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    bundle = Bundle.open(folder)
    (folder / "model.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(BundleError) as caught:
        OnnxBackend(bundle)
    assert str(folder / "model.onnx") in str(caught.value)
    assert "\n" not in str(caught.value)
