"""Running a bundle's graph, with every backend that needs nothing of its own in the bundle."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from xsent import backends
from xsent.backends import default_backend, importing, open_backend
from xsent.bundle import Bundle, builtin_path
from xsent.errors import BundleError, MissingExtraError
from xsent.onnx_backend import OnnxBackend


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(builtin_path())


def in_a_new_process(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A bundle whose files a test may replace."""
    for file in builtin_path().iterdir():
        (tmp_path / file.name).symlink_to(file.resolve())
    return tmp_path


@pytest.mark.parametrize("backend", ["onnx", "numpy"])
def test_threads_and_company_change_nothing(bundle: Bundle, backend: str) -> None:
    run = open_backend(backend, bundle).embed
    sentences = [np.arange(1 + i * 7 % 30) for i in range(30)]
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(run, sentences)), [run(ids) for ids in sentences])


def test_graph_that_cannot_be_loaded(copy: Path) -> None:
    bundle = Bundle.open(copy)
    (copy / "model.onnx").unlink()
    (copy / "model.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(BundleError) as caught:
        OnnxBackend(bundle)
    assert str(copy / "model.onnx") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numpy_does_without_onnxruntime(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_backend() == "onnx"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert default_backend() == "numpy"
    assert np.isfinite(open_backend("numpy", bundle).embed(np.arange(5))).all()
    with pytest.raises(MissingExtraError, match=r"pip install onnxruntime, or use the numpy backend"):
        open_backend("onnx", bundle)


def test_a_failed_import_is_left_to_whoever_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def broken(name: str) -> None:
        asked.append(name)
        raise ImportError("libgomp.so.1 is not there")

    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    monkeypatch.setattr(backends, "import_module", broken)
    with importing("onnx"):
        pass
    assert asked == ["onnxruntime"]


def test_they_agree_within_the_tolerance_at_every_length(bundle: Bundle) -> None:
    onnx, numpy = (open_backend(name, bundle) for name in ("onnx", "numpy"))
    generator = np.random.default_rng(5)
    allowed = bundle.golden.tolerances["avx512_vnni"]
    for length in (1, 2, 3, 8, 20, 21, 40, 100, bundle.max_length):
        ids = generator.integers(0, bundle.vocab_size, length)
        vectors = [onnx.embed(ids), numpy.embed(ids)]
        for vector in vectors:
            assert (vector.shape, vector.dtype) == ((bundle.dim,), np.float32) and np.isfinite(vector).all()
        left, right = (vector / np.linalg.norm(vector) for vector in vectors)
        assert np.abs(left - right).max() <= allowed


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        ("import xsent.encoder", "False False"),  # one sentence loads no machinery of threads
        ("import xsent; xsent.SentenceEncoder(backend='numpy').encode('A sentence.')", "False False"),
        ("from xsent.backends import importing\nwith importing('numpy'): pass", "False False"),
        ("from xsent.backends import importing\nwith importing('onnx'): pass", "True"),
    ],
)
def test_what_is_loaded(program: str, loaded: str) -> None:
    told = "\nimport sys; print('onnxruntime' in sys.modules, 'concurrent.futures' in sys.modules)"
    assert in_a_new_process(program + told).startswith(loaded)
